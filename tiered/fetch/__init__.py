"""Reads from remote storage: from an offset or a time to slices of cached files."""
