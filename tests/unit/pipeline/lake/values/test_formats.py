"""From a spec to what reads values."""

import pytest

from pipeline.lake.schemas.ddl import parse_ddl
from pipeline.lake.schemas.spec import FieldSpec
from pipeline.lake.values.formats import open_format
from pipeline.lake.values.json_blocks import JsonFormat
from pipeline.lake.values.raw import RawFormat, StringFormat
from pipeline.lake.values.wire import WireFormat

FIELDS = parse_ddl("id int")


@pytest.mark.parametrize(
    ("spec", "kind", "names"),
    [
        (FieldSpec("raw"), RawFormat, ["key"]),
        (FieldSpec("string"), StringFormat, ["key"]),
        (FieldSpec("json", fields=FIELDS), JsonFormat, ["id"]),
        (FieldSpec("json", "confluent", FIELDS), WireFormat, ["id"]),
    ],
)
def test_a_spec_names_its_format(spec: FieldSpec, kind: type, names: list[str]) -> None:
    """And the column of those without fields."""
    opened = open_format(spec, "key")
    assert isinstance(opened, kind)
    assert opened.schema.names == names


def test_json_without_a_schema_is_refused() -> None:
    """Inferring is for whoever sees a sample."""
    with pytest.raises(ValueError, match="JSON needs a schema"):
        open_format(FieldSpec("json"))
