"""The object store over S3: client, signatures, ranged GET, uploads, deletions."""
