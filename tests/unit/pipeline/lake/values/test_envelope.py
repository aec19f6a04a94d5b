"""Debezium's envelopes as rows and deletions, of each format; what is none is a misfit."""

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pipeline.lake.schemas.json_schema import InferenceError
from pipeline.lake.values.converter import Converted, Converter
from pipeline.lake.values.table_columns import FieldSettings, TableColumns
from tests.fakes.lake.proto_messages import definition, file, message
from tests.unit.pipeline.lake.values.batches import batch

DDL = b"id bigint, name string"


def columns(value: FieldSettings, *sample: bytes, key: FieldSettings | None = None) -> TableColumns:
    return TableColumns(
        value._replace(envelope="change"),
        key or FieldSettings("raw"),
        mode="debezium",
        sample=lambda side: sample,
    )


def convert(found: TableColumns, values: Sequence[bytes | None], **more: Any) -> Converted:
    more.setdefault("keys", [b"k%d" % n for n in range(len(values))])
    return Converter(found.spec(None)).convert(batch(values, **more))


def told(converted: Converted) -> list[tuple[bool, int | None, str | None]]:
    """Whether it deletes, and the row's columns."""
    rows = converted.rows.select(["id", "name"]).to_pydict()
    assert converted.deletes is not None
    return list(zip(converted.deletes.tolist(), rows["id"], rows["name"], strict=True))


def change(op: str | None, after: object, **more: object) -> bytes:
    return json.dumps(
        {"op": op, "before": {"any": []}, "after": after, "ts_ms": 1, **more}
    ).encode()


def wrapped(value: bytes) -> bytes:
    schema = {"type": "struct", "fields": [{"field": "op", "type": "string"}], "name": "Envelope"}
    return json.dumps({"schema": schema, "payload": json.loads(value)}).encode()


JSON = FieldSettings("json", definition=DDL)


@pytest.mark.parametrize("op", ["c", "r", "u"])
@pytest.mark.parametrize("dress", [lambda value: value, wrapped], ids=["bare", "wrapped"])
def test_the_row_is_what_is_after(op: str, dress: Any) -> None:
    converted = convert(columns(JSON), [dress(change(op, {"id": 7, "name": "x", "more": 1}))])
    assert told(converted) == [(False, 7, "x")]


def test_both_dresses_may_stand_in_one_topic() -> None:
    some = [change("c", {"id": n, "name": f"n{n}"}) for n in range(4)]
    values = [some[0], wrapped(some[1]), some[2], wrapped(some[3])]
    assert told(convert(columns(JSON), values)) == [(False, n, f"n{n}") for n in range(4)]


def test_deletions_and_tombstones_delete() -> None:
    values = [change("d", None), None, wrapped(change("d", None)), change("c", {"id": 1})]
    converted = convert(columns(JSON), list(values))
    assert told(converted) == [(True, None, None)] * 3 + [(False, 1, None)]


def test_what_is_no_change_of_a_row_is_a_misfit() -> None:
    """The others keep their places."""
    values = [
        change("t", None),
        change("u", None),
        b'{"id": 7}',
        b"{no json",
        change("m", None, message="x"),
        b'{"op": "c", "after": {"id": "seven"}}',
        b'{"schema": {}, "payload": null}',
        change("c", {"id": 7}),
    ]
    converted = convert(columns(JSON), list(values))
    assert told(converted) == [(False, 7, None)]
    assert converted.rows.column("offset").to_pylist() == [107]
    reasons = dict(
        zip(
            converted.quarantined.column("offset").to_pylist(),
            converted.quarantined.column("reason").to_pylist(),
            strict=True,
        )
    )
    assert sorted(reasons) == list(range(100, 107))
    assert reasons[100] == "Debezium's op t is no change of one row"
    assert reasons[101] == "Debezium's op u without after"
    assert reasons[102] == reasons[106] == "no Debezium envelope: it has no op"


def test_columns_are_inferred_from_the_rows() -> None:
    sample = [change("d", None), wrapped(change("c", {"id": 7, "name": "x"})), b"{no json"]
    found = columns(FieldSettings("json"), *sample).spec(None)
    assert found.value.fields == pa.schema([("id", pa.int64()), ("name", pa.string())])
    with pytest.raises(InferenceError):
        columns(FieldSettings("json"), change("d", None)).spec(None)


def test_keys_may_be_in_the_wrapper_too() -> None:
    key = FieldSettings("json", definition=b"id bigint", envelope="wrapper")
    found = columns(JSON, key=key)
    keys = [b'{"id": 7}', b'{"schema": {"type": "struct"}, "payload": {"id": 7}}']
    rows = convert(found, [change("c", {"id": 7})] * 2, keys=keys).rows
    assert rows.column("key").to_pylist() == [{"id": 7}, {"id": 7}]
    assert rows.column("_key_bytes").to_pylist() == keys


ROW = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ],
}


def avro(op: str, after: object) -> bytes:
    out = io.BytesIO()
    record = {"before": None, "after": after, "op": op, "ts_ms": 1}
    fastavro.schemaless_writer(out, fastavro.parse_schema(ENVELOPE), record)
    return out.getvalue()


def test_avro_envelopes_are_read_with_their_schema() -> None:
    """A column that must have a value in the row may be null: deletions have none."""
    found = columns(FieldSettings("avro", definition=json.dumps(ENVELOPE).encode()))
    values = [avro("c", {"id": 7, "name": "x"}), avro("d", None), avro("t", None), b"\x05"]
    converted = convert(found, list(values))
    assert told(converted) == [(False, 7, "x"), (True, None, None)]
    assert converted.quarantined.num_rows == 2


def test_a_schema_of_no_envelope_is_refused() -> None:
    settings = FieldSettings("avro", definition=json.dumps(ROW).encode())
    with pytest.raises(ValueError, match="no Debezium envelope: its schema has no field op"):
        columns(settings).spec(None)


def test_protobuf_envelopes_are_read_with_their_message() -> None:
    described = definition(
        file(
            "d",
            message("Envelope", "string op", "t.Value after"),
            message("Value", "int64 id", "string name"),
        )
    )
    found = columns(FieldSettings("protobuf", definition=described, message="t.Envelope"))
    row = b"\x08\x07\x12\x01x"
    values = [b"\x0a\x01c\x12" + bytes([len(row)]) + row, b"\x0a\x01d", b"\x0a\x01u", b""]
    converted = convert(found, list(values))
    assert told(converted) == [(False, 7, "x"), (True, None, None)]
    assert converted.quarantined.column("reason").to_pylist() == [
        "Debezium's op u without after",
        "no Debezium envelope: it has no op",
    ]
