"""RemoteStorageManager (KIP-405): copies, reads and verifies segments in an object store."""
