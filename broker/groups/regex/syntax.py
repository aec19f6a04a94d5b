r"""Syntax of RE2 expressions, as RE2/J reads it, down to sets of ASCII characters.

    x  .  [a-z]  [^a-z]  [[:alpha:]]  \d \D \s \S \w \W  \pL \p{Greek} \P{Greek}
    xy  x|y  x*  x+  x?  x{n}  x{n,}  x{n,m}        and the same with ? behind it
    (x)  (?P<name>x)  (?<name>x)  (?:x)  (?flags)  (?flags:x)     flags i m s U, - takes them away
    ^  $  \A  \z  \b  \B
    \a \f \t \n \r \v  \123  \x7F  \x{10FFFF}  \Q...\E

No back references, no lookahead or lookbehind: the rest can be matched in linear time. Names of
topics are ASCII, so a set of characters is a number of 128 bits, one per character; other
characters of a pattern are checked and dropped. Greedy or not is the same where the whole name must
match, and so are groups that capture and those that do not.

Messages are RE2/J's, since Kafka passes them on to clients. A pattern that is too large is an error
here and not there.

Source: RE2 syntax (google/re2, doc/syntax.txt); RE2/J 1.8, Parser.java, CharClass.java.
"""

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import NamedTuple, TypeAlias

from broker.groups.regex.classes import (
    ANY_CHARACTER,
    fold,
)
from broker.groups.regex.reader import CharacterReader, InvalidRegexError

PATTERN_LENGTH_MAX = 8192
"""Longest pattern, in characters: reading it takes a few milliseconds."""

NESTING_MAX = 100
"""Most parentheses that may be open at once."""

REPEAT_MAX = 1000
"""Largest number in braces."""

_NOT_NEWLINE = ANY_CHARACTER & ~(1 << ord("\n"))


class Assertion(Enum):
    """A condition between two characters."""

    BEGIN_TEXT = auto()
    END_TEXT = auto()
    BEGIN_LINE = auto()
    END_LINE = auto()
    WORD_BOUNDARY = auto()
    NO_WORD_BOUNDARY = auto()


class Characters(NamedTuple):
    """One character of a set."""

    mask: int


class Concatenation(NamedTuple):
    """One after another; of nothing: the empty text."""

    parts: "tuple[Node, ...]"


class Alternation(NamedTuple):
    """One of several."""

    parts: "tuple[Node, ...]"


class Repetition(NamedTuple):
    """`minimum` to `maximum` times; None: without end."""

    part: "Node"
    minimum: int
    maximum: int | None


Node: TypeAlias = Characters | Assertion | Concatenation | Alternation | Repetition


class _Flags(Flag):
    NONE = 0
    FOLD_CASE = auto()
    MULTI_LINE = auto()
    DOT_NEWLINE = auto()
    UNGREEDY = auto()


_FLAG_LETTERS = {
    "i": _Flags.FOLD_CASE,
    "m": _Flags.MULTI_LINE,
    "s": _Flags.DOT_NEWLINE,
    "U": _Flags.UNGREEDY,
}

# Most of a pattern is a name: characters that mean themselves are taken by the run.
_PLAIN = re.compile(r"[0-9A-Za-z_-]+")
_LITERALS = {chr(code): Characters(1 << code) for code in range(128)}
_FOLDED_LITERALS = {chr(code): Characters(fold(1 << code)) for code in range(128)}


_CLOSING_PARENTHESIS = "missing closing )"
_NAMED_CAPTURE = "invalid named capture"
_PERL_SYNTAX = "invalid or unsupported Perl syntax"
# RE2/J calls this an internal error; the words are those of RE2 elsewhere.
_UNEXPECTED_PARENTHESIS = "unexpected )"
_REPEAT_ARGUMENT = "missing argument to repetition operator"
_REPEAT_COUNT = "invalid repeat count"
_REPEAT_NESTED = "invalid nested repetition operator"


@dataclass(slots=True)
class _Group:
    """The part of the pattern from an open parenthesis to the current place."""

    flags_before: _Flags
    alternatives: list[Node]
    parts: list[Node]

    def end_alternative(self) -> None:
        self.alternatives.append(
            self.parts[0] if len(self.parts) == 1 else Concatenation(tuple(self.parts))
        )
        self.parts = []

    def close(self) -> Node:
        self.end_alternative()
        if len(self.alternatives) == 1:
            return self.alternatives[0]
        return Alternation(tuple(self.alternatives))


def parse(pattern: str) -> Node:
    """Read a pattern.

    Raises:
        InvalidRegexError: It is not well formed, or larger than the limits of this module.
    """
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise InvalidRegexError(
            f"pattern of {len(pattern)} characters, at most {PATTERN_LENGTH_MAX} are allowed"
        )
    return _Parser(pattern).parse()


class _Parser(CharacterReader):
    """Reads from left to right; open groups are on a stack of its own, not on Python's."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self._flags = _Flags.NONE
        self._names: set[str] = set()
        self._groups = [_Group(_Flags.NONE, [], [])]

    def parse(self) -> Node:
        after_repeat = False
        while self._more():
            plain = _PLAIN.match(self._text, self._position)
            if plain is None:
                after_repeat = self._read_one(after_repeat=after_repeat)
                continue
            literals = _FOLDED_LITERALS if self._folds else _LITERALS
            self._groups[-1].parts += [literals[character] for character in plain.group()]
            self._position = plain.end()
            after_repeat = False
        if len(self._groups) > 1:
            raise InvalidRegexError(_CLOSING_PARENTHESIS)
        return self._groups[0].close()

    # One element.

    def _read_one(self, *, after_repeat: bool) -> bool:
        """Whether it was a repetition, which none may follow."""
        character = self._peek()
        if character in "*+?":
            self._pop()
            minimum, maximum = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
            self._repeat(minimum, maximum, after_repeat=after_repeat)
            return True
        if character == "{":
            counts = self._read_counts()
            if counts is None:
                # As RE2/J has it, no repetition may follow a plain brace either.
                self._literal(ord(self._pop()))
            else:
                self._repeat(*counts, after_repeat=after_repeat)
            return True
        match character:
            case "(":
                if self._at("(?"):
                    self._read_group_options()
                else:
                    self._pop()
                    self._open_group(self._flags)
            case "|":
                self._pop()
                self._groups[-1].end_alternative()
            case ")":
                self._pop()
                self._close_group()
            case "^":
                self._pop()
                self._push(self._line_or_text(Assertion.BEGIN_LINE, Assertion.BEGIN_TEXT))
            case "$":
                self._pop()
                self._push(self._line_or_text(Assertion.END_LINE, Assertion.END_TEXT))
            case ".":
                self._pop()
                newline = _Flags.DOT_NEWLINE in self._flags
                self._push(Characters(ANY_CHARACTER if newline else _NOT_NEWLINE))
            case "[":
                self._push(Characters(self._read_class()))
            case "\\":
                self._read_backslash()
            case _:
                self._literal(ord(self._pop()))
        return False

    def _line_or_text(self, line: Assertion, text: Assertion) -> Assertion:
        return line if _Flags.MULTI_LINE in self._flags else text

    def _push(self, node: Node) -> None:
        self._groups[-1].parts.append(node)

    def _literal(self, code: int) -> None:
        self._push(Characters(self._folded(code, code)))

    # Repetitions.

    def _repeat(self, minimum: int, maximum: int | None, *, after_repeat: bool) -> None:
        if self._at("?"):
            self._pop()
        if after_repeat:
            raise InvalidRegexError(_REPEAT_NESTED)
        parts = self._groups[-1].parts
        if not parts:
            raise InvalidRegexError(_REPEAT_ARGUMENT)
        parts[-1] = Repetition(parts[-1], minimum, maximum)

    def _read_counts(self) -> tuple[int, int | None] | None:
        """The numbers in braces; None when this is not such a thing, and nothing was read."""
        start = self._position
        self._pop()
        minimum = self._read_number()
        maximum: int | None = minimum
        if minimum is not None and self._at(","):
            self._pop()
            endless = self._at("}")
            maximum = None if endless else self._read_number()
            if maximum is None and not endless:
                minimum = None
        if minimum is None or not self._at("}"):
            self._position = start
            return None
        self._pop()
        if minimum > REPEAT_MAX or (
            maximum is not None and (maximum > REPEAT_MAX or maximum < minimum)
        ):
            raise InvalidRegexError(_REPEAT_COUNT)
        return minimum, maximum

    def _read_number(self) -> int | None:
        start = self._position
        while self._more() and "0" <= self._peek() <= "9":
            self._pop()
        digits = self._text[start : self._position]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None
        # Long enough to be too large; longer ones need not be computed.
        return int(digits[:9])

    # Groups.

    def _set_flags(self, flags: _Flags) -> None:
        self._flags = flags
        self._folds = _Flags.FOLD_CASE in flags

    def _open_group(self, flags_before: _Flags) -> None:
        if len(self._groups) > NESTING_MAX:
            raise InvalidRegexError(f"more than {NESTING_MAX} groups in one another")
        self._groups.append(_Group(flags_before, [], []))

    def _close_group(self) -> None:
        if len(self._groups) == 1:
            raise InvalidRegexError(_UNEXPECTED_PARENTHESIS)
        group = self._groups.pop()
        self._set_flags(group.flags_before)
        self._push(group.close())

    def _read_group_options(self) -> None:
        """From `(?` on: a name, or flags for the rest of this group or for a new one."""
        for start in ("(?P<", "(?<"):
            if self._at(start):
                self._read_name(start)
                return
        self._position += len("(?")
        flags, negative, saw_flag = self._flags, False, False
        while self._more():
            character = self._pop()
            flag = _FLAG_LETTERS.get(character)
            if flag is not None:
                flags = flags & ~flag if negative else flags | flag
                saw_flag = True
            elif character == "-" and not negative:
                negative, saw_flag = True, False
            elif character in ":)" and (saw_flag or not negative):
                if character == ":":
                    self._open_group(self._flags)
                self._set_flags(flags)
                return
            else:
                break
        raise InvalidRegexError(_PERL_SYNTAX)

    def _read_name(self, start: str) -> None:
        begin = self._position + len(start)
        end = self._text.find(">", begin)
        name = self._text[begin:end]
        if end < 0 or not name or not (name.isascii() and name.replace("_", "a").isalnum()):
            raise InvalidRegexError(_NAMED_CAPTURE)
        self._position = end + 1
        if name in self._names:
            raise InvalidRegexError("duplicate capture group name")
        self._names.add(name)
        self._open_group(self._flags)

    # Escapes.

    def _read_backslash(self) -> None:
        following = self._text[self._position + 1 : self._position + 2]
        assertion = {
            "A": Assertion.BEGIN_TEXT,
            "z": Assertion.END_TEXT,
            "b": Assertion.WORD_BOUNDARY,
            "B": Assertion.NO_WORD_BOUNDARY,
        }.get(following)
        if assertion is not None:
            self._position += 2
            self._push(assertion)
        elif following == "Q":
            begin = self._position + 2
            end = self._text.find("\\E", begin)
            quoted = self._text[begin:] if end < 0 else self._text[begin:end]
            self._position = begin + len(quoted) + len("\\E")
            for character in quoted:
                self._literal(ord(character))
        elif (mask := self._read_class_escape()) is not None:
            self._push(Characters(mask))
        else:
            self._literal(self._read_escape())
