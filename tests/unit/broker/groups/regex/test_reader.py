"""Escapes and sets, as elements of whole patterns; the differential tests have many more."""

import pytest

from broker.groups.regex.reader import InvalidRegexError
from broker.groups.regex.syntax import Characters, parse


def characters(pattern: str) -> str:
    """The set that a pattern of one element is."""
    node = parse(pattern)
    assert isinstance(node, Characters)
    return "".join(chr(code) for code in range(128) if node.mask >> code & 1)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\.", "."),
        (r"\x41", "A"),
        (r"\x{42}", "B"),
        (r"\103", "C"),
        (r"\0", "\0"),
        (r"\v", "\v"),
        (r"\d", "0123456789"),
        (r"\pN", "0123456789"),
        (r"\p{^Any}", ""),
        ("[a-cx]", "abcx"),
        ("[]-]", "-]"),
        ("[a-]", "-a"),
        (r"[\]\\]", "\\]"),
        (r"[\d_]", "0123456789_"),
        ("[[:digit:]x]", "0123456789x"),
        ("(?i:[a-b])", "ABab"),
        (r"(?i)\x{212A}", "Kk"),
        ("[é]", ""),
    ],
)
def test_sets(pattern: str, expected: str) -> None:
    """Only what is ASCII is kept."""
    assert characters(pattern) == expected


def test_negation_is_of_the_whole_set() -> None:
    """Also of what folds into it."""
    assert "a" not in characters("(?i)[^A]")
    assert len(characters("[^a-c]")) == 125


@pytest.mark.parametrize(
    "pattern", [r"\xg0", r"\x{}", r"\x{110000}", r"\8", r"\q", r"[\Q]", r"\x4"]
)
def test_bad_escapes(pattern: str) -> None:
    """A letter or digit behind a backslash must mean something."""
    with pytest.raises(InvalidRegexError, match="invalid escape sequence"):
        parse(pattern)


@pytest.mark.parametrize("pattern", [r"\p", r"\p{L", r"\pX", "[[:no:]]", "[z-a]", r"\p{^}"])
def test_bad_ranges(pattern: str) -> None:
    """Names of sets that are not, and ranges that run backwards."""
    with pytest.raises(InvalidRegexError, match="invalid character class range"):
        parse(pattern)


@pytest.mark.parametrize("pattern", ["[", "[]", "[a", "[^", "[a-", "[[:alpha:]"])
def test_open_brackets(pattern: str) -> None:
    """The end of the pattern ends no set."""
    with pytest.raises(InvalidRegexError, match="missing closing ]"):
        parse(pattern)
