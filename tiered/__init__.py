"""The remote log (KIP-405): closed segments live in an object store."""
