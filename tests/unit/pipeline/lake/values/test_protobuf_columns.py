"""Protobuf's types as columns."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lake.schemas.protobuf_schema import ProtobufSchemaError
from pipeline.lake.values.protobuf import protobuf_of_file
from tests.fakes.lake.proto_messages import classes, definition, file, map_entry, message
from tests.unit.pipeline.lake.ddl_text import to_ddl

GOOGLE = tuple(
    f"google/protobuf/{n}.proto" for n in ("timestamp", "wrappers", "struct", "duration")
)
POINT = message("Point", "int32 x", "repeated string tags")
ALL = message(
    "All",
    *("double d", "float f", "int32 i", "sint64 l", "uint32 u", "uint64 big", "bool b"),
    *("string s", "bytes y", "enum:t.Color c", "optional int32 maybe"),
    *("oneof string left", "oneof t.Point right", "t.Point p", "repeated t.Point ps"),
    *("repeated int64 ns", "repeated enum:t.Color cs", "repeated t.All.MEntry m"),
    *("repeated t.All.NEntry n", "google.protobuf.Timestamp at", "google.protobuf.Int32Value w"),
    *("repeated google.protobuf.StringValue ws", "google.protobuf.Struct j"),
    *("google.protobuf.Duration took", "t.Empty nothing", "repeated t.Empty nothings"),
    nested=(map_entry("MEntry", "string", "int64"), map_entry("NEntry", "int32", "t.Point")),
)
FILE = file(
    "all.proto",
    ALL,
    POINT,
    message("Empty"),
    imports=GOOGLE,
    enums={"Color": {0: "RED", 2: "BLUE"}},
)
All = classes(FILE)["t.All"]


def _rows(*messages: Any) -> list[dict[str, Any]]:
    reader = protobuf_of_file(definition(FILE), "t.All", indexed=False)
    values = pa.array([m.SerializeToString() for m in messages], pa.binary())
    batch = pa.RecordBatch.from_arrays(reader.read(values), schema=reader.written)
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def test_types_become_columns() -> None:
    """The table of the module; messages without fields have none."""
    written = protobuf_of_file(definition(FILE), "t.All", indexed=False).written
    point = "struct<x: int, tags: array<string>>"
    assert to_ddl(written).split(", ", 11)[:11] == [
        *("d double", "f float", "i int", "l bigint", "u bigint", "big decimal(20,0)"),
        *("b boolean", "s string", "y binary", "c string", "maybe int"),
    ]
    assert to_ddl(written).split(", ", 11)[11] == (
        f"`left` string, `right` {point}, p {point}, ps array<{point}>, ns array<bigint>, "
        f"cs array<string>, m map<string,bigint>, n map<int,{point}>, at timestamp, w int, "
        "ws array<string>, j string, took struct<seconds: bigint, nanos: int>"
    ).replace("`", "")


def test_a_full_message_is_a_row() -> None:
    """Every kind of field."""
    full = All(d=1.5, f=2.5, i=-1, l=-(2**60), u=2**32 - 1, big=2**64 - 1, b=True, s="é", y=b"\xff")
    full.c, full.maybe = 2, 0
    full.right.x = 7
    full.p.tags.extend(["a", "b"])
    full.ps.add(x=1)
    full.ps.add(tags=["z"])
    full.ns.extend([3, 4])
    full.cs.extend([0, 9])
    full.m["k"], full.m["a"] = 5, 6
    full.n[3].x = 9
    full.at.seconds, full.at.nanos = -1, 999_999_999
    full.w.value = 0
    full.ws.add(value="w")
    full.j["key"] = "välue"
    full.took.seconds = 3
    (row,) = _rows(full)
    assert row == {
        "d": 1.5, "f": 2.5, "i": -1, "l": -(2**60), "u": 2**32 - 1, "big": Decimal(2**64 - 1),
        "b": True, "s": "é", "y": b"\xff", "c": "BLUE", "maybe": 0,
        "left": None, "right": {"x": 7, "tags": []}, "p": {"x": 0, "tags": ["a", "b"]},
        "ps": [{"x": 1, "tags": []}, {"x": 0, "tags": ["z"]}], "ns": [3, 4], "cs": ["RED", "9"],
        "m": [("a", 6), ("k", 5)], "n": [(3, {"x": 9, "tags": []})],
        "at": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        "w": 0, "ws": ["w"], "j": '{"key": "välue"}', "took": {"seconds": 3, "nanos": 0},
    }  # fmt: skip


def test_fields_without_a_value_are_null_where_that_can_be_told() -> None:
    """Others have their default, as every reader of the message sees it."""
    empty = {
        "d": 0.0, "f": 0.0, "i": 0, "l": 0, "u": 0, "big": Decimal(0), "b": False, "s": "",
        "y": b"", "c": "RED", "maybe": None,
        "left": None, "right": None, "p": None, "ps": [], "ns": [],
        "cs": [], "m": [], "n": [], "at": None, "w": None, "ws": [], "j": None, "took": None,
    }  # fmt: skip
    rows = _rows(All(), All(left=""), All())
    assert rows == [empty, {**empty, "left": ""}, empty]
    assert _rows() == []


def test_messages_without_columns_are_refused() -> None:
    """They hold themselves, or nothing."""
    tree = file("tree.proto", message("Tree", "t.Node n"), message("Node", "repeated t.Tree kids"))
    for name, described, problem in [
        ("t.Tree", tree, r"t\.Tree holds itself"),
        ("t.Empty", FILE, r"t\.Empty has no field"),
    ]:
        with pytest.raises(ProtobufSchemaError, match=problem):
            protobuf_of_file(definition(described), name, indexed=False)
