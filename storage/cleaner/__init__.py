"""Log compaction: keeps at least the last record of every key."""
