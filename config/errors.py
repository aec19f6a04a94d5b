"""Errors of settings.

ConfigError
├── InvalidConfigError      a value or combination is refused; the text is Kafka's
└── ConfigLoadError         all mistakes of a start's settings at once
"""

from dataclasses import dataclass

from typing_extensions import override


class ConfigError(Exception):
    """Any refused setting."""


class InvalidConfigError(ConfigError):
    """One key or combination is refused. Client sees INVALID_CONFIG with this text."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing to correct before the broker can start.

    Attributes:
        key: Kafka's name of the setting, as the user wrote it.
        value: Text given; None where a key is refused whatever its value, masked where secret.
        problem: What is wrong, as a sentence without its full stop.
        expected: Type, unit and bounds in words; empty when there is nothing to expect.
        origin: Where it was read (`server.properties:12`, `environment KAFKA_NUM_PARTITIONS`).
    """

    key: str
    value: str | None
    problem: str
    expected: str
    origin: str

    @override
    def __str__(self) -> str:
        given = self.key if self.value is None else f"{self.key}={self.value}"
        expected = f"; expected {self.expected}" if self.expected else ""
        return f"{given}: {self.problem}{expected} ({self.origin})"


class ConfigLoadError(ConfigError):
    """Every mistake of a start's settings, in the order they were read."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        lines = "\n".join(f"  {mistake}" for mistake in mistakes)
        noun = "mistake" if len(mistakes) == 1 else "mistakes"
        super().__init__(f"{len(mistakes)} {noun} in the settings:\n{lines}")
        self.mistakes = mistakes
