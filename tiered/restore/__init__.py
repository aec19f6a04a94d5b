"""Restoring topics and metadata from what a bucket holds."""
