"""From a spec to the format that reads values."""

from pipeline.lake.values.json_blocks import JsonFormat
from pipeline.lake.values.parsed import ValueFormat
from pipeline.lake.values.raw import RawFormat, StringFormat
from pipeline.lake.values.spec import FieldSpec
from pipeline.lake.values.wire import WireFormat


def open_format(spec: FieldSpec, column: str = "value") -> ValueFormat:
    """What a spec means.

    Args:
        spec: Of values or keys.
        column: Name of the one column of a format without fields.

    Raises:
        ValueError: fields that the format cannot have, or none where it needs them.
    """
    match spec.format:
        case "raw":
            return RawFormat(column)
        case "string":
            return StringFormat(column)
        case "json":
            if spec.fields is None:
                raise ValueError("JSON needs a schema: give one, or infer it from a sample")
            plain = JsonFormat(spec.fields)
            return WireFormat(plain) if spec.wire == "confluent" else plain
        case _:
            raise ValueError(f"{spec.format} values cannot be read")
