"""Names and types of a table's columns: the coordinates of a record, its key, and its value.

    topic string | partition int32 | offset int64 | timestamp timestamp[us, UTC]
    | key | headers | columns of the value ...

The first four are in every row. `key` and `headers` are there when they are asked for. A field of a
value that has one of these names, in whatever case (Spark, Delta and Iceberg compare names without
it), becomes `value_<name>`: JSON objects often have a `timestamp` of their own.

Tables by key have two more behind the coordinates, which a value's field may not be named like:

    _order_time timestamp[us, UTC]   what orders records of one key: `pipeline.lake.runs.row_order`
    _key_bytes binary                the key as it was, where `key` is neither bytes nor text
"""

from collections import Counter
from collections.abc import Iterable, Iterator
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

ORDER_TIME: Final = "_order_time"
KEY_BYTES: Final = "_key_bytes"

RESERVED: Final = frozenset({*COORDINATES.names, "key", "headers"})

MAX_REASON_CHARS: Final = 500
"""Of a quarantined record: an error may repeat a part of the value."""

_PREFIX: Final = "value_"


def column_name(field: str) -> str:
    """Column name of a value's field; distinct fields have distinct names."""
    bare = field.lower()
    while bare.startswith(_PREFIX):
        bare = bare.removeprefix(_PREFIX)
    return _PREFIX + field if bare in RESERVED else field


def field_name(column: str) -> str:
    """The field that a column of a table was made of: the other way round."""
    bare = column.removeprefix(_PREFIX)
    return bare if bare != column and column_name(bare) == column else column


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A column's type as rows are made, whatever form of it a reader of tables gives."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        field = kind.value_field
        return pa.list_(pa.field("item", plain_type(field.type), nullable=field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    binary = (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    if any(is_binary(kind) for is_binary in binary):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz is not None else pa.timestamp("us")
    return kind


def value_columns(fields: Iterable[pa.Field]) -> pa.Schema:
    """The columns that the fields of a value become.

    Raises:
        ValueError: Two of them differ only in case, which tables do not distinguish.
    """
    columns = [field.with_name(column_name(field.name)) for field in fields]
    check_names(columns)
    return pa.schema(columns)


def check_names(fields: Iterable[pa.Field], path: str = "") -> None:
    """Find names that tables do not distinguish, at every level.

    Raises:
        ValueError: With all of one level.
    """
    named = list(fields)
    seen = Counter(field.name.lower() for field in named)
    twice = [f"{path}{field.name}" for field in named if seen[field.name.lower()] > 1]
    if twice:
        raise ValueError(f"columns that differ only in case or not at all: {', '.join(twice)}")
    for field in named:
        kind = field.type
        while pa.types.is_list(kind) or pa.types.is_map(kind):
            kind = kind.value_type if pa.types.is_list(kind) else kind.item_type
        if pa.types.is_struct(kind):
            check_names(list(kind), f"{path}{field.name}.")


def check_partition_names(columns: Iterable[str], partitions: Iterable[str]) -> None:
    """Find columns that have the name of one that a table is partitioned by.

    Args:
        columns: Of the table.
        partitions: Names of columns or folders that are made for it, as `timestamp_day`.

    Raises:
        ValueError: With the first one.
    """
    made = {name.lower(): name for name in partitions}
    for column in columns:
        name = made.get(column.lower())
        if name is not None:
            raise ValueError(
                f"{column} and {name} of sink.partition_by are one name: partition the table "
                "otherwise, or give the field another name"
            )


def check_full_names(fields: Iterable[pa.Field]) -> None:
    """Find fields that have one full name, with dots between levels, as Iceberg looks them up.

    Raises:
        ValueError: With all of them.
    """
    seen = Counter(_full_names(fields, ""))
    twice = [name for name, count in seen.items() if count > 1]
    if twice:
        raise ValueError(
            f"fields that have one full name, which Iceberg does not distinguish: "
            f"{', '.join(twice)}"
        )


def _full_names(fields: Iterable[pa.Field], path: str) -> Iterator[str]:
    for field in fields:
        name = f"{path}{field.name}"
        yield name
        kind = field.type
        if pa.types.is_struct(kind):
            yield from _full_names(kind, f"{name}.")
        elif pa.types.is_list(kind):
            yield from _full_names([kind.value_field.with_name("element")], f"{name}.")
        elif pa.types.is_map(kind):
            parts = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
            yield from _full_names(parts, f"{name}.")


def no_quarantine() -> pa.RecordBatch:
    """A quarantine of nothing."""
    empty = [pa.array([], field.type) for field in QUARANTINE_SCHEMA]
    return pa.RecordBatch.from_arrays(empty, schema=QUARANTINE_SCHEMA)
