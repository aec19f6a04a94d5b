"""Object stores: a directory, or anything that speaks S3."""
