"""Avro in blocks against records one by one, by another library, and against hostile bytes."""

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.lake.schemas.avro_schema import Record, parse_avro_schema
from pipeline.lake.values.avro_blocks import AvroBlocks, has_blocks
from pipeline.lake.values.avro_records import AvroRecords
from pipeline.lake.values.block_parsing import BrokenBlockError, parse_in_blocks
from storage.environment.randomness import SeededRandomness
from tests.effort import examples

Schema = Any


def _named(kind: str) -> Callable[..., dict[str, Any]]:
    """A named type; every one gets a name of its own."""
    names = iter(range(10**9))
    return lambda **rest: {"type": kind, "name": f"{kind}{next(names)}", **rest}


_RECORD, _ENUM, _FIXED = _named("record"), _named("enum"), _named("fixed")

_SIMPLE: st.SearchStrategy[tuple[Schema, st.SearchStrategy[Any]]] = st.one_of(
    st.sampled_from(
        [
            ("boolean", st.booleans()),
            ("int", st.integers(-(2**31), 2**31 - 1)),
            ("long", st.integers(-(2**63), 2**63 - 1)),
            ("float", st.floats(width=32)),
            ("double", st.floats()),
            ("string", st.text(max_size=5)),
            ("bytes", st.binary(max_size=5)),
            ({"type": "int", "logicalType": "date"}, st.integers(-(2**31), 2**31 - 1)),
            ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(10**15), 10**15)),
            ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(-(2**63), 2**63 - 1)),
            ({"type": "long", "logicalType": "local-timestamp-millis"}, st.integers(-9, 9)),
            (
                {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                st.integers(-(10**9) + 1, 10**9 - 1).map(
                    lambda n: n.to_bytes(5, "big", signed=True)
                ),
            ),
        ]
    ),
    st.builds(lambda: (_ENUM(symbols=["A", "B", "C"]), st.sampled_from("ABC"))),
    st.builds(lambda: (_FIXED(size=3), st.binary(min_size=3, max_size=3))),
    st.builds(
        lambda: (
            _FIXED(size=2, logicalType="decimal", precision=4, scale=1),
            st.integers(-9999, 9999).map(lambda n: n.to_bytes(2, "big", signed=True)),
        )
    ),
)


def _record(fields: list[tuple[Schema, st.SearchStrategy[Any]]]) -> tuple[Schema, Any]:
    named = [{"name": f"n{at}", "type": schema} for at, (schema, _) in enumerate(fields)]
    values = {f"n{at}": value for at, (_, value) in enumerate(fields)}
    return _RECORD(fields=named), st.fixed_dictionaries(values)


def _wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda i: ({"type": "array", "items": i[0]}, st.lists(i[1], max_size=3))),
        inner.map(
            lambda i: (
                {"type": "map", "values": i[0]},
                st.dictionaries(st.text(max_size=2), i[1], max_size=2),
            )
        ),
        st.lists(inner, min_size=1, max_size=3).map(_record),
    )


def _nullable(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner,
        inner.map(lambda i: (["null", i[0]], st.none() | i[1])),
        inner.map(lambda i: ([i[0], "null"], st.none() | i[1])),
    )


_TYPES = st.recursive(_nullable(_SIMPLE), lambda inner: _nullable(_wrapped(inner)), max_leaves=6)
_RECORDS = st.lists(_TYPES, min_size=1, max_size=4).map(_record)


def _plain(schema: Schema) -> Schema:
    """Without logical types: values are written as they are."""
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key != "logicalType"}
    if "fields" in plain:
        plain["fields"] = [{**field, "type": _plain(field["type"])} for field in plain["fields"]]
    for key in ("items", "values"):
        if key in plain:
            plain[key] = _plain(plain[key])
    return plain


def _written(schema: Schema, values: list[Any]) -> list[bytes]:
    parsed = fastavro.parse_schema(_plain(schema))
    written = []
    for value in values:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, value)
        written.append(file.getvalue())
    return written


def _columns(reader: AvroBlocks | AvroRecords, values: list[bytes]) -> list[list[Any]]:
    arrays = reader.read(pa.array(values, pa.binary()))
    for array in arrays:
        array.validate(full=True)
    return [_bare(array).to_pylist() for array in arrays]


def _bare(array: pa.Array) -> pa.Array:
    """Times as numbers: Python's cannot be as far away as Arrow's."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array.cast(pa.int64())
    if pa.types.is_date(kind):
        return array.cast(pa.int32())
    if pa.types.is_struct(kind):
        children = [_bare(child) for child in array.flatten()]
        names = [field.name for field in kind]
        return pa.StructArray.from_arrays(children, names, mask=array.is_null())
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, _bare(array.values), mask=array.is_null())
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(
            array.offsets, array.keys, _bare(array.items), mask=array.is_null()
        )
    return array


@examples(150)
@given(_RECORDS.flatmap(lambda r: st.tuples(st.just(r[0]), st.lists(r[1], min_size=1, max_size=5))))
def test_blocks_are_the_records_one_by_one(case: tuple[Schema, list[Any]]) -> None:
    """For every schema that has blocks, and every type within."""
    schema, values = case
    node = parse_avro_schema(json.dumps(schema))
    assert has_blocks(node)
    written = _written(schema, values)
    found = _columns(AvroBlocks(node, SeededRandomness(1)), written)
    assert repr(found) == repr(_columns(AvroRecords(node), written))
    arrays = AvroBlocks(node, SeededRandomness(2)).read(pa.array(written, pa.binary()))
    assert [array.type for array in arrays] == [field.type for field in node.arrow]


FIXED = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    ],
}
NODE = parse_avro_schema(json.dumps(FIXED))
_ROW = st.fixed_dictionaries(
    {
        "id": st.integers(-5, 5),
        "name": st.text(max_size=3),
        "tags": st.lists(st.integers(-2, 2), max_size=2),
        "kind": st.sampled_from("AB"),
    }
)
GOOD = _written(FIXED, [{"id": 1, "name": "n", "tags": [7], "kind": "B"}])[0]


def _broken(data: tuple[bytes, int, int, bytes]) -> bytes:
    value, at, length, other = data
    return value[:at] + other + value[at + length :]


_BYTES = st.one_of(
    _ROW.map(lambda row: _written(FIXED, [row])[0]),
    st.tuples(
        _ROW.map(lambda row: _written(FIXED, [row])[0]),
        st.integers(0, 12),
        st.integers(0, 3),
        st.binary(max_size=3),
    ).map(_broken),
    st.binary(max_size=12),
)


@examples(300)
@given(st.lists(_BYTES, max_size=8))
@example([GOOD + GOOD, GOOD[:-1], GOOD])
@example([GOOD[:-1], GOOD[-1:] + GOOD, b"", GOOD])
@example([b"\2\xfe\xff\xff\xff\x0f", GOOD, b"\2\2n\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"])
def test_hostile_bytes_move_no_row(values: list[bytes]) -> None:
    """Each value alone is a row or not; in a block it is the same row, at its own place."""

    def alone(value: bytes) -> list[list[Any]] | None:
        try:
            return _columns(AvroRecords(NODE), [value])
        except BrokenBlockError:
            return None

    blocks = AvroBlocks(NODE, SeededRandomness(3))
    parts, reasons = parse_in_blocks(
        pa.array(values, pa.binary()),
        lambda block: (
            pa.RecordBatch.from_arrays(blocks.read(block), list(NODE.arrow.names))
            if isinstance(NODE, Record)
            else None
        ),
    )
    rows = [row for part in parts if part is not None for row in part.to_pylist()]
    wanted = {at: row for at, value in enumerate(values) if (row := alone(value)) is not None}
    found = dict(zip([at for at in range(len(values)) if at not in reasons], rows, strict=True))
    assert set(found) == set(wanted)
    for at, row in found.items():
        assert [[column] for column in row.values()] == wanted[at]


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
TWO_DIGITS = {"type": "bytes", "logicalType": "decimal", "precision": 2}


def test_a_mark_cannot_be_guessed() -> None:
    """Who knew it could end a record of his own within another one."""
    node = parse_avro_schema('{"type":"record","name":"R","fields":[{"name":"s","type":"bytes"}]}')
    values = pa.array([b"\2x", b"\2y"], pa.binary())
    first, second = SeededRandomness(1), SeededRandomness(1)
    AvroBlocks(node, first).read(values)
    AvroBlocks(node, second).read(values)
    AvroBlocks(node, second).read(values)
    assert first.token_bytes(8) != second.token_bytes(8)


@pytest.mark.parametrize(
    ("schema", "data", "problem"),
    [
        ("int", b"\x80\x80\x80\x80\x20", "not in range"),
        ("boolean", b"\2", "neither 0 nor 1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\2", "E has 1 symbols"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\1", "E has 1 symbols"),
        ("string", b"\2\xff", "not a record of its schema"),
        ("string", b"\6ab", "not a record of its schema"),
        ("long", b"\2\2", "longer or shorter than a record"),
        (MILLIS, b"\xfe" + b"\xff" * 8 + b"\1", "out of bounds"),
        (TWO_DIGITS, b"\2\x64", "more than 2 digits"),
    ],
)  # fmt: skip
def test_a_value_that_is_none_is_told(schema: Schema, data: bytes, problem: str) -> None:
    """Numbers are not cut to those that fit."""
    blocks = AvroBlocks(parse_avro_schema(json.dumps(schema)), SeededRandomness(4))
    with pytest.raises(BrokenBlockError) as raised:
        blocks.read(pa.array([data], pa.binary()))
    assert problem in raised.value.reason


@pytest.mark.parametrize(
    ("schema", "has"),
    [
        (["null", "int"], True),
        (["int"], False),
        (["int", "string"], False),
        (["null", "int", "string"], False),
        ({"type": "map", "values": ["int", "string"]}, False),
        ({"type": "fixed", "name": "F", "size": 0}, False),
    ],
)
def test_unions_of_several_have_no_blocks(schema: Schema, has: bool) -> None:
    """Polars has no words for them."""
    assert has_blocks(parse_avro_schema(json.dumps(schema))) == has
