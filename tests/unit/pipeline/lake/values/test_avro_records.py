"""Unions of several types, record by record."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pipeline.lake.schemas.avro_schema import parse_avro_schema
from pipeline.lake.values.avro_records import MAX_RECORD_BYTES, AvroRecords
from pipeline.lake.values.block_parsing import BrokenBlockError


def _read(schema: Any, values: list[Any]) -> list[Any]:
    parsed = fastavro.parse_schema(schema)
    written = []
    for value in values:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, value)
        written.append(file.getvalue())
    node = parse_avro_schema(json.dumps(schema))
    (array,) = AvroRecords(node).read(pa.array(written, pa.binary()))
    assert array.type == node.arrow
    found: list[Any] = array.to_pylist()
    return found


A = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}
B = {"type": "record", "name": "B", "fields": [{"name": "x", "type": "string"}]}
E1 = {"type": "enum", "name": "E1", "symbols": ["u", "v"]}
F1 = {"type": "fixed", "name": "F1", "size": 1}


def test_members_of_a_union_are_fields() -> None:
    """As Spark's `from_avro` names them; a null is null as a whole."""
    found = _read(
        ["null", A, B, "string", E1, "bytes", F1, "boolean", {"type": "array", "items": "long"}],
        [None, ("A", {"x": 1}), ("B", {"x": "y"}), "s", ("E1", "v"), b"b", ("F1", b"f"), True, [1]],
    )
    assert found[0] is None
    told = [{k: v for k, v in row.items() if v is not None} for row in found[1:]]
    assert told == [
        *({"member0": {"x": 1}}, {"member1": {"x": "y"}}, {"member2": "s"}, {"member3": "v"}),
        *({"member4": b"b"}, {"member5": b"f"}, {"member6": True}, {"member7": [1]}),
    ]


def test_two_numbers_are_the_wider_one() -> None:
    """As in Spark."""
    assert _read(["int", "null", "long"], [1, None, 2**40]) == [1, None, 2**40]
    assert _read(["float", "double"], [1.5, 1e300]) == [1.5, 1e300]
    assert _read(["int", "string", "long"], [1, "x", 2**40]) == [
        {"member0": None, "member1": None, "member2": 1},
        {"member0": None, "member1": "x", "member2": None},
        {"member0": None, "member1": None, "member2": 2**40},
    ]


def test_one_branch_is_no_union() -> None:
    """And maps of unions are maps."""
    assert _read(["string"], ["x"]) == ["x"]
    assert _read({"type": "map", "values": ["int", "string"]}, [{"a": 1, "b": "x"}]) == [
        [("a", {"member0": 1, "member1": None}), ("b", {"member0": None, "member1": "x"})]
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        *((b"", "not a record"), (b"\2\2x\0", "1 bytes behind"), (b"\x08\2", "not a record")),
        (b"\2" + bytes(MAX_RECORD_BYTES), "longer than 262144 bytes"),
    ],
)
def test_what_is_no_record_is_told_with_its_place(data: bytes, problem: str) -> None:
    """The block is cut around it."""
    reader = AvroRecords(parse_avro_schema('["int", "string"]'))
    with pytest.raises(BrokenBlockError) as raised:
        reader.read(pa.array([b"\2\2x", data], pa.binary()))
    assert raised.value.row == 1
    assert problem in raised.value.reason
