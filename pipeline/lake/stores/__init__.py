"""Where a table's files lie: a directory or S3, and what is read of stored files."""
