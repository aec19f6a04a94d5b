"""Columns of a table, from settings, a schema, the table as it is, or a sample.

    the table is there    its columns stay; a schema may add to them (`evolution`)
    a schema is given     its fields
    a registry is         the latest schema of the subject
    neither               JSON is inferred from a sample; from then on the table's columns say it

So what was inferred is fixed by the table itself, and every later run finds it there.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from pipeline.lake.schemas.columns import (
    KEY_BYTES,
    ORDER_TIME,
    RESERVED,
    field_name,
    plain_type,
    value_columns,
)
from pipeline.lake.schemas.ddl import parse_ddl
from pipeline.lake.schemas.evolution import SchemaChangeError, followed, narrower_floats
from pipeline.lake.schemas.json_schema import InferenceError, infer_json_schema
from pipeline.lake.schemas.registry import RegistryClient
from pipeline.lake.schemas.spec import (
    MAX_VALUE_BYTES,
    ConverterSpec,
    Envelope,
    FieldSpec,
    Format,
    Mode,
    RegistrySpec,
    Wire,
)
from pipeline.lake.values.envelope import row_fields, sampled_objects, sampled_rows
from pipeline.lake.values.formats import file_reader, reader_of
from pipeline.lake.values.json_blocks import JsonFormat


class FieldSettings(NamedTuple):
    """Settings of values or keys.

    Attributes:
        format: Of the bytes.
        wire: Whether a registry's id comes first.
        definition: Content of the schema's file; none: from the registry or a sample.
        message: Full name of Protobuf's message; none: the first of the file.
        registry: Where schemas are.
        subject: Of the registry, whose latest schema the table begins with.
        max_value_bytes: A longer value is quarantined.
        envelope: What fields stand in.
    """

    format: Format = "raw"
    wire: Wire = "plain"
    definition: bytes | None = None
    message: str | None = None
    registry: RegistrySpec | None = None
    subject: str = ""
    max_value_bytes: int = MAX_VALUE_BYTES
    envelope: Envelope = "none"


class TableColumns:
    """Finds the converter's spec for a table; on the driver."""

    def __init__(
        self,
        value: FieldSettings,
        key: FieldSettings | None = None,
        *,
        headers: bool = False,
        widen: bool = False,
        mode: Mode = "append",
        sample: Callable[[str], Iterable[bytes | None]] = lambda side: (),
        open_client: Callable[[RegistrySpec], RegistryClient] = RegistryClient,
    ) -> None:
        """Nothing is read yet.

        Args:
            value: Of values.
            key: Of keys; none: the table has no column for them.
            headers: Whether the table has a column for them.
            widen: Whether types of columns that are there can be changed in this table.
            mode: Whether it is kept by key.
            sample: The topic's first values, or keys: called with "value" or "key". Called only
                where there is no other way to know.
            open_client: Of a registry, with its credentials.
        """
        self._value = value
        self._key = key
        self._headers = headers
        self._widen = widen
        self._mode: Mode = mode
        self._sample = sample
        self._open_client = open_client

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        """Specification of the conversion of records to rows.

        Args:
            table: Its columns; none: it is made now.

        Raises:
            SchemaTextError, InferenceError, SchemaChangeError: All `ValueError`s, with sentences
                for the author of the job.
            RegistryError: The registry cannot be asked, or has no such subject.
        """
        key = None
        if self._key is not None:
            key = self._side(self._key, "key", None if table is None else _key_fields(table))
        fields = None if table is None else _value_fields(table, self._mode)
        value = self._side(self._value, "value", fields)
        return ConverterSpec(value, key, self._headers, self._mode)

    def evolved(self, spec: ConverterSpec, behind: frozenset[int]) -> ConverterSpec:
        """The spec with columns for all that some of the registry's schemas have.

        Args:
            spec: With which these schemas were found to be `Converted.behind`.
            behind: Their ids, as there.

        Raises:
            RegistryError: The registry cannot be asked, or has them no more.
        """
        value = self._follow(spec.value, self._value, "value", sorted(n for n in behind if n > 0))
        key = spec.key
        if key is not None and self._key is not None:
            key = self._follow(key, self._key, "key", sorted(-n for n in behind if n < 0))
        return replace(spec, value=value, key=key)

    def _follow(
        self, spec: FieldSpec, given: FieldSettings, side: str, behind: list[int]
    ) -> FieldSpec:
        if spec.registry is None or spec.fields is None:
            return spec
        client = self._open_client(spec.registry)
        fields = spec.fields
        for schema_id in behind:
            found = client.by_id(schema_id)
            reader = reader_of(spec.format, found, side, given.message, given.envelope)
            fields = followed(fields, row_fields(reader.written), widen=spec.widen)
        checked(spec.format, fields)
        return replace(spec, fields=fields)

    def _side(self, given: FieldSettings, side: str, table: pa.Schema | None) -> FieldSpec:
        if given.format in ("raw", "string"):
            return FieldSpec(given.format, given.wire)
        wanted, bare = _given_fields(given, side) or self._registered(given, side)
        if wanted is None:
            wanted = table if table is not None else self._inferred(side, given)
        if side == "key" and table is not None and bare != (table.names == ["key"]):
            fields = "no fields" if bare else "fields"
            raise SchemaChangeError(f"keys have {fields} by their schema, other than in the table")
        fields = wanted if table is None else followed(table, wanted, widen=self._widen)
        if given.format == "json" and (cut := narrower_floats(list(fields), list(wanted))):
            raise SchemaChangeError(
                f"{', '.join(cut)}: float in the table and double in the schema, and this table's "
                "types stay: numbers would be cut. Say float in the schema, or fill a new table"
            )
        checked(given.format, fields)
        schema_driven = given.format in ("avro", "protobuf")
        return FieldSpec(
            given.format,
            given.wire,
            fields,
            definition=given.definition if schema_driven else None,
            message=given.message,
            registry=given.registry,
            bare=bare,
            widen=self._widen,
            max_value_bytes=given.max_value_bytes,
            envelope=given.envelope,
        )

    def _registered(self, given: FieldSettings, side: str) -> tuple[pa.Schema | None, bool]:
        """Fields of the registry's latest schema; none for JSON, which has no need of it."""
        if given.format == "json":
            return None, False
        if given.registry is None:
            raise ValueError(f"{given.format} {side}s need a schema or a registry")
        found = self._open_client(given.registry).latest(given.subject)
        reader = reader_of(given.format, found, side, given.message, given.envelope)
        return row_fields(reader.written), reader.bare

    def _inferred(self, side: str, given: FieldSettings) -> pa.Schema:
        try:
            return infer_json_schema(_unwrapped(self._sample(side), given.envelope))
        except InferenceError as error:
            raise InferenceError(f"{side}: {error}") from None


def checked(kind: Format, fields: pa.Schema) -> pa.Schema:
    """Fields that a format can have, and a table.

    Raises:
        ValueError: It cannot.
    """
    value_columns(fields)
    if kind == "json":
        JsonFormat(fields)
    return fields


def check_settings(given: FieldSettings, side: str) -> None:
    """Check a given schema, before anything else is done.

    Raises:
        ValueError: It is none of its format, or no columns can be made of it.
    """
    _given_fields(given, side)


def _given_fields(given: FieldSettings, side: str) -> tuple[pa.Schema | None, bool] | None:
    """Fields of a schema that is given, and whether it has none of its own; none if none is."""
    if given.definition is None:
        return None
    if given.format == "json":
        return checked("json", parse_ddl(given.definition.decode())), False
    indexed = given.wire == "confluent"
    reader = file_reader(
        given.format,
        given.definition,
        side,
        given.message,
        indexed=indexed,
        envelope=given.envelope,
    )
    return row_fields(reader.written), reader.bare


def _unwrapped(values: Iterable[bytes | None], envelope: Envelope) -> Iterable[bytes | None]:
    if envelope == "change":
        return sampled_rows(values)
    return sampled_objects(values) if envelope == "wrapper" else values


def _value_fields(table: pa.Schema, mode: Mode) -> pa.Schema:
    """Columns of a table as fields of the value."""
    reserved = RESERVED if mode == "append" else {*RESERVED, ORDER_TIME, KEY_BYTES}
    return pa.schema(
        [
            field.with_name(field_name(field.name)).with_type(plain_type(field.type))
            for field in table
            if field.name.lower() not in reserved
        ]
    )


def _key_fields(table: pa.Schema) -> pa.Schema | None:
    index = table.get_field_index("key")
    if index < 0:
        return None
    kind = plain_type(table.field(index).type)
    return pa.schema(list(kind) if pa.types.is_struct(kind) else [pa.field("key", kind)])
