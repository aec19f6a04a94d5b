"""Tables line up, sizes and ranges are short."""

import pytest

from cli.table import Cell, counted, format_json, format_size, format_table, ranges


def test_numbers_stand_to_the_right_and_text_to_the_left() -> None:
    """A missing value does not turn a column of numbers into text."""
    rows: list[list[Cell]] = [["a", 5, "x"], ["long", 12345, ""], ["b", None, "y"]]
    assert format_table(("NAME", "COUNT", "MORE"), rows).splitlines() == [
        "NAME  COUNT  MORE",
        "a         5  x",
        "long  12345",
        "b         -  y",
    ]


def test_a_column_without_any_value_is_text() -> None:
    """Its dashes stand below its heading."""
    assert format_table(("HEADING", "B"), [[None, 1]]).splitlines()[1] == "-        1"


def test_a_table_without_rows_is_its_headings() -> None:
    """Rather than an error."""
    assert format_table(("A", "B"), []) == "A  B"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 << 30, "5.0 GiB"),
        (2000 << 50, "2000.0 PiB"),
    ],
)
def test_sizes_have_a_unit(size: int, shown: str) -> None:
    """Powers of 1024; what is larger than all units has the largest."""
    assert format_size(size) == shown


def test_ranges_join_neighbours() -> None:
    """In order, however they come."""
    assert ranges([3, 0, 1, 7, 2]) == "0-3,7"
    assert ranges([]) == ""


def test_one_is_singular() -> None:
    """As people say it."""
    assert [counted(n, "record") for n in (0, 1, 2)] == ["0 records", "1 record", "2 records"]


def test_json_keeps_every_script() -> None:
    """Names are shown as they are."""
    assert format_json({"a": "ä☃"}) == '{\n  "a": "ä☃"\n}'
