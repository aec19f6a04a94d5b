"""Upkeep of a job's tables: small files put together, old snapshots and orphans removed."""
