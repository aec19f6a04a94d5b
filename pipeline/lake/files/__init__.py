"""Data files: names, rows to Parquet, partition values."""
