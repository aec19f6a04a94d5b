"""Avro's schemas as columns."""

import json
from typing import Any

import pytest

from pipeline.lake.schemas.avro_schema import AvroSchemaError, avro_fields, parse_avro_schema
from tests.unit.pipeline.lake.ddl_text import to_ddl


def _record(*types: Any, name: str = "a.R") -> dict[str, Any]:
    fields = [{"name": f"f{n}", "type": kind} for n, kind in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def _columns(schema: Any) -> str:
    return to_ddl(avro_fields(parse_avro_schema(json.dumps(schema)))[0])


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        ("int", "int"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "bigint"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "decimal(5,2)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50}, "binary"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 9}, "binary"),
        ({"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9},
         "decimal(9,0)"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "map", "values": ["null", "double"]}, "map<string,double>"),
        ({"type": "array", "items": {"type": "array", "items": "bytes"}}, "array<array<binary>>"),
        ({"type": {"type": "string"}}, "string"),
        (_record("float", name="S"), "struct<f0: float>"),
        (["null", "int", "long"], "bigint"),
        (["int", "string"], "struct<member0: int, member1: string>"),
    ],
)  # fmt: skip
def test_types_become_columns(kind: Any, ddl: str) -> None:
    """The table of the module."""
    assert _columns(_record(kind)) == f"f0 {ddl}"


def test_names_are_found_in_their_namespace() -> None:
    """A type may be used again, by its short name within its namespace."""
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    assert _columns(_record(inner, "E", "a.E")) == "f0 string, f1 string, f2 string"
    with pytest.raises(AvroSchemaError, match=r"f1: b\.E is no type"):
        _columns(_record(inner, "b.E"))


def test_references_bring_their_names() -> None:
    """As a registry gives them: texts by name."""
    other = json.dumps(_record("int", name="b.Other"))
    found = parse_avro_schema(json.dumps(_record("b.Other")), {"b.Other": other})
    assert to_ddl(avro_fields(found)[0]) == "f0 struct<f0: int>"
    with pytest.raises(AvroSchemaError, match=r"reference b\.Other"):
        parse_avro_schema(json.dumps(_record("b.Other")), {"b.Other": "{"})


def test_a_schema_without_fields_is_one_column() -> None:
    """Keys are often just text."""
    for text in ('"string"', '{"type":"string"}', "string"):
        fields, bare = avro_fields(parse_avro_schema(text), "key")
        assert bare
        assert to_ddl(fields) == "key string"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "not JSON"),
        ('"text"', "text is no type"),
        ("5", "a type is expected, not 5"),
        ('{"type":"record","fields":[]}', "a record without a name"),
        ('{"type":"record","name":"R"}', "record R has no fields"),
        (json.dumps(_record(["null", "R"], name="R")), "f0: R holds itself"),
        (json.dumps(_record(_record("int", name="a.R"))), "f0: a.R is defined twice"),
        (json.dumps(_record(["null"])), "f0: a union without values"),
        (json.dumps(_record({"type": "array", "items": "null"})), "f0: an array of values that"),
        (json.dumps(_record({"type": "array", "items": _record(name="E")})), "take no bytes"),
        (json.dumps(_record([["null", "int"]])), "a union within a union"),
        ('{"type":"fixed","name":"F","size":-1}', "fixed F has no size"),
        ('{"type":"enum","name":"E"}', "enum E has no symbols"),
        ("[" * 60 + '"int"' + "]" * 60, "nested more than 50 deep"),
        ('{"type":"record","name":"R","fields":[{"type":"int"}]}', "a field without a name"),
    ],
)
def test_what_is_no_schema_is_told(schema: str, problem: str) -> None:
    """With the path to it."""
    with pytest.raises(AvroSchemaError) as raised:
        parse_avro_schema(schema)
    assert problem in str(raised.value)


def test_a_schema_without_columns_is_refused() -> None:
    """There would be nothing to keep."""
    for schema in (_record(), "null"):
        with pytest.raises(AvroSchemaError):
            avro_fields(parse_avro_schema(json.dumps(schema)))
