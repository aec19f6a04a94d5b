"""Protobuf values, plain and as confluent-kafka's serializer writes them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.schemas.spec import RegistrySpec
from pipeline.lake.values.converter import Converter
from pipeline.lake.values.table_columns import FieldSettings, TableColumns
from tests.effort import examples
from tests.fakes.kafka.schema_registry import FakeSchemaRegistry, running_registry
from tests.fakes.lake.proto_messages import classes, definition, file, message
from tests.unit.pipeline.lake.ddl_text import to_ddl
from tests.unit.pipeline.lake.values.batches import batch

INNER = message("Line", "string sku", "int32 count")
V1 = file(
    "order.proto",
    message("Order", "int64 id", "repeated t.Line lines", nested=(message("Deep", "int32 x"),)),
    INNER,
)
V2 = file(
    "order2.proto", message("Order", "int64 id", "repeated t.Line lines", "string note"), INNER
)


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    with running_registry() as running:
        yield running


def _written(registry: FakeSchemaRegistry, value: Any) -> bytes:
    with SchemaRegistryClient({"url": registry.url}) as client:
        serializer = ProtobufSerializer(type(value), client, {"use.deprecated.format": False})
        context = SerializationContext("orders", MessageField.VALUE)
        written = serializer(value, context)
    assert isinstance(written, bytes)
    return written


def test_values_of_a_registry_follow_their_schemas(registry: FakeSchemaRegistry) -> None:
    """A newer schema is told and followed; other messages of the file are misfits."""
    one, two = classes(V1), classes(V2)
    old = [_written(registry, one["t.Order"](id=n, lines=[{"sku": "a"}])) for n in range(2)]
    columns = TableColumns(
        FieldSettings(
            "protobuf", "confluent", registry=RegistrySpec(registry.url), subject="orders-value"
        )
    )
    spec = columns.spec(None)
    line = "array<struct<sku: string, count: int>>"
    assert to_ddl(Converter(spec).schema) == f"id bigint, lines {line}"

    new = _written(registry, two["t.Order"](id=9, note="n"))
    deep = _written(registry, one["t.Order.Deep"](x=1))
    second = _written(registry, one["t.Line"](sku="x"))
    values: list[bytes | None] = [old[0], new, deep, second, None, old[1], new[:5] + b"\0\xff"]
    behind = Converter(spec).convert(batch(values)).behind
    spec = columns.evolved(spec, behind)
    converted = Converter(spec).convert(batch(values))
    assert converted.behind == frozenset()
    rows = converted.rows.to_pylist()
    assert [(row["offset"] - 100, row["id"], row["note"]) for row in rows] == [
        *((0, 0, None), (1, 9, "n"), (4, None, None), (5, 1, None)),
    ]
    out = converted.quarantined.to_pylist()
    assert [(row["offset"] - 100, row["reason"].split(":")[0]) for row in out] == [
        *((2, "Protobuf"), (3, "Protobuf"), (6, "Protobuf")),
    ]
    assert "message [1] of the schema, and not [0]" in out[1]["reason"]


def test_a_message_may_be_named(registry: FakeSchemaRegistry) -> None:
    """One that is not the first of its file."""
    value = _written(registry, classes(V1)["t.Order.Deep"](x=5))
    settings = FieldSettings(
        "protobuf",
        "confluent",
        message="t.Order.Deep",
        registry=RegistrySpec(registry.url),
        subject="orders-value",
    )
    converted = Converter(TableColumns(settings).spec(None)).convert(batch([value]))
    assert converted.rows.column("x").to_pylist() == [5]


def test_plain_values_of_a_descriptor_set() -> None:
    """Without a registry, and with its header where nobody asks it."""
    plain = FieldSettings("protobuf", definition=definition(V1))
    order = classes(V1)["t.Order"]
    values: list[bytes | None] = [order(id=n).SerializeToString() for n in range(3)]
    converted = Converter(TableColumns(plain).spec(None)).convert(batch([*values, b"\xff", None]))
    assert converted.rows.column("id").to_pylist() == [0, 1, 2, None]
    assert converted.quarantined.column("reason").to_pylist() == ["Protobuf: not a message t.Order"]
    framed = TableColumns(plain._replace(wire="confluent")).spec(None)
    headed: list[bytes | None] = [b"\0\0\0\0\1\0" + value for value in values if value is not None]
    assert Converter(framed).convert(batch(headed)).rows.column("id").to_pylist() == [0, 1, 2]


@examples(150)
@given(st.lists(st.binary(max_size=8) | st.integers(0, 3).map(lambda n: bytes([8, n])), max_size=8))
def test_hostile_bytes_move_no_row(values: list[bytes]) -> None:
    """Each value is what the library says of it alone."""
    order = classes(V1)["t.Order"]
    wanted = {}
    for at, value in enumerate(values):
        try:
            wanted[100 + at] = order.FromString(value).id
        except Exception:  # noqa: BLE001 - whatever the library raises
            continue
    plain = FieldSettings("protobuf", definition=definition(V1))
    converted = Converter(TableColumns(plain).spec(None)).convert(batch(values))
    rows = converted.rows
    assert (
        dict(zip(rows.column("offset").to_pylist(), rows.column("id").to_pylist(), strict=True))
        == wanted
    )
    assert converted.quarantined.num_rows == len(values) - len(wanted)


@pytest.mark.parametrize("head", [b"", b"\x80", b"\x01", b"\xff\xff\xff\xff\xff\xff", b"\x04\x00"])
def test_indexes_that_are_none_are_misfits(head: bytes) -> None:
    """Cut, endless, negative."""
    framed = FieldSettings("protobuf", "confluent", definition=definition(V1))
    converter = Converter(TableColumns(framed).spec(None))
    out = converter.convert(batch([b"\0\0\0\0\1" + head])).quarantined
    assert "message indexes" in out.column("reason")[0].as_py()
    assert isinstance(out, pa.RecordBatch)
