"""What tasks take of the memory, each in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from pipeline.plan.piece import Piece
from tests.fakes.lake.numbers_log import read_rows

HUGE = """
import sys
import pyarrow as pa
from pipeline.lake.work.task import run_task
from tests.system.lake.test_task_memory import huge_rows
from tests.unit.pipeline.lake.work.test_task import piece, spec, task
from pathlib import Path
result = run_task(task(piece(0, 60)), spec(Path(sys.argv[1])), huge_rows)
# Not ru_maxrss, which a process takes over from the one that started it.
status = Path("/proc/self/status").read_text()
peak_kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
print(result.rows, int(peak_kib) // 1024)
"""


def huge_rows(one: Piece, /) -> Iterator[pa.RecordBatch]:
    """A record of a megabyte a batch, the largest values that are no quarantine's; 54 MB."""
    for batch in read_rows(one, batch_rows=1):
        value = b'{"id": %d, "name": "%s"}' % (batch.column("offset")[0].as_py(), b"x" * 1_000_000)
        at = batch.schema.get_field_index("value")
        yield batch.set_column(at, batch.schema.field(at), pa.array([value], pa.binary()))


def test_a_worker_stays_small_however_large_records_are(tmp_path: Path) -> None:
    """256 MiB, the libraries and this test's own among them."""
    shown = subprocess.run(
        [sys.executable, "-c", HUGE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    rows, peak_mib = map(int, shown.stdout.split())
    assert rows == 54
    assert peak_mib < 256


PROGRAM = """
import sys, os
from pathlib import Path
import numpy as np, pyarrow as pa
from tests.unit.pipeline.lake.keyed import test_bucket_task as t

root = Path(sys.argv[1])
noise = np.random.default_rng(1)
def run_of(keys, start):
    task = t.TaskRange(0, start, start + len(keys))
    writer = t.RunWriter(t.open_directory(str(root)), "_varve/runs/", task, 1, "key", t.SCHEMA)
    for at in range(0, len(keys), 1000):
        some = keys[at : at + 1000]
        batch = t.rows(some, start + at)
        values = pa.array([noise.bytes(1000) for _ in some], pa.binary())
        writer.write(batch.set_column(6, t.SCHEMA.field(6), values), 1100 * len(some))
    return list(writer.finish())

def merge(batch, found, files=()):
    target = t.TableTarget(t.OpenDirectory(str(root)), "", t.WriterOptions())
    names = t.BucketNames("", "t", t.TOPIC_ID, 0, batch, "0a1b2c3d")
    parts = tuple(t.RunRows(r.key, p, t.NO_TIME) for r in found for p in r.parts)
    task = t.BucketTask(names, f"_varve/deleted-{batch}", (files,) if files else (), "", parts)
    return t.run_bucket_task(task, t.BucketSpec(target, t.SCHEMA, "key"))

def every(step, at, count):
    return [b"%08d" % (n * step + at) for n in range(count)]

made = [run for n in range(14) for run in run_of(every(14, n, 20000), n * 20000)]
first = merge(1, made)
assert sum(f.size for f in first.files) > 256 << 20
made = [run for n in range(20) for run in run_of(every(20, n, 1000), 400000 + n * 1000)]
second = merge(2, made, tuple(f.key for f in first.files))
assert sum(f.rows for f in second.files) == 280000
print(next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmHWM")))
"""


def test_memory_does_not_depend_on_the_buckets_size(tmp_path: Path) -> None:
    """280 MB of rows, in more runs than are merged at once; then rewritten by a small batch."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert int(run.stdout) / 1024 < 256
