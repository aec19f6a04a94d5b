"""Properties files are read as Java reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.properties import Property, parse_properties
from tests.unit.config.golden_files import FOLDER, rows


def test_a_file_of_oddities_is_read_as_java_reads_it() -> None:
    """sample.properties holds every rule; sample.tsv is what java.util.Properties made of it."""
    text = (FOLDER / "sample.properties").read_text(encoding="utf-8")
    read = {key: value for key, value, _ in parse_properties(text)}
    assert sorted([key, value] for key, value in read.items()) == sorted(rows("sample.tsv"))


def test_a_setting_knows_the_line_where_it_begins() -> None:
    """Mistakes name it."""
    assert parse_properties("# c\n\na=1\nb=2,\\\n  3\r\nc=4") == [
        Property("a", "1", 3),
        Property("b", "2,3", 4),
        Property("c", "4", 6),
    ]


@pytest.mark.parametrize("escape", ["\\u12", "\\u12g4", "\\u", "\\u+123"])
def test_a_broken_unicode_escape_is_refused_with_its_line(escape: str) -> None:
    """As Java does, which names no line."""
    with pytest.raises(ValueError, match=r"line 2: .*four hexadecimal digits"):
        parse_properties(f"a=1\nb={escape}")


def test_two_escapes_may_make_one_character() -> None:
    """Java's characters are halves of those beyond 65535."""
    assert parse_properties("a=\\ud83d\\ude00")[0].value == "\U0001f600"


def _escape(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(_TEXT, _TEXT)))
def test_what_is_written_in_escapes_is_read_back(settings: list[tuple[str, str]]) -> None:
    """Every text can stand in a file."""
    text = "\n".join(f"{_escape(key)}={_escape(value)}" for key, value in settings)
    read = [(key, value) for key, value, _ in parse_properties(text)]
    # A line that is nothing but `=` is the empty key; it is there too.
    assert read == settings


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    """A file is read or refused."""
    try:
        settings = parse_properties(text)
    except ValueError as error:
        assert str(error).startswith("line ")  # noqa: PT017  because most texts are fine
    else:
        assert all(setting.line >= 1 for setting in settings)
