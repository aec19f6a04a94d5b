"""Conversion of a record's key and value to columns: raw, JSON, Avro, Protobuf."""
