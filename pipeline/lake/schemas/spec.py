"""Specification of a value or a key: a format with all that converts it, ready to be pickled.

A spec goes to executors, so it holds no secret: credentials of a registry are a file's name, read
where the registry is asked.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from pipeline.lake.schemas.columns import KEY_BYTES

Format: TypeAlias = Literal["raw", "string", "json", "avro", "protobuf"]
Wire: TypeAlias = Literal["plain", "confluent"]
Envelope: TypeAlias = Literal["none", "wrapper", "change"]
Mode: TypeAlias = Literal["append", "upsert", "debezium"]

MAX_VALUE_BYTES = 1024 * 1024
"""Of a value that is parsed, by default: a worker stays below 256 MiB."""


@dataclass(frozen=True)
class RegistrySpec:
    """A schema registry with Confluent's API.

    Attributes:
        url: With `http` or `https`; without user and password.
        credentials_file: Two lines, user and password; none: nothing is sent.
        ca_file: Certificates that are trusted instead of the machine's own.
        timeout_ms: For one request.
    """

    url: str
    credentials_file: str | None = None
    ca_file: str | None = None
    timeout_ms: int = 10_000


@dataclass(frozen=True)
class FieldSpec:
    """Format of one side of a record: its key, or its value.

    Attributes:
        format: Raw bytes, text, JSON, Avro or Protobuf.
        wire: `confluent`: a zero byte and the registry's id come first.
        fields: Fields that a value of this format gives, as the table keeps them; none for raw
            bytes and text.
        definition: Avro's schema as JSON text, Protobuf's descriptor set; none with a registry.
        message: Full name of Protobuf's message; without it the first of the file.
        registry: Where writers' schemas are found; with `wire` only.
        bare: Whether the schema has no fields: one column by itself.
        widen: Whether types of the table's columns can be changed.
        envelope: What fields stand in: JSON maybe in Connect's wrapper, or Debezium's change.
        max_value_bytes: A longer value is quarantined, unless it is raw bytes or text: parsing one
            takes several times its size.
    """

    format: Format = "raw"
    wire: Wire = "plain"
    fields: pa.Schema | None = None
    definition: bytes | None = None
    message: str | None = None
    registry: RegistrySpec | None = None
    bare: bool = False
    widen: bool = False
    envelope: Envelope = "none"
    max_value_bytes: int = MAX_VALUE_BYTES


@dataclass(frozen=True)
class ConverterSpec:
    """Formats and columns by which a record becomes a row.

    Attributes:
        value: Of values: their fields are columns of the table.
        key: Of keys: one column `key`, a struct where keys have fields; none: no such column.
        headers: Whether there is a column of headers.
        mode: Whether every record is a row, or the last one of each key.
    """

    value: FieldSpec = FieldSpec()
    key: FieldSpec | None = FieldSpec()
    headers: bool = False
    mode: Mode = "append"

    @property
    def identity(self) -> str:
        """The column with the bytes of a row's key, in a table that is kept by key."""
        assert self.key is not None
        return "key" if self.key.format in ("raw", "string") else KEY_BYTES
