"""Names of columns."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.schemas.columns import RESERVED, column_name, no_quarantine, value_columns
from pipeline.lake.schemas.ddl import parse_ddl

_NAMES = st.lists(st.sampled_from(["", "value_", "value_value_", "Value_"]), max_size=3).flatmap(
    lambda parts: st.sampled_from(["topic", "Offset", "id", "KEY"]).map("".join(parts).__add__)
)


@given(_NAMES, _NAMES)
def test_no_two_fields_become_one_column(one: str, other: str) -> None:
    """And none becomes a coordinate."""
    assert column_name(one).lower() not in RESERVED
    assert (column_name(one).lower() == column_name(other).lower()) == (
        one.lower() == other.lower()
    )


def test_other_names_stay() -> None:
    """Only what is taken is renamed."""
    assert value_columns([pa.field("id", pa.int8()), pa.field("Key", pa.int8())]).names == [
        *("id", "value_Key"),
    ]
    with pytest.raises(ValueError, match="differ only in case"):
        value_columns([pa.field("a", pa.int8()), pa.field("A", pa.int8())])
    for ddl in ("o struct<x: int, X: int>", "o array<map<string, struct<x: int, X: int>>>"):
        with pytest.raises(ValueError, match=r"not at all: o\.x, o\.X"):
            value_columns(parse_ddl(ddl))
    assert len(value_columns(parse_ddl("o struct<o: struct<o: int>>, p struct<o: int>"))) == 2


def test_an_empty_quarantine_has_its_columns() -> None:
    """So that whoever writes it looks at one schema."""
    assert no_quarantine().num_rows == 0
