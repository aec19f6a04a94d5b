"""Names and Arrow types of a row's columns: those of Spark's Kafka source, and a batch's own.

    key            binary                null where the record has none
    value          binary                null where the record has none (a tombstone)
    topic          string
    partition      int32
    offset         int64
    timestamp      timestamp[us, UTC]    ms of Kafka; -1 (none) is 1969-12-31 23:59:59.999
    timestampType  int32                 0 CreateTime, 1 LogAppendTime
    headers        list<struct<key: string, value: binary>>   null without headers
    leaderEpoch    int32                 -1: none
    producerId     int64                 -1: none
    transactional  bool
    tier           string                where the row was read: `bucket` or `broker`

The first eight are the columns, types and nulls of `format("kafka")`.

Source: Spark, KafkaRecordToRowConverter.scala.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

_TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", HEADER_TYPE)),
    "leaderEpoch": pa.int32(),
    "producerId": pa.int64(),
    "transactional": pa.bool_(),
    "tier": pa.string(),
}

KAFKA_COLUMNS: Final = tuple(_TYPES)[:8]
"""In the order of Spark's Kafka source; `headers` only if `includeHeaders` is set."""

COLUMNS: Final = tuple(_TYPES)


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of rows with these columns, in this order; all of them may be null.

    Raises:
        ValueError: No column, one that does not exist, or one twice.
    """
    unknown = [name for name in columns if name not in _TYPES]
    if unknown:
        raise ValueError(f"no column {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    if not columns:
        raise ValueError("rows need at least one column")
    if len(set(columns)) != len(columns):
        raise ValueError(f"a column is named twice: {', '.join(columns)}")
    return pa.schema([pa.field(name, _TYPES[name]) for name in columns])


__all__ = ["COLUMNS", "HEADER_TYPE", "KAFKA_COLUMNS", "schema_of"]
