"""Common base of consumer groups and share groups; Kafka calls these groups modern."""
