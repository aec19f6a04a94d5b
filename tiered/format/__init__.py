"""Formats of the bucket: object names, manifests, chunks, encryption, and their checks."""
