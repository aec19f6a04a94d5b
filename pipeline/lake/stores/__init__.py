"""Stores of a table's files: a directory or S3."""
