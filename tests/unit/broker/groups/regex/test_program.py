"""Machines of expressions: their size, and its limit."""

import time

import pytest

from broker.groups.regex.program import MATCHED, PROGRAM_SIZE_MAX, build
from broker.groups.regex.reader import InvalidRegexError
from broker.groups.regex.syntax import parse


def test_states_of_a_loop() -> None:
    """A repetition goes back to its beginning."""
    program = build(parse("a*"))
    assert program.start == 1
    assert program.targets == [(), (2, MATCHED), (1,)]
    assert program.masks == [0, 0, 1 << ord("a")]
    assert not program.has_assertions
    assert build(parse("a*$")).has_assertions


def test_character_outside_ascii_leads_nowhere() -> None:
    """It must not be taken for a state that reads nothing."""
    program = build(parse("é"))
    assert program.targets[program.start] == ()


def test_repetitions_are_written_out() -> None:
    """Three that must be and two that may: of five characters."""
    program = build(parse("a{3,5}"))
    assert sum(mask != 0 for mask in program.masks) == 5


@pytest.mark.parametrize("pattern", ["(a{100}){101}", "(((a{9}){99}){999})*", "((){1000}){1000}"])
def test_too_large(pattern: str) -> None:
    """Few characters that mean millions of parts are refused, and soon."""
    started = time.thread_time()
    with pytest.raises(InvalidRegexError, match=f"more than {PROGRAM_SIZE_MAX} parts"):
        build(parse(pattern))
    assert time.thread_time() - started < 5.0
