"""Runs: rows of one task sorted by bucket and key, and the order of records of a key."""
