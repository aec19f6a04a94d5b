"""Readers of Avro schemas: in blocks where that can be, and of registries."""

import pyarrow as pa
import pytest

from pipeline.lake.schemas.avro_schema import parse_avro_schema
from pipeline.lake.schemas.registry import RegisteredSchema
from pipeline.lake.values.avro import AvroReader, avro_of_registry


def test_both_ways_give_the_fields_that_are_written() -> None:
    """A union of several types is read record by record."""
    for text, data, value in [
        ('["null", "string"]', b"\2\2x", "x"),
        ('["int", "string"]', b"\2\2x", {"member0": None, "member1": "x"}),
    ]:
        reader = AvroReader(parse_avro_schema(text), "key")
        assert reader.bare
        assert reader.written.names == ["key"]
        (column,) = reader.read(pa.array([data], pa.binary()))
        assert column.to_pylist() == [value]


def test_a_schema_of_another_kind_is_refused() -> None:
    """A topic may have been written by several programs."""
    with pytest.raises(ValueError, match="JSON and not AVRO"):
        avro_of_registry(RegisteredSchema(1, "JSON", "{}", {}), "value")
