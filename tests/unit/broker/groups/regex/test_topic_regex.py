"""Which topics match, and that no pattern takes long."""

import re
import time
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.regex.topic_regex import (
    KEPT_SETS_MAX,
    KEPT_STATES_MAX,
    InvalidRegexError,
    TopicRegex,
)

TOPICS = ["orders", "orders-eu", "orders.dlq", "payments", "Payments", "a", "b", "ab", "0", "_x"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", {"orders"}),
        ("order", set()),
        ("orders.*", {"orders", "orders-eu", "orders.dlq"}),
        (r"orders[.-]\w+", {"orders-eu", "orders.dlq"}),
        ("^orders$", {"orders"}),
        ("(?i)payments", {"payments", "Payments"}),
        ("a|b", {"a", "b"}),
        ("[ab]{1,2}", {"a", "b", "ab"}),
        (r"\Qorders.dlq\E", {"orders.dlq"}),
        (r"(?P<what>\pL+)", {"orders", "payments", "Payments", "a", "b", "ab"}),
        (r"[^[:alpha:]].*", {"0", "_x"}),
        (r"\w+\b.\b\w+", {"orders-eu", "orders.dlq"}),
        (r".\B.", {"ab", "_x"}),
        ("", set()),
        ("é", set()),
        ("[^é]", {"a", "b", "0"}),
        (".*", set(TOPICS)),
    ],
)
def test_whole_names(pattern: str, expected: set[str]) -> None:
    """The whole name must match."""
    assert TopicRegex.compile(pattern).resolve(TOPICS) == expected


def test_what_cannot_be_compiled() -> None:
    """The words are for the client."""
    with pytest.raises(InvalidRegexError, match=r"^missing closing \)$"):
        TopicRegex.compile("(")


SIMPLE = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "", r"\b", "^", "$"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@given(SIMPLE)
def test_as_the_standard_library(pattern: str) -> None:
    """Where the syntax is common and nothing is large: all words of three letters up to four."""
    regex = TopicRegex.compile(pattern)
    twin = re.compile(pattern.replace("$", r"\Z"))
    for size in range(5):
        for letters in product("ab-", repeat=size):
            name = "".join(letters)
            assert regex.matches(name) == (twin.fullmatch(name) is not None), name


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(a|aa)+$",
        "(.*)*x",
        "a?" * 100 + "a" * 100,
        r"(\w+\.?)*!",
        "(a*)*b{0}c",
    ],
)
def test_backtracking_is_not_there(pattern: str) -> None:
    """Patterns that other matchers need the age of the universe for."""
    regex = TopicRegex.compile(pattern)
    started = time.thread_time()
    for size in range(200, 249):
        regex.matches("a" * size + "!")
        regex.matches("a" * size)
    assert time.thread_time() - started < 10.0


def names() -> list[str]:
    """Twenty thousand of 200 characters without a pattern."""
    bits = islice(product("ab", repeat=15), 20_000)
    return ["".join(letters) * 13 + "ab" * 3 for letters in bits]


def test_pattern_that_needs_a_new_set_at_every_character_is_stopped() -> None:
    """What it may cost is bounded, and what it keeps too."""
    regex = TopicRegex.compile("(a|b)*a(a|b){900}")
    started = time.thread_time()
    with pytest.raises(InvalidRegexError, match="too long"):
        regex.resolve(names())
    assert time.thread_time() - started < 10.0
    assert len(regex._kept) <= KEPT_SETS_MAX
    assert regex._kept_states <= KEPT_STATES_MAX


def test_what_is_kept_is_forgotten_when_full() -> None:
    """And the answers stay right."""
    regex = TopicRegex.compile("(a|b)*a(a|b){12}")
    some = names()[:2_000]
    assert regex.resolve(some) == {name for name in some if name[-13] == "a"}
    assert len(regex._kept) <= KEPT_SETS_MAX


def test_ordinary_patterns_are_fast() -> None:
    """Twenty thousand names: tens of milliseconds, with a wide margin here."""
    topics = [
        f"team-{number % 40}.service-{number % 7}.events-{number}" for number in range(20_000)
    ]
    regex = TopicRegex.compile(r"team-1\d\.service-[0-3]\.events-\d+|audit-.*|.*\.events-77")
    started = time.thread_time()
    found = regex.resolve(topics)
    assert time.thread_time() - started < 10.0
    assert found == {
        name
        for name in topics
        if re.fullmatch(r"team-1\d\.service-[0-3]\.events-\d+|audit-.*|.*\.events-77", name)
    }


def test_names_that_are_not_ascii_never_match() -> None:
    """No topic has such a name."""
    assert not TopicRegex.compile(".*").matches("é")
