"""Names and types of a table's columns: the coordinates of a record, its key, and its value.

    topic string | partition int32 | offset int64 | timestamp timestamp[us, UTC]
    | key | headers | columns of the value ...

The first four are in every row. `key` and `headers` are there when they are asked for. A field of a
value that has one of these names, in whatever case (Spark, Delta and Iceberg compare names without
it), becomes `value_<name>`: JSON objects often have a `timestamp` of their own.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""As Spark's Kafka source has them."""

COORDINATES: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
    ]
)
"""What every row and every quarantined record keeps of where it was."""

QUARANTINE_SCHEMA: Final = pa.schema(
    [
        *COORDINATES,
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("schema_id", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)
"""A record that did not fit: as it was, with the registry's id where it had one, and why."""

RESERVED: Final = frozenset({*COORDINATES.names, "key", "headers"})

MAX_REASON_CHARS: Final = 500
"""Of a quarantined record: an error may repeat a part of the value."""

_PREFIX: Final = "value_"


def column_name(field: str) -> str:
    """What a field of a value is called in the table; no two fields get one name by this."""
    bare = field.lower()
    while bare.startswith(_PREFIX):
        bare = bare.removeprefix(_PREFIX)
    return _PREFIX + field if bare in RESERVED else field


def value_columns(fields: Iterable[pa.Field]) -> pa.Schema:
    """The columns that the fields of a value become.

    Raises:
        ValueError: two of them differ only in case, which tables do not tell apart.
    """
    columns = [field.with_name(column_name(field.name)) for field in fields]
    seen = Counter(column.name.lower() for column in columns)
    twice = [column.name for column in columns if seen[column.name.lower()] > 1]
    if twice:
        raise ValueError(f"columns that differ only in case or not at all: {', '.join(twice)}")
    return pa.schema(columns)


def no_quarantine() -> pa.RecordBatch:
    """A quarantine of nothing."""
    empty = [pa.array([], field.type) for field in QUARANTINE_SCHEMA]
    return pa.RecordBatch.from_arrays(empty, schema=QUARANTINE_SCHEMA)
