"""The process that moves bytes between the broker's disk and the object store."""
