"""RemoteLogMetadataManager (KIP-405): which segment in remote storage holds what."""
