"""What consumer groups and share groups have in common; Kafka calls these groups modern."""
