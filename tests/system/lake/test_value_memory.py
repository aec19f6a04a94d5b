"""What converting takes: a worker stays below 256 MiB, with everything that it has imported."""

import subprocess
import sys

import pytest

PROGRAM = """
import json
import pipeline.lake.work.task, pipeline.lake.files.file_writer
from pipeline.lake.values.avro_records import MAX_RECORD_BYTES
from pipeline.lake.values.converter import Converter
from pipeline.lake.schemas.spec import MAX_VALUE_BYTES
from pipeline.lake.values.table_columns import FieldSettings, TableColumns
from tests.unit.pipeline.lake.values.batches import batch
from tests.fakes.lake.proto_messages import definition, file, message

SIZE = MAX_VALUE_BYTES - 100


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def avro(kind):
    fields = [{"name": "a", "type": kind}]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    return FieldSettings("avro", definition=schema.encode())


def case(name):
    if name == "json text":
        return FieldSettings("json", definition=b"s string"), b'{"s":"' + b"x" * SIZE + b'"}'
    if name == "json numbers":
        value = b'{"a":[' + b"1," * (SIZE // 2) + b"1]}"
        return FieldSettings("json", definition=b"a array<bigint>"), value
    if name == "avro text":
        return avro("string"), varint(2 * SIZE) + b"x" * SIZE
    if name == "avro numbers":
        value = varint(2 * SIZE) + bytes(SIZE) + b"\\0"
        return avro({"type": "array", "items": "int"}), value
    if name == "avro union":
        count = MAX_RECORD_BYTES // 2 - 100
        value = varint(2 * count) + bytes(2 * count) + b"\\0"
        return avro({"type": "array", "items": ["int", "string"]}), value
    described = definition(file("o", message("O", "repeated int64 xs")))
    return FieldSettings("protobuf", definition=described), b"\\x0a" + varint(SIZE) + bytes(SIZE)


settings, value = case(NAME)
one = batch([value])
converter = Converter(TableColumns(settings).spec(None))
for _ in range(5):
    converted = converter.convert(one)
    assert converted.rows.num_rows == 1, converted.quarantined.column("reason")
print(next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmHWM")))
"""

NAMES = ["json text", "json numbers", "avro text", "avro numbers", "avro union", "protobuf"]


@pytest.mark.parametrize("name", NAMES)
def test_the_largest_values_stay_below_the_bound(name: str) -> None:
    """One after the other, so nothing piles up either; numbers of a byte grow the most."""
    run = subprocess.run(
        [sys.executable, "-c", f"NAME = {name!r}\n{PROGRAM}"],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    peak_mib = int(run.stdout) / 1024
    # A reader and a writer of files need their part, too.
    assert peak_mib < 256 - 24
