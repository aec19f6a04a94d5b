"""RemoteLogManager (KIP-405): copying, expiration and deletion for each partition."""
