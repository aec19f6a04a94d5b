"""Values that name their schema: written by confluent-kafka's serializer, read into one table."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pipeline.lake.schemas.avro_schema import parse_avro_schema
from pipeline.lake.schemas.ddl import parse_ddl
from pipeline.lake.schemas.evolution import SchemaChangeError
from pipeline.lake.schemas.registry import RegistryClient, RegistryCredentials, RegistryError
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec, RegistrySpec
from pipeline.lake.values import by_schema
from pipeline.lake.values.avro import AvroReader
from pipeline.lake.values.by_schema import OneSchemaFormat
from pipeline.lake.values.converter import Converter
from pipeline.lake.values.table_columns import FieldSettings, TableColumns
from tests.fakes.kafka.schema_registry import FakeSchemaRegistry, running_registry
from tests.unit.pipeline.lake.ddl_text import to_ddl
from tests.unit.pipeline.lake.values.batches import batch


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    with running_registry() as running:
        yield running


def _order(*more: dict[str, Any], kind: Any = "int") -> str:
    fields = [{"name": "id", "type": kind}, {"name": "offset", "type": ["null", "string"]}]
    return json.dumps({"type": "record", "name": "shop.Order", "fields": [*fields, *more]})


V1 = _order()
V2 = _order({"name": "price", "type": "double", "default": 0.0}, kind="long")


class Producer:
    """Writes values as a Python producer with Confluent's serializer does."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._serializers: dict[str, Any] = {}

    def value(self, schema: str, row: Any, field: MessageField = MessageField.VALUE) -> bytes:
        key = f"{field} {schema}"
        if key not in self._serializers:
            self._serializers[key] = AvroSerializer(self._client, schema)
        written = self._serializers[key](row, SerializationContext("orders", field))
        assert isinstance(written, bytes)
        return written


@pytest.fixture
def producer(registry: FakeSchemaRegistry) -> Iterator[Producer]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield Producer(client)


def _columns(registry: FakeSchemaRegistry, *, widen: bool = False) -> TableColumns:
    avro = FieldSettings(
        "avro", "confluent", registry=RegistrySpec(registry.url), subject="orders-value"
    )
    return TableColumns(avro, avro._replace(subject="orders-key"), widen=widen)


def _rows(converter: Converter, values: list[bytes | None], **rest: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = converter.convert(batch(values, **rest)).rows.to_pylist()
    return [{k: v for k, v in row.items() if k not in ("topic", "timestamp")} for row in rows]


def test_a_table_follows_its_schema(registry: FakeSchemaRegistry, producer: Producer) -> None:
    """Made with the latest; a newer one is told before a commit, and its columns are added."""
    old = [producer.value(V1, {"id": n, "offset": "x"}) for n in range(3)]
    key = producer.value('"string"', "k", MessageField.KEY)
    columns = _columns(registry, widen=True)
    spec = columns.spec(None)
    converter = Converter(spec)
    table = converter.row_schema
    assert to_ddl(pa.schema(list(table)[4:])) == "key string, id int, value_offset string"

    new = producer.value(V2, {"id": 2**40, "offset": None, "price": 1.5})
    mixed = [old[0], new, None, old[1]]
    converted = converter.convert(batch(mixed, keys=[key, None, key, key]))
    assert converted.behind == {3}
    assert Converter(spec).convert(batch(old, keys=[key] * 3)).behind == frozenset()

    evolved = columns.evolved(spec, converted.behind)
    assert evolved.key == spec.key
    after = Converter(evolved)
    assert to_ddl(after.schema) == "id bigint, value_offset string, price double"
    converted = after.convert(batch(mixed, keys=[key, None, key, key]))
    assert converted.behind == frozenset()
    assert [
        (row["offset"], row["key"], row["id"], row["value_offset"], row["price"])
        for row in converted.rows.to_pylist()
    ] == [
        (100, "k", 0, "x", None),
        (101, None, 2**40, None, 1.5),
        (102, "k", None, None, None),
        (103, "k", 1, "x", None),
    ]
    assert columns.spec(after.row_schema) == evolved
    # Values of the old schema still fit where the table has gone on.
    assert len(_rows(after, [*old])) == 3


def test_a_table_that_cannot_be_widened_quarantines_what_does_not_fit(
    registry: FakeSchemaRegistry, producer: Producer
) -> None:
    """Value by value, with the id; and it is not told as behind, or a job would never end."""
    producer.value(V1, {"id": 1, "offset": None})
    producer.value('"string"', "k", MessageField.KEY)
    columns = _columns(registry)
    spec = columns.spec(None)
    values: list[bytes | None] = [
        producer.value(V2, {"id": n, "offset": None, "price": 0.5}) for n in (7, 2**40)
    ]
    evolved = columns.evolved(spec, Converter(spec).convert(batch(values)).behind)
    converted = Converter(evolved).convert(batch(values))
    assert converted.behind == frozenset()
    assert converted.rows.column("id").to_pylist() == [7]
    assert converted.quarantined.column("schema_id").to_pylist() == [3]
    assert "id: Integer value 1099511627776 not in range" in str(
        converted.quarantined.column("reason")[0]
    )


def test_bytes_that_name_no_schema_are_quarantined(
    registry: FakeSchemaRegistry, producer: Producer
) -> None:
    """Garbage may look like an id; a schema may be of another kind, or have no columns."""
    good = producer.value(V1, {"id": 1, "offset": None})
    text = producer.value('"string"', "k", MessageField.KEY)[4]
    other = registry.register("other", "{}", "JSON")
    loop = registry.register(
        "loop",
        '{"type":"record","name":"L","fields":[{"name":"l","type":["null","L"]}]}',
    )
    converter = Converter(_columns(registry).spec(None))
    values: list[bytes | None] = [
        b"\0\0\0\xff\xffxx",
        good,
        good[:5] + b"\xff",
        good + b"\0",
        bytes([0, 0, 0, 0, other]) + b"{}",
        bytes([0, 0, 0, 0, loop]) + b"\0",
        b"plain",
        good,
        bytes([0, 0, 0, 0, text]) + b"\0",
    ]
    converted = converter.convert(batch(values))
    assert converted.rows.column("offset").to_pylist() == [101, 107]
    out = converted.quarantined.to_pylist()
    assert [(row["offset"] - 100, row["schema_id"]) for row in out] == [
        *((0, 65535), (2, 1), (3, 1), (4, other), (5, loop), (6, None), (8, text)),
    ]
    told = [row["reason"] for row in out]
    assert "has no schema 65535" in told[0]
    assert told[3].endswith("JSON and not AVRO")
    assert "recursive types have no columns" in told[4]
    assert told[6] == f"schema {text} is not of a record, as the table's is"


def test_a_registry_that_is_away_quarantines_nothing(
    registry: FakeSchemaRegistry, producer: Producer
) -> None:
    """It is no fault of the records."""
    good = producer.value(V1, {"id": 1, "offset": None})
    producer.value('"string"', "k", MessageField.KEY)
    converter = Converter(_columns(registry).spec(None))
    registry.faults = [(403, b"{}")]
    with pytest.raises(RegistryError, match="refuses user or password"):
        converter.convert(batch([good]))
    assert _rows(converter, [good])[0]["id"] == 1


def test_schemas_beyond_the_bound_are_opened_again(
    registry: FakeSchemaRegistry, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids come from records."""
    monkeypatch.setattr(by_schema, "MAX_READERS", 2)
    schemas = [
        _order({"name": f"x{n}", "type": ["null", "int"], "default": None}) for n in range(4)
    ]
    values: list[bytes | None] = [
        producer.value(schemas[n % 4], {"id": n, "offset": None, f"x{n % 4}": n}) for n in range(12)
    ]
    producer.value('"string"', "k", MessageField.KEY)
    columns = _columns(registry)
    spec = columns.spec(None)
    spec = columns.evolved(spec, Converter(spec).convert(batch(values)).behind)
    rows = _rows(Converter(spec), values)
    assert [row["id"] for row in rows] == list(range(12))
    assert [row[f"x{n % 4}"] for n, row in enumerate(rows)] == list(range(12))


def test_credentials_reach_the_registry_and_not_the_spec(
    registry: FakeSchemaRegistry, producer: Producer
) -> None:
    """The spec is pickled and logged; credentials are given where it is used."""
    good = producer.value(V1, {"id": 1, "offset": None})
    producer.value('"string"', "k", MessageField.KEY)
    registry.user, registry.password = "me", "hunter2"
    given = RegistryCredentials("me", "hunter2")
    columns = _columns(registry)
    with pytest.raises(RegistryError):
        columns.spec(None)
    columns = TableColumns(
        FieldSettings(
            "avro", "confluent", registry=RegistrySpec(registry.url), subject="orders-value"
        ),
        open_client=lambda spec: RegistryClient(spec, given),
    )
    spec = columns.spec(None)
    assert "hunter2" not in repr(spec)
    assert Converter(spec, given).convert(batch([good])).rows.num_rows == 1


def test_one_schema_for_all_values() -> None:
    """From a file, without a registry."""
    file = FieldSettings("avro", definition=V1.encode())
    spec = TableColumns(file).spec(None)
    parsed = fastavro.parse_schema(json.loads(V1))
    values: list[bytes | None] = []
    for n in range(3):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"id": n, "offset": None})
        values.append(out.getvalue())
    converted = Converter(spec).convert(batch([*values, b"\0", None]))
    assert converted.rows.column("id").to_pylist() == [0, 1, 2, None]
    assert converted.quarantined.column("offset").to_pylist() == [103]
    # A registry's header may be there although nobody asks the registry.
    framed = TableColumns(file._replace(wire="confluent")).spec(None)
    headed: list[bytes | None] = [b"\0\0\0\0\7" + value for value in values if value]
    assert Converter(framed).convert(batch(headed)).rows.num_rows == 3


def test_required_columns_of_a_table_are_kept() -> None:
    """A schema that allows null meets a table that does not."""
    fields = parse_ddl("id int, offset string not null")
    reader = AvroReader(parse_avro_schema(V1), "value")
    form = OneSchemaFormat(reader, fields, bare=False)
    parsed = form.parse(pa.array([b"\2\0", b"\2\2\2x"], pa.binary()))
    assert parsed.columns.to_pylist() == [{"id": 1, "offset": "x"}]
    assert [misfit.reason for misfit in parsed.misfits] == ["offset must not be null"]


def test_settings_without_a_schema_are_refused() -> None:
    """Before anything is read."""
    with pytest.raises(ValueError, match="avro values need a schema or a registry"):
        TableColumns(FieldSettings("avro")).spec(None)
    with pytest.raises(ValueError, match="a schema, or a registry that values name"):
        Converter(ConverterSpec(FieldSpec("avro", fields=parse_ddl("a int"))))


def test_keys_are_followed_apart_from_values(
    registry: FakeSchemaRegistry, producer: Producer
) -> None:
    """Both may have fields of the same names."""
    old = producer.value(V1, {"id": 1, "offset": None}, MessageField.KEY)
    value = producer.value(V1, {"id": 1, "offset": None})
    columns = _columns(registry)
    spec = columns.spec(None)
    key = producer.value(V2, {"id": 5, "offset": None, "price": 1.5}, MessageField.KEY)
    converted = Converter(spec).convert(batch([value, value], keys=[old, key]))
    assert converted.behind == {-2}
    evolved = columns.evolved(spec, converted.behind)
    assert evolved.value == spec.value
    rows = Converter(evolved).convert(batch([value, value], keys=[old, key])).rows
    assert rows.column("key").to_pylist() == [
        {"id": 1, "offset": None, "price": None},
        {"id": 5, "offset": None, "price": 1.5},
    ]


def test_a_key_by_itself_does_not_become_one_with_fields(
    registry: FakeSchemaRegistry, producer: Producer
) -> None:
    """Neither record by record nor when the job starts."""
    producer.value(V1, {"id": 1, "offset": None})
    key = producer.value('"string"', "k", MessageField.KEY)
    columns = _columns(registry)
    spec = replace(columns.spec(None), value=FieldSpec())
    other = producer.value(V1, {"id": 1, "offset": None}, MessageField.KEY)
    converted = Converter(spec).convert(batch([b"v", b"v"], keys=[key, other]))
    assert converted.rows.column("key").to_pylist() == ["k"]
    assert converted.quarantined.column("reason").to_pylist() == [
        "key: schema 1 is not of a value by itself, as the table's is"
    ]
    with pytest.raises(SchemaChangeError, match="keys have fields by their schema"):
        columns.spec(Converter(spec).row_schema)
