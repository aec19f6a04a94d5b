"""The data source as Spark sees it, without a session."""

import pickle

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pipeline.plan.errors import OptionsError
from pipeline.source.data_source import VarveDataSource
from pyspark_varve import DefaultSource

KAFKA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


def source(**options: str) -> VarveDataSource:
    return DefaultSource(CaseInsensitiveDict({"path": "/tier", "subscribe": "t", **options}))


def test_it_is_found_by_its_name() -> None:
    assert DefaultSource.name() == "varve"


def test_the_schema_is_that_of_the_kafka_source() -> None:
    """Both readers check that it is what they were given."""
    assert source().schema().startswith("key BINARY, value BINARY, topic STRING")
    source().reader(KAFKA)
    source().streamReader(KAFKA)
    source(includeHeaders="true").reader(
        StructType([*KAFKA.fields, StructField("headers", HEADERS)])
    )


def test_a_schema_cannot_be_given() -> None:
    """Spark lets users name one; rows would then be something else than they say."""
    with pytest.raises(OptionsError, match="fixed schema"):
        source().reader(StructType([StructField("value", StringType())]))
    with pytest.raises(OptionsError, match="fixed schema"):
        source(columns="value,key").streamReader(KAFKA)


def test_mistakes_are_told_with_the_schema() -> None:
    with pytest.raises(OptionsError, match="no option of varve"):
        source(maxPartitionByte="1").schema()


def test_mistakes_of_one_kind_of_query_are_told_by_its_reader() -> None:
    with pytest.raises(OptionsError, match="latest in a batch query"):
        source(startingOffsets="latest").reader(KAFKA)
    with pytest.raises(OptionsError, match="not valid in a streaming query"):
        source(endingOffsets="latest").streamReader(KAFKA)


def test_a_reader_offers_filters_only_where_it_was_asked_to() -> None:
    """While Spark's own switch is off it refuses every reader that does."""
    plain, filtering = source().reader(KAFKA), source(pushFilters="true").reader(KAFKA)
    assert type(plain).pushFilters is DataSourceReader.pushFilters
    assert type(filtering).pushFilters is not DataSourceReader.pushFilters


def test_readers_are_pickled_without_anything_open() -> None:
    for reader in (source().reader(KAFKA), source().streamReader(KAFKA)):
        pickle.loads(pickle.dumps(reader))
