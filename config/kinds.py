"""Kinds of values: type, unit and bounds, parsed from text and written back.

Accepted spellings and the sentences of refusals follow Kafka's ConfigDef, so that a tool written
for Kafka reads from us what it reads from Kafka. Lists of addresses and of pairs are in
`config.compound_kinds`.
"""

import enum
import math
import re
from dataclasses import dataclass
from typing import Literal, Protocol

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SHORT_MAX = 2**15 - 1
DOUBLE_MAX = 1.7976931348623157e308


class WireType(enum.IntEnum):
    """Type of a setting in DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Kind(Protocol):
    """A kind of value: parsed, written and described."""

    @property
    def wire_type(self) -> WireType:
        """Type for DescribeConfigs."""
        ...

    @property
    def description(self) -> str:
        """Type, unit and bounds for people: `integer, milliseconds, at least 0`."""
        ...

    def parse(self, name: str, text: str) -> object:
        """Value of `text`.

        Raises:
            ValueError: With Kafka's sentence; `name` is for those sentences that repeat it.
        """
        ...

    def format(self, value: object) -> str:
        """Text that `parse` reads back as `value`, as Kafka writes it."""
        ...


def refusal(name: str, value: object, problem: str) -> str:
    """Kafka's sentence for a refused value."""
    return f"Invalid value {value} for configuration {name}: {problem}"


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number of `bits` bits, signed; `also` is one allowed value outside the bounds."""

    unit: str = ""
    minimum: int | None = None
    maximum: int | None = None
    bits: Literal[16, 32, 64] = 32
    also: int | None = None
    special: tuple[tuple[int, str], ...] = ()

    @property
    def wire_type(self) -> WireType:
        """SHORT, INT or LONG."""
        return {16: WireType.SHORT, 32: WireType.INT, 64: WireType.LONG}[self.bits]

    @property
    def description(self) -> str:
        """Unit, bounds and special values in words."""
        parts = ["integer"]
        if self.unit:
            parts.append(self.unit)
        if self.minimum is not None and self.maximum is not None:
            parts.append(f"{self.minimum} to {self.maximum}")
        elif self.minimum is not None:
            parts.append(f"at least {self.minimum}")
        elif self.maximum is not None:
            parts.append(f"at most {self.maximum}")
        if self.also is not None:
            parts.append(f"or {self.also}")
        parts.extend(f"{value} = {meaning}" for value, meaning in self.special)
        return ", ".join(parts)

    def parse(self, name: str, text: str) -> int:
        """Read decimal digits with an optional sign."""
        stripped = text.strip()
        limit = 1 << (self.bits - 1)
        # Twenty characters hold every 64-bit number: a longer text is not even converted.
        if len(stripped) > 20 or not _INTEGER.fullmatch(stripped):
            raise ValueError(refusal(name, stripped, f"Not a number of type {self.wire_type.name}"))
        value = int(stripped)
        if not -limit <= value < limit:
            raise ValueError(refusal(name, stripped, f"Not a number of type {self.wire_type.name}"))
        problem = self.problem(value)
        if problem:
            raise ValueError(refusal(name, value, problem))
        return value

    def problem(self, value: int) -> str:
        """Kafka's words for what is wrong with `value`; empty when it is fine."""
        if self.also is not None:
            if value == self.also:
                return ""
            assert self.minimum is not None
            assert self.maximum is not None
            if not self.minimum <= value <= self.maximum:
                return (
                    f"Value must be between {self.minimum} and {self.maximum} "
                    f"or equal to {self.also}"
                )
        if self.minimum is not None and value < self.minimum:
            return f"Value must be at least {self.minimum}"
        if self.maximum is not None and value > self.maximum:
            return f"Value must be no more than {self.maximum}"
        return ""

    def format(self, value: object) -> str:
        """Decimal digits."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Double:
    """A finite number with a fraction."""

    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None

    @property
    def wire_type(self) -> WireType:
        """DOUBLE."""
        return WireType.DOUBLE

    @property
    def description(self) -> str:
        """Unit and bounds in words."""
        parts = ["number"]
        if self.unit:
            parts.append(self.unit)
        if self.minimum is not None and self.maximum is not None:
            parts.append(f"{self.minimum} to {self.maximum}")
        elif self.minimum is not None:
            parts.append(f"at least {self.minimum}")
        return ", ".join(parts)

    def parse(self, name: str, text: str) -> float:
        """Read a decimal number; Java's `NaN` and type suffixes are not taken."""
        stripped = text.strip()
        value = float(stripped) if _NUMBER.fullmatch(stripped) else math.inf
        if not math.isfinite(value):
            raise ValueError(refusal(name, stripped, "Not a number of type DOUBLE"))
        if self.minimum is not None and value < self.minimum:
            raise ValueError(refusal(name, value, f"Value must be at least {self.minimum}"))
        if self.maximum is not None and value > self.maximum:
            raise ValueError(refusal(name, value, f"Value must be no more than {self.maximum}"))
        return value

    def format(self, value: object) -> str:
        """As Java prints a double: `0.5`, `1.7976931348623157E308`."""
        return repr(value).replace("e+", "E").replace("e", "E")


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false, in any case."""

    @property
    def wire_type(self) -> WireType:
        """BOOLEAN."""
        return WireType.BOOLEAN

    @property
    def description(self) -> str:
        """The two words."""
        return "boolean, true or false"

    def parse(self, name: str, text: str) -> bool:
        """Read `true` or `false`; `yes`, `1` and `on` are refused, as Kafka does."""
        word = text.strip().lower()
        if word not in {"true", "false"}:
            raise ValueError(
                refusal(name, text.strip(), "Expected value to be either true or false")
            )
        return word == "true"

    def format(self, value: object) -> str:
        """`true` or `false`."""
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Text:
    """Any text; `secret` texts are masked wherever they are shown."""

    what: str = "text"
    secret: bool = False
    non_empty: bool = False

    @property
    def wire_type(self) -> WireType:
        """PASSWORD when secret, else STRING."""
        return WireType.PASSWORD if self.secret else WireType.STRING

    @property
    def description(self) -> str:
        """Description of the value's text."""
        return self.what

    def parse(self, name: str, text: str) -> str:
        """Take the text without the spaces around it."""
        stripped = text.strip()
        if self.non_empty and not stripped:
            raise ValueError(refusal(name, stripped, "String must be non-empty"))
        return stripped

    def format(self, value: object) -> str:
        """Give the text itself."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words, case as written unless `ignore_case`."""

    words: tuple[str, ...]
    ignore_case: bool = False

    @property
    def wire_type(self) -> WireType:
        """STRING."""
        return WireType.STRING

    @property
    def description(self) -> str:
        """The words."""
        return "one of " + self._shown

    @property
    def _shown(self) -> str:
        return ", ".join(word or "nothing" for word in self.words)

    def parse(self, name: str, text: str) -> str:
        """Read one of the words."""
        stripped = text.strip()
        for word in self.words:
            if stripped == word or (self.ignore_case and stripped.lower() == word.lower()):
                return word
        hint = " (case insensitive)" if self.ignore_case else ""
        raise ValueError(refusal(name, stripped, f"String must be one of{hint}: {self._shown}"))

    def format(self, value: object) -> str:
        """Give the word."""
        return str(value)


@dataclass(frozen=True, slots=True)
class WordList:
    """Words separated by commas, kept in the order given; `words` limits them."""

    words: tuple[str, ...] = ()
    what: str = "words"
    may_be_empty: bool = True

    @property
    def wire_type(self) -> WireType:
        """LIST."""
        return WireType.LIST

    @property
    def description(self) -> str:
        """The words allowed."""
        allowed = ", ".join(self.words) if self.words else self.what
        return f"comma-separated list of {allowed}" + (
            ", may be empty" if self.may_be_empty else ""
        )

    def parse(self, name: str, text: str) -> tuple[str, ...]:
        """Read the words; a repeated one counts once."""
        words = split_list(name, text, may_be_empty=self.may_be_empty)
        for word in words:
            if self.words and word not in self.words:
                raise ValueError(
                    refusal(name, word, "String must be one of: " + ", ".join(self.words))
                )
        return words

    def format(self, value: object) -> str:
        """Join with commas."""
        assert isinstance(value, tuple)
        return ",".join(value)


def split_list(name: str, text: str, *, may_be_empty: bool = True) -> tuple[str, ...]:
    """Words between commas, each once, in order.

    Raises:
        ValueError: Nothing between two commas, or nothing at all where that is not allowed.
    """
    stripped = text.strip()
    if not stripped:
        if not may_be_empty:
            raise ValueError(f"Configuration '{name}' must not be empty.")
        return ()
    words = [word.strip() for word in stripped.split(",")]
    if "" in words:
        raise ValueError(f"Configuration '{name}' values must not be empty.")
    return tuple(dict.fromkeys(words))
