"""What a sample tells of columns, and when it does not."""

import json
from typing import Any

import pytest

from pipeline.lake.schemas import json_schema
from pipeline.lake.schemas.json_schema import InferenceError, infer_json_schema
from tests.unit.pipeline.lake.ddl_text import to_ddl


def _inferred(*documents: Any) -> str:
    return to_ddl(infer_json_schema(json.dumps(document).encode() for document in documents))


@pytest.mark.parametrize(
    ("documents", "ddl"),
    [
        ([{"id": 1, "name": "x", "ok": True}], "id bigint, name string, ok boolean"),
        ([{"n": 1}, {"n": 1.5}], "n double"),
        ([{"n": 2**63 - 1}, {"n": -(2**63)}], "n bigint"),
        ([{"n": 2**63}], "n decimal(38,0)"),
        ([{"n": 10**40}], "n double"),
        ([{"b": None}, {"a": 1}], "b string, a bigint"),
        ([{"t": "2024-01-01T00:00:00Z"}], "t string"),
        ([{"l": []}, {"l": [1, None]}], "l array<bigint>"),
        ([{"l": []}], "l array<string>"),
        ([{"l": [{"x": 1}, {"y": "z"}]}], "l array<struct<x: bigint, y: string>>"),
        ([{"o": {}, "e": [{}], "a": 1}], "a bigint"),
        ([{"o": {"p": {"q": True}}}, {"o": None}], "o struct<p: struct<q: boolean>>"),
    ],
)
def test_kinds_become_types(documents: list[Any], ddl: str) -> None:
    """Fields in the order in which they are first seen."""
    assert _inferred(*documents) == ddl


def test_what_is_no_object_does_not_count() -> None:
    """Such records would be quarantined."""
    schema = infer_json_schema([None, b"", b"\xff", b"[1]", b"{", b'{"b":1,"b":"x"}', b'{"a":1}'])
    assert schema.names == ["a"]


def test_nine_in_ten_decide() -> None:
    """One bad record among the first ones must not decide what all others are."""
    assert _inferred(*[{"a": 1}] * 9, {"a": "x"}) == "a bigint"
    with pytest.raises(InferenceError) as raised:
        _inferred(*[{"a": {"b": 1}}] * 8, {"a": {"b": "x"}})
    assert str(raised.value) == "field a.b is bigint 8 times, string 1 times: give a schema"


def test_a_sample_that_tells_nothing_is_an_error() -> None:
    """A job must not begin with a table without columns."""
    with pytest.raises(InferenceError, match="no sampled value is a JSON object"):
        infer_json_schema([b"x", None])
    with pytest.raises(InferenceError, match="all empty"):
        infer_json_schema([b"{}", b'{"a":{}}'])


def test_objects_used_as_maps_are_no_columns() -> None:
    """Their keys have no end."""
    with pytest.raises(InferenceError, match="more than 1000 fields"):
        _inferred({f"user-{n}": {"x": 1} for n in range(600)})
    deep: Any = 1
    for _ in range(60):
        deep = {"d": deep}
    with pytest.raises(InferenceError, match="nested more than 50 deep"):
        _inferred(deep)


def test_a_sample_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many records somebody passes."""
    monkeypatch.setattr(json_schema, "MAX_SAMPLED_RECORDS", 2)
    assert _inferred({"a": 1}, {"b": 1}, {"c": 1}) == "a bigint, b bigint"
    monkeypatch.setattr(json_schema, "MAX_SAMPLED_BYTES", 5)
    assert _inferred({"a": 1}, {"b": 1}) == "a bigint"
