"""Upkeep of a bucket: ownership, garbage collection, verification, key rotation."""
