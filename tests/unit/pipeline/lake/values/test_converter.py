"""Each record is one row or one quarantined record, with its coordinates."""

import pickle

import pyarrow as pa
import pytest

from pipeline.lake.schemas.columns import QUARANTINE_SCHEMA
from pipeline.lake.schemas.ddl import parse_ddl
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.values.converter import Converter
from tests.unit.pipeline.lake.values.batches import batch

JSON = FieldSpec("json", fields=parse_ddl("id bigint, Timestamp string"))


def test_raw_rows_are_the_records() -> None:
    """Null values and keys included."""
    converted = Converter(ConverterSpec()).convert(batch([b"x", None], keys=[None, b"k"]))
    assert converted.rows.schema.names == [
        *("topic", "partition", "offset", "timestamp", "key", "value"),
    ]
    rows = converted.rows.to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (100, None, b"x"),
        (101, b"k", None),
    ]
    assert rows[0]["topic"] == "orders"
    assert rows[0]["partition"] == 3
    assert rows[0]["timestamp"].microsecond == 100_000
    assert converted.quarantined.num_rows == 0
    assert converted.quarantined.schema == QUARANTINE_SCHEMA


def test_fields_with_names_of_coordinates_are_renamed() -> None:
    """An object's own timestamp is not the record's."""
    converter = Converter(ConverterSpec(JSON))
    assert converter.schema.names == ["id", "value_Timestamp"]
    converted = converter.convert(batch([b'{"id":1,"Timestamp":"t"}']))
    assert converted.rows.schema == converter.row_schema
    assert converted.rows.column("value_Timestamp").to_pylist() == ["t"]


def test_misfits_are_quarantined_as_they_were() -> None:
    """Between rows, at both ends, and with nulls beside them."""
    values = [b"?", b'{"id":1}', None, b"", b'{"id":"x"}', b'{"id":2}', b"["]
    keys = [b"a", b"b", None, b"d", None, b"f", b"g"]
    converted = Converter(ConverterSpec(JSON)).convert(batch(values, keys=keys))
    rows = converted.rows.to_pylist()
    assert [(row["offset"], row["key"], row["id"]) for row in rows] == [
        (101, b"b", 1),
        (102, None, None),
        (105, b"f", 2),
    ]
    out = converted.quarantined.to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in out] == [
        (100, b"a", b"?"),
        (103, b"d", b""),
        (104, None, b'{"id":"x"}'),
        (106, b"g", b"["),
    ]
    assert all(row["schema_id"] is None and row["reason"] for row in out)
    assert out[0]["topic"] == "orders"
    assert out[0]["timestamp"].microsecond == 100_000


def test_keys_with_fields_are_a_struct() -> None:
    """A key that does not fit takes its record along; a null key is null."""
    key = FieldSpec("json", fields=parse_ddl("k int"))
    converted = Converter(ConverterSpec(JSON, key)).convert(
        batch([b'{"id":1}', b'{"id":2}', b'{"id":3}', b"?"], keys=[b'{"k":1}', None, b"k", b"k"])
    )
    rows = converted.rows.to_pylist()
    assert [(row["offset"], row["key"]) for row in rows] == [(100, {"k": 1}), (101, None)]
    reasons = converted.quarantined.column("reason").to_pylist()
    assert reasons == ["key: the value is not a JSON object", "the value is not a JSON object"]


def test_text_keys_no_keys_and_headers() -> None:
    """Columns are there when they are asked for."""
    spec = ConverterSpec(FieldSpec("string"), FieldSpec("string"), headers=True)
    converted = Converter(spec).convert(batch([b"v", b"\xff", b"w"], keys=[b"k", b"k", b"\xfe"]))
    assert converted.rows.select(["key", "headers", "value"]).to_pylist() == [
        {"key": "k", "headers": [{"key": "h", "value": b"1"}], "value": "v"}
    ]
    assert converted.quarantined.column("reason").to_pylist() == [
        "the value is not UTF-8 at byte 0",
        "key: the value is not UTF-8 at byte 0",
    ]
    assert "key" not in Converter(ConverterSpec(key=None)).row_schema.names


def test_a_null_value_cannot_be_where_a_column_must_not_be_null() -> None:
    """A deletion in a topic whose table has required columns."""
    required = FieldSpec("json", fields=parse_ddl("id int not null"))
    converted = Converter(ConverterSpec(required)).convert(batch([b'{"id":1}', None, b"{}"]))
    assert converted.rows.column("id").to_pylist() == [1]
    assert [
        reason.split(":")[0] for reason in converted.quarantined.column("reason").to_pylist()
    ] == [
        "the value is null, and id must not be",
        "JSON parse error",
    ]


def test_a_value_beyond_the_limit_is_quarantined_unread() -> None:
    """The limit is for values that would be copied several times."""
    spec = ConverterSpec(FieldSpec("json", fields=JSON.fields, max_value_bytes=8))
    converted = Converter(spec).convert(batch([b'{"id":1}', b'{"id":12}']))
    assert converted.rows.column("id").to_pylist() == [1]
    assert converted.quarantined.column("reason").to_pylist() == ["longer than 8 bytes"]
    raw = ConverterSpec(FieldSpec(max_value_bytes=1))
    assert Converter(raw).convert(batch([b"long"])).rows.column("value").to_pylist() == [b"long"]


def test_json_behind_a_registry_id() -> None:
    """Confluent's JSON serializer writes five bytes before the object."""
    framed = FieldSpec("json", "confluent", JSON.fields)
    values = [b"\0\0\0\0\7" + b'{"id":1}', b'{"id":2}', b"\0\0\1\0\7[]", b"\0\0", None]
    converted = Converter(ConverterSpec(framed)).convert(batch(values))
    assert converted.rows.column("id").to_pylist() == [1, None]
    out = converted.quarantined.to_pylist()
    assert [(row["offset"], row["schema_id"]) for row in out] == [
        (101, None),
        (102, 65543),
        (103, None),
    ]


def test_an_empty_batch_is_no_rows() -> None:
    """A range of markers only."""
    converted = Converter(ConverterSpec(JSON)).convert(batch([]))
    assert (converted.rows.num_rows, converted.quarantined.num_rows) == (0, 0)
    assert converted.rows.schema == Converter(ConverterSpec(JSON)).row_schema


def test_slices_and_large_binaries_are_read() -> None:
    """A batch may be a part of another one."""
    whole = batch([b"?", b'{"id":1}', b'{"id":2}', b"?"])
    converted = Converter(ConverterSpec(JSON)).convert(whole.slice(1, 2))
    assert converted.rows.column("offset").to_pylist() == [101, 102]
    assert converted.rows.column("id").to_pylist() == [1, 2]


def test_a_spec_is_pickled() -> None:
    """It goes to executors."""
    spec = ConverterSpec(JSON, None, headers=True)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_fields_that_tables_cannot_tell_apart_are_refused() -> None:
    """Spark, Delta and Iceberg look at names without their case."""
    spec = FieldSpec("json", fields=parse_ddl("id int, ID int"))
    with pytest.raises(ValueError, match="differ only in case or not at all: id, ID"):
        Converter(ConverterSpec(spec))
    with pytest.raises(ValueError, match="JSON needs a schema"):
        Converter(ConverterSpec(FieldSpec("json")))


def test_batches_of_rows_are_arrow_as_the_schema_says() -> None:
    """What sinks write is what they were told."""
    converter = Converter(ConverterSpec(JSON))
    for values in ([], [None], [b"?"], [b'{"id":1}', None, b"?"]):
        converted = converter.convert(batch(values))
        converted.rows.validate(full=True)
        converted.quarantined.validate(full=True)
        assert isinstance(converted.rows, pa.RecordBatch)
        assert converted.rows.schema == converter.row_schema
