"""Columns and types: those that Spark expects."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pipeline.read.decode.row_schema import COLUMNS, KAFKA_COLUMNS, schema_of


def test_types_are_those_that_spark_makes_of_the_kafka_sources() -> None:
    """PySpark compares them for equality before it takes a batch."""
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    kinds = {
        "key": BinaryType(),
        "value": BinaryType(),
        "topic": StringType(),
        "partition": IntegerType(),
        "offset": LongType(),
        "timestamp": TimestampType(),
        "timestampType": IntegerType(),
        "headers": ArrayType(header),
        "leaderEpoch": IntegerType(),
        "producerId": LongType(),
        "transactional": BooleanType(),
        "tier": StringType(),
    }
    fields = StructType([StructField(name, kind) for name, kind in kinds.items()])
    assert to_arrow_schema(fields, timezone="UTC").equals(schema_of(COLUMNS))


def test_columns_of_the_kafka_source() -> None:
    """In its order."""
    assert KAFKA_COLUMNS == (
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    )


def test_columns_are_in_the_order_asked() -> None:
    """Nothing is added."""
    assert schema_of(["offset", "key"]) == pa.schema([("offset", pa.int64()), ("key", pa.binary())])


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ((), "at least one"),
        (("key", "key"), "twice"),
        (("Key", "x"), "no column Key, x; there are"),
    ],
)
def test_columns_that_cannot_be(columns: tuple[str, ...], problem: str) -> None:
    """Said with the names that there are."""
    with pytest.raises(ValueError, match=problem):
        schema_of(columns)
