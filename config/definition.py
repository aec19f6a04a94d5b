"""One row per key: the model's field, the check of a user's text and the documentation.

A model declares a key so, and the field's name is the key's with `.` as `_`:

    class TopicConfig(Settings):
        retention_ms: int = config_key("retention.ms", milliseconds(-1), default=..., text=...)

The row's bounds hold for what users write. The model itself checks types only, so that our own
code and tests may build, say, a log with tiny segments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from config.errors import InvalidConfigError
from config.kinds import Integer, Kind, WireType

SECRET_SHOWN = "[hidden]"


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker key that gives a topic key its default; the first one that is set wins.

    Attributes:
        key: The broker key's name.
        factor: What its value is multiplied with to have the topic key's unit; negative values stay
            as they are, for they mean "no limit".
    """

    key: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """All that is known of one setting.

    Attributes:
        name: Kafka's name (`segment.bytes`), or ours where Kafka has none.
        kind: Type, unit, bounds.
        default: Value when nothing is set; None means "not set" and another key decides.
        text: What it does, for the documentation.
        source: Where its meaning is fixed: "Kafka", a KIP, or "Varve" for our own keys.
        difference: How our meaning differs from Kafka's; empty when it does not.
        synonyms: Broker keys behind a topic key, strongest first.
        dynamic: Kafka lets it change at run time.
        secret: Its value is masked wherever it is shown.
        internal: Left out of the documentation and of DescribeConfigs.
    """

    name: str
    kind: Kind
    default: object
    text: str
    source: str = "Kafka"
    difference: str = ""
    synonyms: tuple[Synonym, ...] = ()
    dynamic: bool = False
    secret: bool = False
    internal: bool = False

    @property
    def field_name(self) -> str:
        """The model's field: the name with `.` as `_`."""
        return self.name.replace(".", "_")

    @property
    def wire_type(self) -> WireType:
        """Type for DescribeConfigs; PASSWORD when secret."""
        return WireType.PASSWORD if self.secret else self.kind.wire_type

    def parse(self, text: str) -> object:
        """Value of a user's text.

        Raises:
            InvalidConfigError: With Kafka's sentence.
        """
        if "\0" in text:
            # No path can have one, and a message that shows it would be cut there.
            raise InvalidConfigError(
                f"Invalid value for configuration {self.name}: it has a NUL character"
            )
        try:
            return self.kind.parse(self.name, text)
        except ValueError as error:
            raise InvalidConfigError(str(error)) from error

    def format(self, value: object) -> str | None:
        """Text of a value as Kafka would write it; None when it is not set."""
        return None if value is None else self.kind.format(value)

    def shown(self, value: object) -> str | None:
        """Like `format`, masked when secret."""
        return SECRET_SHOWN if self.secret and value is not None else self.format(value)


def config_key(
    name: str,
    kind: Kind,
    *,
    default: object,
    text: str,
    source: str = "Kafka",
    difference: str = "",
    synonyms: tuple[Synonym | str, ...] = (),
    dynamic: bool = False,
    secret: bool = False,
    internal: bool = False,
) -> Any:
    """A model's field and its row in one; returns what pydantic wants as the field's default."""
    row = ConfigKey(
        name=name,
        kind=kind,
        default=default,
        text=text,
        source=source,
        difference=difference,
        synonyms=tuple(Synonym(s) if isinstance(s, str) else s for s in synonyms),
        dynamic=dynamic,
        secret=secret,
        internal=internal,
    )
    info = Field(default=default, repr=not secret)
    assert isinstance(info, FieldInfo)
    info.metadata.append(row)
    return info


class Settings(BaseModel):
    """Base of all settings: frozen, strict about types, no unknown fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        arbitrary_types_allowed=True,
        validate_default=True,
        # A mistaken value may be a secret.
        hide_input_in_errors=True,
    )

    @classmethod
    def rows(cls) -> Mapping[str, ConfigKey]:
        """Every key of the model by Kafka's name, in the order of declaration."""
        return {
            row.name: row
            for info in cls.model_fields.values()
            for row in info.metadata
            if isinstance(row, ConfigKey)
        }

    def with_values(self, values: Mapping[str, object]) -> Self:
        """A checked copy with some fields replaced, by field name."""
        return type(self)(**{**self.model_dump_set(), **values})

    def model_dump_set(self) -> dict[str, object]:
        """The fields that were given, not defaulted, as they are."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def milliseconds(
    minimum: int | None = None, *, bits: Any = 64, special: tuple[tuple[int, str], ...] = ()
) -> Integer:
    """A duration or a time in milliseconds."""
    return Integer("milliseconds", minimum, bits=bits, special=special)


def size(
    minimum: int | None = None, *, bits: Any = 32, special: tuple[tuple[int, str], ...] = ()
) -> Integer:
    """A size in bytes."""
    return Integer("bytes", minimum, bits=bits, special=special)


def count(
    minimum: int | None = None,
    unit: str = "",
    *,
    bits: Any = 32,
    special: tuple[tuple[int, str], ...] = (),
) -> Integer:
    """A number of things."""
    return Integer(unit, minimum, bits=bits, special=special)
