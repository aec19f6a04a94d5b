"""What converting takes: a worker stays below 256 MiB, with everything that it has imported."""

import subprocess
import sys

import pytest

PROGRAM = """
import pyarrow as pa
import pipeline.lake.task, pipeline.lake.file_writer
from pipeline.lake.values.converter import Converter
from pipeline.lake.values.ddl import parse_ddl
from pipeline.lake.values.spec import MAX_VALUE_BYTES, ConverterSpec, FieldSpec
from tests.unit.pipeline.lake.values.batches import batch

size = MAX_VALUE_BYTES - 100
if {kind!r} == "json":
    spec, value = FieldSpec("json", fields=parse_ddl("s string")), b'{{"s":"' + b"x" * size + b'"}}'
else:
    text = b'{{"type": "record", "name": "R", "fields": [{{"name": "s", "type": "string"}}]}}'
    spec = FieldSpec("avro", fields=parse_ddl("s string"), definition=text)
    length, head = 2 * size, bytearray()
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    value = bytes([*head, length]) + b"x" * size
one = batch([value])
converter = Converter(ConverterSpec(spec))
for _ in range(20):
    converted = converter.convert(one)
    assert converted.rows.num_rows == 1
print(next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmHWM")))
"""


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_the_largest_values_stay_below_the_bound(kind: str) -> None:
    """One after the other: nothing piles up either."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(kind=kind)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert int(run.stdout) / 1024 < 256
