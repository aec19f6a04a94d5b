"""Replication of partitions between brokers: what leaders know of their followers."""
