"""Transactions: the coordinator, and the leaders of their partitions (KIP-98, KIP-890)."""
