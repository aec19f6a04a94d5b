"""Formats by their specification.

Avro and Protobuf are imported when a spec asks for them: polars, which parses blocks of Avro, takes
45 MB of a worker that is to stay below 256.
"""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from pipeline.lake.schemas.registry import RegisteredSchema, RegistryClient
from pipeline.lake.schemas.spec import Envelope, FieldSpec, RegistrySpec
from pipeline.lake.values.by_schema import OneSchemaFormat, RegistryFormat, SchemaReader
from pipeline.lake.values.envelope import (
    HIDDEN,
    EnvelopeFormat,
    EnvelopeReader,
    JsonEnvelopes,
    JsonUnwrapped,
    row_fields,
)
from pipeline.lake.values.json_blocks import JsonFormat
from pipeline.lake.values.parsed import ValueFormat
from pipeline.lake.values.raw import RawFormat, StringFormat
from pipeline.lake.values.wire import WireFormat


def open_format(
    spec: FieldSpec,
    column: str = "value",
    open_client: Callable[[RegistrySpec], RegistryClient] = RegistryClient,
) -> ValueFormat:
    """The format of a specification.

    Args:
        spec: Of values or keys.
        column: Name of the one column of a format without fields.
        open_client: Of the spec's registry.

    Raises:
        ValueError: Fields that the format cannot have, or none where it needs them.
        RegistryError: The registry's address or credentials cannot be used.
    """
    if spec.envelope == "change":
        fields = pa.schema([*(spec.fields or ()), *HIDDEN])
        return EnvelopeFormat(_opened(replace(spec, fields=fields), column, open_client))
    return _opened(spec, column, open_client)


def _opened(
    spec: FieldSpec, column: str, open_client: Callable[[RegistrySpec], RegistryClient]
) -> ValueFormat:
    match spec.format:
        case "raw":
            return RawFormat(column)
        case "string":
            return StringFormat(column)
        case "json":
            if spec.fields is None:
                raise ValueError("JSON needs a schema: give one, or infer it from a sample")
            plain = _json(spec.fields, spec.envelope)
            return WireFormat(plain) if spec.wire == "confluent" else plain
        case "avro" | "protobuf":
            return _by_schema(spec, open_client, column)


def _json(fields: pa.Schema, envelope: Envelope) -> ValueFormat:
    if envelope == "change":
        return JsonEnvelopes(row_fields(fields))
    return JsonUnwrapped(fields) if envelope == "wrapper" else JsonFormat(fields)


def reader_of(
    kind: str, found: RegisteredSchema, column: str, message: str | None, envelope: Envelope
) -> SchemaReader:
    """A reader of values of a registry's schema.

    Args:
        kind: The format.
        found: The schema.
        column: Name of the one column of a schema without fields.
        message: Of Protobuf, where values do not name it.
        envelope: What fields stand in.

    Raises:
        ValueError: It is of another kind, or no columns can be made of it.
    """
    reader: SchemaReader
    if kind == "avro":
        from pipeline.lake.values.avro import avro_of_registry

        reader = avro_of_registry(found, column)
    else:
        from pipeline.lake.values.protobuf import protobuf_of_registry

        reader = protobuf_of_registry(found, message)
    return EnvelopeReader(reader) if envelope == "change" else reader


def file_reader(
    kind: str,
    definition: bytes,
    column: str,
    message: str | None,
    *,
    indexed: bool,
    envelope: Envelope,
) -> SchemaReader:
    """A reader of values of a given schema.

    Args:
        kind: The format.
        definition: The schema.
        column: Name of the one column of a schema without fields.
        message: Of Protobuf.
        indexed: Whether Protobuf's values name their message, as behind a registry's id.
        envelope: What fields stand in.

    Raises:
        ValueError: No columns can be made of it.
    """
    reader: SchemaReader
    if kind == "avro":
        from pipeline.lake.schemas.avro_schema import parse_avro_schema
        from pipeline.lake.values.avro import AvroReader

        reader = AvroReader(parse_avro_schema(definition), column)
    else:
        from pipeline.lake.values.protobuf import protobuf_of_file

        reader = protobuf_of_file(definition, message, indexed=indexed)
    return EnvelopeReader(reader) if envelope == "change" else reader


def _by_schema(
    spec: FieldSpec, open_client: Callable[[RegistrySpec], RegistryClient], column: str
) -> ValueFormat:
    if spec.fields is None:
        raise ValueError(f"{spec.format} needs the fields of its schema")
    if spec.definition is None:
        if spec.registry is None or spec.wire != "confluent":
            raise ValueError(f"{spec.format} needs a schema, or a registry that values name")
        return RegistryFormat(
            open_client(spec.registry),
            lambda found: reader_of(spec.format, found, column, spec.message, spec.envelope),
            spec.fields,
            bare=spec.bare,
            widen=spec.widen,
        )
    framed = spec.wire == "confluent"
    reader = file_reader(
        spec.format,
        spec.definition,
        column,
        spec.message,
        indexed=framed,
        envelope=spec.envelope,
    )
    one = OneSchemaFormat(reader, spec.fields, bare=spec.bare)
    return WireFormat(one) if framed else one
