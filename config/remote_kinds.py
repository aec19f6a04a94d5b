"""Kinds of values of remote storage: an implementation's name, a ring of key files.

Each is a kind as in `config.kinds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from config.kinds import WireType, refusal


@dataclass(frozen=True, slots=True)
class Implementation:
    """The name of a part that Kafka would load; only those we stand in for are taken.

    Attributes:
        names: Accepted name to the one it is kept as.
        advice: What to use instead of any other name, as a sentence's second half.
        wire: STRING or CLASS.
    """

    names: Mapping[str, str]
    advice: str
    wire: WireType = WireType.STRING

    @property
    def wire_type(self) -> WireType:
        """As given."""
        return self.wire

    @property
    def description(self) -> str:
        """The names."""
        return "one of " + ", ".join(self.names)

    def parse(self, name: str, text: str) -> str:
        """Read a known name."""
        stripped = text.strip()
        if not stripped:
            raise ValueError(refusal(name, stripped, "String must be non-empty"))
        known = self.names.get(stripped)
        if known is None:
            raise ValueError(refusal(name, stripped, f"Varve does not load classes; {self.advice}"))
        return known

    def format(self, value: object) -> str:
        """Give the name."""
        return str(value)


class KeyFiles(NamedTuple):
    """PEM files of one RSA key pair; an empty path: there is no such file."""

    public: str
    private: str


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Key pair id to its files: `id.public=path,id.private=path,...`.

    An id may hold dots; a path may hold no comma.
    """

    @property
    def wire_type(self) -> WireType:
        """STRING."""
        return WireType.STRING

    @property
    def description(self) -> str:
        """The form."""
        return "comma-separated list of ID.public=FILE and ID.private=FILE, may be empty"

    def parse(self, name: str, text: str) -> Mapping[str, KeyFiles]:
        """Read the files; each may be named once."""
        ring: dict[str, KeyFiles] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            key, equals, path = part.partition("=")
            pair, _, half = key.strip().rpartition(".")
            path = path.strip()
            if not equals or not pair or half not in KeyFiles._fields or not path:
                problem = f"`{part}` is not ID.public=FILE or ID.private=FILE"
                raise ValueError(refusal(name, text.strip(), problem))
            before = ring.get(pair, KeyFiles("", ""))
            if getattr(before, half):
                raise ValueError(refusal(name, text.strip(), f"{key.strip()} is given twice"))
            ring[pair] = before._replace(**{half: path})
        return ring

    def format(self, value: object) -> str:
        """Join with commas."""
        assert isinstance(value, Mapping)
        return ",".join(
            f"{pair}.{half}={path}"
            for pair, files in value.items()
            for half, path in zip(files._fields, files, strict=True)
            if path
        )
