"""Columns as text, there and back."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.schemas.ddl import SchemaTextError, parse_ddl
from tests.unit.pipeline.lake.ddl_text import to_ddl

_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
_SIMPLE = st.sampled_from(
    [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
        *(pa.decimal128(38, 38), pa.decimal128(1, 0)),
    ]
)


def _fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    columns = st.builds(pa.field, _NAMES, types, nullable=st.booleans())
    return st.lists(columns, min_size=1, max_size=3, unique_by=lambda field: field.name)


_TYPES = st.recursive(
    _SIMPLE,
    lambda inner: st.one_of(
        inner.map(pa.list_), st.builds(pa.map_, _SIMPLE, inner), _fields(inner).map(pa.struct)
    ),
    max_leaves=6,
)


@given(_fields(_TYPES).map(pa.schema))
def test_a_schema_comes_back_from_its_text(schema: pa.Schema) -> None:
    """Whatever its names are; what is inferred is kept as text."""
    assert parse_ddl(to_ddl(schema)).equals(schema)


def test_spellings_of_spark_are_known() -> None:
    """A schema is often copied from a notebook."""
    spelt = parse_ddl("A LONG, b: Integer NOT NULL,\n `c ``d` numeric(5), e ARRAY<Struct<>>")
    assert spelt.equals(
        pa.schema(
            [
                pa.field("A", pa.int64()),
                pa.field("b", pa.int32(), nullable=False),
                pa.field("c `d", pa.decimal128(5, 0)),
                pa.field("e", pa.list_(pa.struct([]))),
            ]
        )
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at least one column"),
        ("id", "position 2, at 'the end': a type is expected: boolean, tinyint"),
        ("id bigint x", "position 10, at 'x': a comma or the end is expected"),
        ("id bigint,", "a column is expected after the comma"),
        ("id number", "at 'number': a type is expected"),
        ("id int, id int", "id is there twice"),
        ("id int not", "'null' is expected after 'not'"),
        ("a array<int", "'>' is expected"),
        ("a map<int>", "',' is expected"),
        ("a decimal(39,1)", "needs 1 <= p <= 38"),
        ("a decimal(3,4)", "s <= p"),
        ("a decimal(x)", "a number is expected"),
        ("a int; b int", "at ';': this is no part of a schema"),
        ("a `int`", "a type is expected"),
        ("a " + "array<" * 60 + "int" + ">" * 60, "nested more than 50 deep"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, problem: str) -> None:
    """The text is somebody's job file."""
    with pytest.raises(SchemaTextError) as raised:
        parse_ddl(text)
    assert problem in str(raised.value)


def test_a_type_that_tables_have_not_has_no_text() -> None:
    """Delta and Iceberg have no unsigned numbers."""
    with pytest.raises(ValueError, match="no type uint8"):
        to_ddl(pa.schema([("a", pa.uint8())]))
