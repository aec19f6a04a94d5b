"""A compiled topic pattern: it matches names in bounded time, whatever the pattern.

The whole name must match, as in Kafka. A set of states of the machine (`program`)
is cached with its transition for each character, so that a name is usually one look-up a character:

    set of states --character--> set of states --character--> ... --end--> matched or not

The cache is bounded and dropped as a whole when it is full. Computing one transition costs as much
as the set has states; a pattern that needs a new set at every character of every name would keep a
core busy for minutes. Such work is counted: there is a stock of it, each name adds a little, and a
pattern that has used it up is an error. Ordinary patterns use next to none: a few hundred
transitions and then only the cache.

Source: Kafka, GroupMetadataManager.java (refreshRegularExpressions, which uses RE2/J);
Cox, Regular Expression Matching in the Wild, 2010.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from broker.groups.regex.classes import POSIX_CLASSES
from broker.groups.regex.program import MATCHED, Program, build
from broker.groups.regex.reader import InvalidRegexError
from broker.groups.regex.syntax import Assertion, parse

__all__ = ["InvalidRegexError", "TopicRegex"]

KEPT_SETS_MAX: Final = 1_000
"""Most cached sets of states, of a kilobyte each for the transitions."""

KEPT_STATES_MAX: Final = 100_000
"""Most states in all of them together."""

WORK_STOCK_MAX: Final = 2_000_000
"""Visits of a state that a pattern may need at once: less than a second."""

WORK_PER_NAME: Final = 1_000
"""Visits that each name adds to the stock: a fraction of a millisecond."""


class _Beside(IntEnum):
    """The kind of character before or behind a place, for assertions."""

    EDGE = 0
    NEWLINE = 1
    WORD = 2
    OTHER = 3


_WORD_MASK = POSIX_CLASSES["word"]
_BESIDE_CHARACTER = [
    _Beside.NEWLINE
    if code == ord("\n")
    else _Beside.WORD
    if _WORD_MASK >> code & 1
    else _Beside.OTHER
    for code in range(128)
]


class _Set:
    """States that the machine is in after some characters, those that read nothing unexpanded."""

    __slots__ = ("before", "matched", "next", "reading", "states")

    def __init__(self, states: frozenset[int], before: _Beside) -> None:
        self.states = states
        self.before = before
        self.next: list[_Set | None] = [None] * 128
        # By what stands behind: the states that read.
        self.reading: dict[_Beside, list[int]] = {}
        self.matched: bool | None = None


class TopicRegex:
    """A compiled pattern.

    Not for several threads at once: matching fills the cache.
    """

    __slots__ = (
        "_kept",
        "_kept_states",
        "_nowhere",
        "_program",
        "_start",
        "_stock",
        "_watches",
        "pattern",
    )

    def __init__(self, pattern: str, program: Program) -> None:
        self.pattern = pattern
        self._program = program
        self._watches = program.has_assertions
        self._stock = WORK_STOCK_MAX
        self._kept: dict[tuple[frozenset[int], _Beside], _Set] = {}
        self._kept_states = 0
        self._nowhere = _Set(frozenset(), _Beside.EDGE)
        self._start = self._set(frozenset((program.start,)), _Beside.EDGE)

    @classmethod
    def compile(cls, pattern: str) -> "TopicRegex":
        """Compile a pattern: a few milliseconds for the largest.

        Raises:
            InvalidRegexError: It is malformed or too large; the text is for the client.
        """
        return cls(pattern, build(parse(pattern)))

    def resolve(self, topics: Iterable[str]) -> frozenset[str]:
        """The matching topics, about a million a second times their length.

        Raises:
            InvalidRegexError: The pattern takes too much work.
        """
        return frozenset([name for name in topics if self.matches(name)])

    def matches(self, name: str) -> bool:
        """Whether the whole name matches; names of topics are ASCII, no other ever does.

        Raises:
            InvalidRegexError: The pattern takes too much work.
        """
        if not name.isascii():
            return False
        if self._stock < WORK_STOCK_MAX:
            self._stock += WORK_PER_NAME
        nowhere = self._nowhere
        current = self._start
        for code in name.encode("ascii"):
            following = current.next[code]
            if following is None:
                following = self._step(current, code)
            elif following is nowhere:
                return False
            current = following
        if current.matched is None:
            self._expand(current, _Beside.EDGE)
        return bool(current.matched)

    def _step(self, current: _Set, code: int) -> _Set:
        """Compute and cache a transition."""
        beside = _BESIDE_CHARACTER[code] if self._watches else _Beside.OTHER
        reading = current.reading.get(beside)
        if reading is None:
            reading = self._expand(current, beside)
        self._work(len(reading))
        masks, targets = self._program.masks, self._program.targets
        states = frozenset([targets[state][0] for state in reading if masks[state] >> code & 1])
        following = self._set(states, beside) if states else self._nowhere
        current.next[code] = following
        return following

    def _expand(self, current: _Set, behind: _Beside) -> list[int]:
        """The states that read, reached without reading, when `behind` is what comes next."""
        program = self._program
        masks, targets, assertions = program.masks, program.targets, program.assertions
        seen = set(current.states)
        reading = []
        waiting = list(current.states)
        while waiting:
            state = waiting.pop()
            if masks[state]:
                reading.append(state)
                continue
            assertion = assertions[state]
            if assertion is not None and not _holds(assertion, current.before, behind):
                continue
            for target in targets[state]:
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        self._work(len(seen))
        if behind is _Beside.EDGE:
            current.matched = MATCHED in seen
        else:
            current.reading[behind] = reading
        return reading

    def _set(self, states: frozenset[int], before: _Beside) -> _Set:
        key = (states, before)
        kept = self._kept.get(key)
        if kept is None:
            self._kept_states += len(states)
            if len(self._kept) >= KEPT_SETS_MAX or self._kept_states > KEPT_STATES_MAX:
                self._forget()
                self._kept_states = len(states)
            kept = self._kept[key] = _Set(states, before)
        return kept

    def _forget(self) -> None:
        """Drop the cache; sets refer to each other, so the start must drop them as well."""
        self._kept.clear()
        self._start = _Set(self._start.states, self._start.before)
        self._kept[self._start.states, self._start.before] = self._start

    def _work(self, visits: int) -> None:
        self._stock -= visits
        if self._stock < 0:
            raise InvalidRegexError("pattern takes too long to match")


def _holds(assertion: Assertion, before: _Beside, behind: _Beside) -> bool:
    match assertion:
        case Assertion.BEGIN_TEXT:
            return before is _Beside.EDGE
        case Assertion.END_TEXT:
            return behind is _Beside.EDGE
        case Assertion.BEGIN_LINE:
            return before in (_Beside.EDGE, _Beside.NEWLINE)
        case Assertion.END_LINE:
            return behind in (_Beside.EDGE, _Beside.NEWLINE)
        case Assertion.WORD_BOUNDARY:
            return (before is _Beside.WORD) != (behind is _Beside.WORD)
        case Assertion.NO_WORD_BOUNDARY:
            return (before is _Beside.WORD) == (behind is _Beside.WORD)
