"""Topics: creation, planning of partitions, tiered topics, metadata answers."""
