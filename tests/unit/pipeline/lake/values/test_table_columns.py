"""Where the columns of a table come from."""

import pyarrow as pa
import pytest

from pipeline.lake.schemas.columns import plain_type
from pipeline.lake.schemas.ddl import SchemaTextError, parse_ddl
from pipeline.lake.schemas.evolution import SchemaChangeError
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.values.converter import Converter
from pipeline.lake.values.table_columns import FieldSettings, TableColumns, check_settings
from tests.unit.pipeline.lake.ddl_text import to_ddl

JSON = FieldSettings("json")
RAW = FieldSettings()


def _fields(spec: ConverterSpec) -> str:
    assert spec.value.fields is not None
    return to_ddl(spec.value.fields)


def _sample(side: str) -> list[bytes | None]:
    if side == "key":
        return [b'{"k":"x"}', None]
    return [None, b'{"id":1}', b'{"id":2,"timestamp":"now"}']


def test_what_is_inferred_is_fixed_by_the_table() -> None:
    """The second run asks nobody for a sample, and finds the fields by the columns."""
    first = TableColumns(JSON, JSON, sample=_sample).spec(None)
    assert _fields(first) == "id bigint, timestamp string"
    assert first.key is not None
    assert first.key.fields == parse_ddl("k string")
    table = Converter(first).row_schema
    assert table.names[-2:] == ["id", "value_timestamp"]

    def refused(side: str) -> list[bytes | None]:
        raise AssertionError(side)

    assert TableColumns(JSON, JSON, sample=refused).spec(table) == first


def test_a_given_schema_makes_the_table_and_adds_to_it() -> None:
    """Somebody gives a new file; the table's columns stay in front."""
    given = JSON._replace(definition=b"b int, a bigint")
    made = TableColumns(given, RAW).spec(None)
    assert _fields(made) == "b int, a bigint"
    table = pa.schema([*Converter(made).row_schema, pa.field("old", pa.string())])
    wider = JSON._replace(definition=b"a string, b bigint, c int")
    assert _fields(TableColumns(wider, RAW).spec(table)) == "b int, a bigint, old string, c int"
    assert _fields(TableColumns(wider, RAW, widen=True).spec(table)) == (
        "b bigint, a bigint, old string, c int"
    )


def test_types_of_tables_are_known_in_all_their_forms() -> None:
    """Libraries give views, large strings and other units for the same columns."""
    table = pa.schema(
        [
            pa.field("topic", pa.large_string()),
            pa.field("KEY", pa.large_binary()),
            pa.field("a", pa.large_list(pa.field("element", pa.string_view()))),
            pa.field("value_offset", pa.dictionary(pa.int32(), pa.large_string())),
            pa.field("t", pa.timestamp("ns", "+00:00")),
        ]
    )
    assert _fields(TableColumns(JSON).spec(table)) == (
        "a array<string>, offset string, t timestamp"
    )
    nested = pa.map_(pa.large_string(), pa.struct([("b", pa.binary_view())]))
    assert plain_type(nested) == pa.map_(pa.string(), pa.struct([("b", pa.binary())]))


def test_raw_tables_have_no_fields() -> None:
    """Keys, headers and values as they are."""
    spec = TableColumns(RAW, FieldSettings("string"), headers=True).spec(None)
    assert Converter(spec).row_schema.names[4:] == ["key", "headers", "value"]
    assert TableColumns(RAW).spec(None).key is None


def test_mistakes_are_errors_of_the_job() -> None:
    """Before anything is written."""
    with pytest.raises(SchemaTextError, match="a type is expected"):
        TableColumns(JSON._replace(definition=b"a number")).spec(None)
    for definition, problem in [
        (b"a map<string, int>", "a: JSON has no map"),
        (b"a int, A int", "not at all: a, A"),
    ]:
        with pytest.raises(ValueError, match=problem):
            check_settings(JSON._replace(definition=definition), "value")
    with pytest.raises(ValueError, match=r"not at all: o\.x, o\.X"):
        TableColumns(JSON, sample=lambda side: [b'{"o": {"x": 1, "X": 2}}']).spec(None)
    with pytest.raises(SchemaChangeError, match="a is int32 in the table"):
        TableColumns(JSON._replace(definition=b"a array<int>")).spec(parse_ddl("a int"))
    with pytest.raises(ValueError, match="value: no sampled value is a JSON object"):
        TableColumns(JSON).spec(None)
