"""Compaction in processes of its own: paths and offsets cross, never records."""
