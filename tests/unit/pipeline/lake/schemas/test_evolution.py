"""Columns follow a schema: added and widened, never dropped."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.schemas.ddl import parse_ddl
from pipeline.lake.schemas.evolution import SchemaChangeError, followed, holds
from tests.unit.pipeline.lake.ddl_text import to_ddl


def _followed(table: str, wanted: str, *, widen: bool = True) -> str:
    return to_ddl(followed(parse_ddl(table), parse_ddl(wanted), widen=widen))


@pytest.mark.parametrize(
    ("table", "wanted", "result"),
    [
        ("a int", "a int, b string not null", "a int, b string"),
        ("a int, b string", "a int", "a int, b string"),
        ("b int, a int", "a int, b int", "b int, a int"),
        ("a int", "a bigint", "a bigint"),
        ("a bigint", "a tinyint", "a bigint"),
        ("a float", "a double", "a double"),
        ("a double", "a float", "a double"),
        ("a decimal(5,2)", "a decimal(9,2)", "a decimal(9,2)"),
        ("a decimal(5,2)", "a decimal(9,3)", "a decimal(5,2)"),
        ("a int", "a string", "a int"),
        ("a struct<x: int>", "a struct<y: int, x: bigint>", "a struct<x: bigint, y: int>"),
        ("a array<struct<x: int>>", "a array<struct<z: int>>", "a array<struct<x: int, z: int>>"),
        ("a map<string,int>", "a map<string,bigint>", "a map<string,bigint>"),
        ("a int not null", "a int", "a int not null"),
    ],
)
def test_columns_are_added_and_widened(table: str, wanted: str, result: str) -> None:
    """Those of the table first, in its order."""
    assert _followed(table, wanted) == result


def test_a_table_that_cannot_be_widened_keeps_its_types() -> None:
    """What does not fit then is quarantined, value by value."""
    assert _followed(
        "a int, s struct<x: float>", "a bigint, s struct<x: double, y: int>", widen=False
    ) == ("a int, s struct<x: float, y: int>")


def test_what_cannot_be_followed_is_told() -> None:
    """All of it at once."""
    with pytest.raises(SchemaChangeError) as raised:
        _followed("a int not null, b array<int>, c struct<d: struct<x: int>>",
                  "b string, c struct<d: int>")  # fmt: skip
    assert str(raised.value).split("; ") == [
        "a must not be null, and the schema has none",
        "b is list<item: int32> in the table and string in the schema",
        "c.d is struct<x: int32> in the table and int32 in the schema",
    ]


_TYPES = st.recursive(
    st.sampled_from(["tinyint", "int", "bigint", "float", "double", "string", "decimal(9,2)"]),
    lambda inner: st.one_of(
        inner.map("array<{}>".format),
        inner.map("map<string,{}>".format),
        st.dictionaries(st.sampled_from("xyz"), inner, min_size=1, max_size=2).map(
            lambda fields: f"struct<{', '.join(f'{name}: {t}' for name, t in fields.items())}>"
        ),
    ),
    max_leaves=4,
)
_SCHEMAS = st.dictionaries(st.sampled_from("abc"), _TYPES, min_size=1, max_size=3).map(
    lambda columns: ", ".join(f"{name} {kind}" for name, kind in columns.items())
)


@given(_SCHEMAS, _SCHEMAS, st.booleans())
def test_nothing_is_dropped_and_following_again_changes_nothing(
    table: str, wanted: str, widen: bool
) -> None:
    """The result holds all that the table had."""
    try:
        result = followed(parse_ddl(table), parse_ddl(wanted), widen=widen)
    except SchemaChangeError:
        return
    for field in parse_ddl(table):
        kept = result.field(field.name).type
        assert holds(kept, field.type)
        if not widen and not pa.types.is_nested(kept):
            assert kept.equals(field.type)
    assert set(result.names) == {*parse_ddl(table).names, *parse_ddl(wanted).names}
    assert followed(result, parse_ddl(wanted), widen=widen).equals(result)


def test_holding() -> None:
    """A schema has something new when the table has no place for it."""
    struct = parse_ddl("s struct<a: bigint, b: array<string>>").field(0).type
    for text, held in [
        ("struct<a: int>", True),
        ("struct<a: int, b: array<string>>", True),
        ("struct<a: int, c: int>", False),
        ("struct<b: array<int>>", False),
        ("struct<a: double>", False),
        ("string", False),
    ]:
        assert holds(struct, parse_ddl(f"s {text}").field(0).type) == held
