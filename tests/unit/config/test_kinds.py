"""Texts become values as in Kafka's ConfigDef, and values become texts again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.kinds import (
    DOUBLE_MAX,
    INT_MAX,
    LONG_MAX,
    SHORT_MAX,
    Choice,
    Double,
    Integer,
    Text,
    WireType,
    WordList,
)


@pytest.mark.parametrize(
    ("bits", "largest", "name"),
    [(16, SHORT_MAX, "SHORT"), (32, INT_MAX, "INT"), (64, LONG_MAX, "LONG")],
)
def test_an_integer_ends_where_its_bits_end(bits: int, largest: int, name: str) -> None:
    """One more than the largest number of the type is none of its numbers."""
    kind = Integer(bits=bits)  # type: ignore[arg-type]  # one of the three by the table above
    assert kind.parse("k", str(largest)) == largest
    assert kind.parse("k", str(-largest - 1)) == -largest - 1
    for text in (str(largest + 1), str(-largest - 2)):
        with pytest.raises(ValueError, match=f"Not a number of type {name}"):
            kind.parse("k", text)
    assert kind.wire_type.name == name


@pytest.mark.parametrize("text", ["", "x", "1.0", "1_000", "0x10", "1 2", "--1", "٣", "9" * 5000])
def test_what_is_no_decimal_integer_is_refused(text: str) -> None:
    """Python's own liberties (underscores, other scripts' digits) are not taken."""
    with pytest.raises(ValueError, match="Not a number of type INT"):
        Integer().parse("k", text)


@given(st.integers(-(2**31), 2**31 - 1))
def test_an_integer_reads_back_what_it_wrote(value: int) -> None:
    """Text and value say the same."""
    kind = Integer()
    assert kind.parse("k", kind.format(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_what_it_wrote(value: float) -> None:
    """Text and value say the same, in Java's spelling of exponents."""
    kind = Double()
    assert kind.parse("k", kind.format(value)) == value


def test_a_double_is_spelt_as_java_spells_it() -> None:
    """Tools compare texts."""
    assert Double().format(DOUBLE_MAX) == "1.7976931348623157E308"
    assert Double().format(0.5) == "0.5"


@pytest.mark.parametrize("text", ["NaN", "inf", "1e999", "0.5d", "1_0.0", ""])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    """A ratio that is no number would make every comparison false."""
    with pytest.raises(ValueError, match="Not a number of type DOUBLE"):
        Double().parse("k", text)


def test_a_choice_keeps_its_own_spelling() -> None:
    """Where case is ignored, the value is still one of the words."""
    assert Choice(("Debug",), ignore_case=True).parse("k", " dEBUG ") == "Debug"
    with pytest.raises(ValueError, match="String must be one of: Debug"):
        Choice(("Debug",)).parse("k", "debug")


def test_a_text_may_have_to_be_there() -> None:
    """Spaces are nothing."""
    assert Text().parse("k", " a b ") == "a b"
    with pytest.raises(ValueError, match="must be non-empty"):
        Text(non_empty=True).parse("k", "  ")


def test_a_secret_text_is_a_password_on_the_wire() -> None:
    """Tools mask it for their users."""
    assert Text(secret=True).wire_type is WireType.PASSWORD


def test_a_list_that_must_not_be_empty_is_refused_empty() -> None:
    """`log.dirs` without a directory means nothing."""
    with pytest.raises(ValueError, match="must not be empty"):
        WordList(may_be_empty=False).parse("log.dirs", " ")


def test_bounds_are_told_in_words() -> None:
    """The documentation and the report of mistakes are made of these."""
    assert Integer("bytes", 1, 9, also=-1, special=((-1, "none"),)).description == (
        "integer, bytes, 1 to 9, or -1, -1 = none"
    )
    assert Integer(maximum=3).description == "integer, at most 3"
    assert Double("share", 0).description == "number, share, at least 0"
