"""A bucket and a batch become new files, in bounded memory and the same bytes each time."""

from pathlib import Path

import pyarrow as pa

from pipeline.lake.batch.batch_plan import TaskRange
from pipeline.lake.files.data_file import BucketNames
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.keyed.bucket_task import (
    BucketResult,
    BucketSpec,
    BucketTask,
    RunRows,
    run_bucket_task,
)
from pipeline.lake.runs.row_order import NEW, NO_TIME, buckets_of, with_kind
from pipeline.lake.runs.run_file import Run
from pipeline.lake.runs.run_writer import RunWriter
from pipeline.lake.schemas.columns import ORDER_TIME, TIMESTAMP
from pipeline.lake.work.task import TableTarget
from tests.fakes.lake.numbers_log import TOPIC_ID
from tests.fakes.lake.tables import OpenDirectory, open_directory

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field(ORDER_TIME, TIMESTAMP),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)


def rows(keys: list[bytes], start: int, value: bytes = b"v") -> pa.RecordBatch:
    count = len(keys)
    times = pa.array(range(start, start + count), pa.int64()).cast(TIMESTAMP)
    columns = [
        pa.array(["t"] * count),
        pa.array([0] * count, pa.int32()),
        pa.array(range(start, start + count), pa.int64()),
        times,
        times,
        pa.array(keys, pa.binary()),
        pa.array([value] * count, pa.binary()),
    ]
    return with_kind(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), NEW)


def runs(root: Path, keys: list[bytes], start: int, per_run: int) -> list[Run]:
    """Runs of so many rows each; of one bucket."""
    made: list[Run] = []
    for at in range(0, len(keys), per_run):
        some = keys[at : at + per_run]
        task = TaskRange(0, start + at, start + at + len(some))
        writer = RunWriter(open_directory(str(root)), "_varve/runs/", task, 1, "key", SCHEMA)
        writer.write(rows(some, start + at), 100 * len(some))
        made.extend(writer.finish())
    return made


def merge(root: Path, batch: int, found: list[Run], files: tuple[str, ...] = ()) -> BucketResult:
    target = TableTarget(OpenDirectory(str(root)), "", WriterOptions(target_file_bytes=256 * 1024))
    names = BucketNames("", "t", TOPIC_ID, 0, batch, "0a1b2c3d")
    parts = tuple(RunRows(run.key, part, NO_TIME) for run in found for part in run.parts)
    task = BucketTask(names, f"_varve/deleted-{batch}", (files,) if files else (), "", parts)
    return run_bucket_task(task, BucketSpec(target, SCHEMA, "key"))


def test_more_runs_than_are_merged_at_once_are_merged_in_rounds(tmp_path: Path) -> None:
    keys = [b"%05d" % (n * 7919 % 3000) for n in range(6000)]
    made = runs(tmp_path, keys, 0, 60)
    assert len(made) == 100
    result = merge(tmp_path, 1, made)
    assert (result.upserted, result.deleted) == (3000, 0)
    assert sum(file.rows for file in result.files) == 3000
    assert min(file.first_offset for file in result.files) == 3000
    assert not list(tmp_path.rglob("*.tmp"))


def test_who_repeats_a_task_writes_the_same_bytes(tmp_path: Path) -> None:
    keys = [b"%05d" % (n * 7919 % 30000) for n in range(30000)]
    first = merge(tmp_path, 1, runs(tmp_path, keys, 0, 10_000))
    base = tuple(file.key for file in first.files)
    again = runs(tmp_path, keys[::3], 30_000, 2_000)
    second = merge(tmp_path, 2, again, base)
    data = {file.key: (tmp_path / file.key).read_bytes() for file in second.files}
    assert merge(tmp_path, 2, again, base) == second
    assert {key: (tmp_path / key).read_bytes() for key in data} == data


def test_keys_are_spread_over_the_buckets() -> None:
    found = buckets_of(pa.array([b"user-%d" % n for n in range(16_000)], pa.binary()), 16)
    counts = [int((found == bucket).sum()) for bucket in range(16)]
    assert min(counts) > 800
