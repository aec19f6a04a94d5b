"""Schemas: columns of a table, as Avro, Protobuf, JSON, registries and DDL declare them."""
