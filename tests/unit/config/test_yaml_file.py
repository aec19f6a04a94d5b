"""YAML files hold the same names and texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.properties import Property
from config.yaml_file import SETTINGS_MAX, parse_yaml


def test_nested_and_flat_names_are_the_same() -> None:
    """A mapping inside a mapping is a dot."""
    nested = parse_yaml("log:\n  dirs: [/a, /b]\n  retention.hours: 24\n")
    assert nested == [Property("log.dirs", "/a,/b", 2), Property("log.retention.hours", "24", 3)]


def test_values_are_taken_as_they_are_written() -> None:
    """YAML would make a number, a boolean, a date and a sexagesimal number of these."""
    text = "a: 1_000\nb: yes\nc: 2024-01-01\nd: 1:30\ne: 0x10\nf: 'quoted'"
    values = [value for _, value, _ in parse_yaml(text)]
    assert values == ["1_000", "yes", "2024-01-01", "1:30", "0x10", "quoted"]


@pytest.mark.parametrize("text", ["a:", "a: ~", "a: null", 'a: ""'])
def test_nothing_is_the_empty_text(text: str) -> None:
    """The setting is there, without a value."""
    assert parse_yaml(text) == [Property("a", "", 1)]


def test_an_empty_file_sets_nothing() -> None:
    """Comments only, as well."""
    assert parse_yaml("") == []
    assert parse_yaml("# nothing") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just a text", "line 1: a mapping"),
        ("- a\n- b", "line 1: a mapping"),
        ("a: 1\nb: {c", "line 2: "),
        ("a: [[1], 2]", "line 1: a is a list of something else"),
        ("? [a]\n: 1", "line 1: a key must be a text"),
        ("a: &x\n  b: *x", "line 1: nested more than 16 levels"),
        ("a: 1\n---\nb: 2", "line "),
    ],
)
def test_what_is_no_mapping_of_texts_is_refused(text: str, message: str) -> None:
    """With the line, and without an endless walk round an anchor that contains itself."""
    with pytest.raises(ValueError, match=message):
        parse_yaml(text)


def test_anchors_cannot_multiply_without_bound() -> None:
    """Nine levels of ten aliases would be a thousand million settings."""
    lines = ["a0: &a0 {k: v}"]
    for level in range(1, 10):
        aliases = ", ".join(f"k{i}: *a{level - 1}" for i in range(10))
        lines.append(f"a{level}: &a{level} {{{aliases}}}")
    with pytest.raises(ValueError, match=f"more than {SETTINGS_MAX} settings"):
        parse_yaml("\n".join(lines))


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    """A file is read or refused with a ValueError."""
    try:
        settings = parse_yaml(text)
    except ValueError:
        return
    assert all(setting.line >= 1 for setting in settings)
