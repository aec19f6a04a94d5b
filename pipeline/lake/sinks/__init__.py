"""Tables: Delta, Iceberg, Parquet. Each commits files and offsets in one step."""
