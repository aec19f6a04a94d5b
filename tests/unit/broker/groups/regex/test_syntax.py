"""What is an expression and what is not; what one means is tested with the matcher."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.regex.reader import InvalidRegexError
from broker.groups.regex.syntax import (
    NESTING_MAX,
    PATTERN_LENGTH_MAX,
    Alternation,
    Assertion,
    Characters,
    Concatenation,
    Repetition,
    parse,
)

A, B = Characters(1 << ord("a")), Characters(1 << ord("b"))


def test_shapes() -> None:
    """Repetitions bind to the last element, alternatives least."""
    assert parse("") == Concatenation(())
    assert parse("a") == A
    assert parse("ab*") == Concatenation((A, Repetition(B, 0, None)))
    assert parse("(ab)*?") == Repetition(Concatenation((A, B)), 0, None)
    assert parse("a|b+|") == Alternation((A, Repetition(B, 1, None), Concatenation(())))
    assert parse("a{2,3}b{4,}(?:a){5}b?") == Concatenation(
        (Repetition(A, 2, 3), Repetition(B, 4, None), Repetition(A, 5, 5), Repetition(B, 0, 1))
    )
    assert parse("^a$") == Concatenation((Assertion.BEGIN_TEXT, A, Assertion.END_TEXT))
    assert parse("(?m:^)$") == Concatenation((Assertion.BEGIN_LINE, Assertion.END_TEXT))


def test_flags_hold_to_the_end_of_their_group() -> None:
    """And no longer."""
    both = Characters(1 << ord("a") | 1 << ord("A"))
    assert parse("a((?i)a|a)a") == Concatenation((A, Alternation((both, both)), A))
    assert parse("(?i)a(?-i)a") == Concatenation((both, A))


# Words as RE2/J has them; see the differential tests for many more.
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "missing closing )"),
        ("a)", "unexpected )"),
        ("[a", "missing closing ]"),
        ("[b-a]", "invalid character class range"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{3,2}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<n-n>a)", "invalid named capture"),
        ("(?P<n>a)(?<n>b)", "duplicate capture group name"),
        (r"\p{Klingon}", "invalid character class range"),
    ],
)
def test_mistakes(pattern: str, message: str) -> None:
    """A client is told what is wrong."""
    with pytest.raises(InvalidRegexError) as caught:
        parse(pattern)
    assert str(caught.value) == message


def test_limits() -> None:
    """Of length and of depth, so that neither time nor the stack runs out."""
    parse("a" * PATTERN_LENGTH_MAX)
    with pytest.raises(InvalidRegexError, match=f"at most {PATTERN_LENGTH_MAX}"):
        parse("a" * (PATTERN_LENGTH_MAX + 1))
    parse("(" * NESTING_MAX + ")" * NESTING_MAX)
    with pytest.raises(InvalidRegexError, match=f"more than {NESTING_MAX} groups"):
        parse("(" * (NESTING_MAX + 1) + ")" * (NESTING_MAX + 1))
    with pytest.raises(InvalidRegexError, match="repeat count"):
        parse("a{" + "9" * 8000 + "}")


@given(st.text(alphabet="ab01(){}[]|*+?.^$\\-,:<>PiQEdpLxz&é", max_size=30) | st.text(max_size=30))
def test_any_text_is_an_expression_or_an_error(pattern: str) -> None:
    """Nothing else is raised."""
    with contextlib.suppress(InvalidRegexError):
        parse(pattern)
