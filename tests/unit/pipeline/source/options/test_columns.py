"""Columns of the rows."""

import pytest

from pipeline.source.options.columns import (
    TYPES,
    default_columns,
    parse_columns,
    schema_text,
    simple_schema_text,
)


def test_columns_are_those_of_the_kafka_source() -> None:
    """Names, types and order."""
    assert schema_text(default_columns(headers=True, metadata=False)) == (
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
        "timestamp TIMESTAMP, timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )


def test_batch_metadata_comes_last() -> None:
    assert default_columns(headers=True, metadata=True) == tuple(TYPES)
    assert "headers" not in default_columns(headers=False, metadata=True)


def test_named_columns_keep_their_order_and_get_their_spelling() -> None:
    assert parse_columns("Value, TIMESTAMPTYPE,key") == ("value", "timestampType", "key")


@pytest.mark.parametrize(
    ("text", "problem"),
    [(" ,", "names no column"), ("key,size", "names size; there are"), ("key,KEY", "key twice")],
)
def test_what_is_no_column_is_said(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_columns(text)


def test_the_simple_text_is_sparks() -> None:
    """Types in lower case, no spaces, names as they are."""
    assert simple_schema_text(("timestampType", "headers")) == (
        "struct<timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
