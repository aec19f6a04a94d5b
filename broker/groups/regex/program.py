"""An expression as a machine of many places at once (Thompson's construction).

A machine is in a set of states. A state that reads wants one character of a set and goes on at
another state; the others go on without reading: to several states, or to one if an assertion holds.

    (a|bc)*d$      0: -> 1 2 4      1: a -> 0      2: b -> 3     3: c -> 0
                   4: d -> 5        5: $ -> 6      6: matched

States are made from the end to the beginning, so that each knows where it goes on; only the state
that closes a loop is filled in later.

Source: Thompson, Regular Expression Search Algorithm, 1968; Cox, Regular Expression Matching in the
Wild, 2010.
"""

from dataclasses import dataclass, field
from typing import Final

from broker.groups.regex.reader import InvalidRegexError
from broker.groups.regex.syntax import (
    Alternation,
    Assertion,
    Characters,
    Concatenation,
    Node,
    Repetition,
)

PROGRAM_SIZE_MAX: Final = 10_000
"""Most parts of an expression with its repetitions written out: some 10 ms of building."""

MATCHED: Final = 0
"""The state in which an expression has been read to its end."""


@dataclass(slots=True)
class Program:
    """States by number; each list has an entry for every state."""

    masks: list[int] = field(default_factory=list)
    """The characters that a state reads; 0: it reads nothing."""
    targets: list[tuple[int, ...]] = field(default_factory=list)
    """Where it goes on."""
    assertions: list[Assertion | None] = field(default_factory=list)
    """The assertion that must hold for that."""
    start: int = MATCHED

    @property
    def has_assertions(self) -> bool:
        """Whether it matters what stands before and behind a place."""
        return any(assertion is not None for assertion in self.assertions)


def build(expression: Node) -> Program:
    """The machine of an expression.

    Raises:
        InvalidRegexError: It has more than `PROGRAM_SIZE_MAX` parts.
    """
    builder = _Builder()
    builder.program.start = builder.before(expression, MATCHED)
    return builder.program


class _Builder:
    def __init__(self) -> None:
        self.program = Program([0], [()], [None])
        self._parts = 0

    def before(self, node: Node, following: int) -> int:
        """The state that reads `node` and goes on at `following`."""
        # Parts and not states are counted: a thousand times nothing makes no state, yet takes time.
        self._parts += 1
        if self._parts > PROGRAM_SIZE_MAX:
            raise InvalidRegexError(
                f"pattern of more than {PROGRAM_SIZE_MAX} parts with its repetitions written out"
            )
        match node:
            case Characters(mask):
                # A set without ASCII characters leads nowhere.
                return self._state(mask, (following,) if mask else ())
            case Assertion():
                return self._state(0, (following,), node)
            case Concatenation(parts):
                for part in reversed(parts):
                    following = self.before(part, following)
                return following
            case Alternation(parts):
                return self._state(0, tuple([self.before(part, following) for part in parts]))
            case Repetition():
                return self._repetition(node, following)

    def _repetition(self, node: Repetition, following: int) -> int:
        part, minimum, maximum = node
        entry = following
        if maximum is None:
            loop = self._state(0, ())
            entry = self.before(part, loop)
            self.program.targets[loop] = (entry, following)
            if minimum == 0:
                return loop
            minimum -= 1
        else:
            for _ in range(maximum - minimum):
                entry = self._state(0, (self.before(part, entry), following))
        for _ in range(minimum):
            entry = self.before(part, entry)
        return entry

    def _state(
        self, mask: int, targets: tuple[int, ...], assertion: Assertion | None = None
    ) -> int:
        program = self.program
        program.masks.append(mask)
        program.targets.append(targets)
        program.assertions.append(assertion)
        return len(program.masks) - 1
