"""Producer state of a partition: idempotence and transactions (KIP-98, KIP-890)."""
