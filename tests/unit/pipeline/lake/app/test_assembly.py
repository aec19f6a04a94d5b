"""A whole job from its settings: a bucket with real segments, each kind of table."""

import json
import threading
from pathlib import Path
from uuid import UUID

import pytest

from pipeline.lake.app.assembly import ReadPieces, job_settings, open_job, run_job
from pipeline.lake.app.log_source import source_options
from pipeline.lake.errors import JobConfigError, TopicReplacedError
from pipeline.lake.settings.config import JobConfig, parse_job
from pipeline.plan.errors import PlanError
from pipeline.read.piece.piece_rows import ReadOptions
from tests.fakes.lake.tables import KINDS, coordinates, read_table
from tests.fakes.lake.topic_bucket import LakeBucket, orders_bucket, record


def job(root: Path, kind: str = "parquet", more: str = "", source: str = "") -> JobConfig:
    """Of the topic `t` of the bucket, into a table named `orders`."""
    sink = f"type: {kind}, table: {root}/orders"
    if kind == "iceberg":
        catalog = (
            f"name: tests, uri: 'sqlite:///{root}/catalog.db', warehouse: 'file://{root}/tables'"
        )
        sink = f"type: iceberg, table: lake.orders, catalog: {{type: sql, {catalog}}}"
    return parse_job(
        f"source: {{location: '{root}/bucket', topic: t{source}}}\n"
        f"value: {{format: json}}\nsink: {{{sink}, partition_by: [day(timestamp)]}}\n"
        f"runner: {{type: local}}\n{more}"
    )


def is_json(value: bytes) -> bool:
    return value.startswith(b'{"')


@pytest.mark.parametrize("kind", KINDS)
async def test_a_table_has_what_a_consumer_sees(kind: str, tmp_path: Path) -> None:
    """Committed rows, each once; what is no JSON is in the quarantine."""
    bucket = await orders_bucket(tmp_path / "bucket")
    (tmp_path / "tables").mkdir()
    assert run_job(job(tmp_path, kind)) == 1
    table = read_table(kind, tmp_path).to_pydict()
    rows = dict(zip(table["offset"], table["id"], strict=True))
    good = {o: json.loads(v)["id"] for o, v in bucket.values.items() if is_json(v)}
    assert len(table["offset"]) == len(rows)
    assert rows == good
    bad = [(0, offset) for offset, value in bucket.values.items() if not is_json(value)]
    assert coordinates(read_table(kind, tmp_path, "orders_quarantine")) == bad
    assert run_job(job(tmp_path, kind)) == 0


async def test_a_job_goes_on_with_new_segments(tmp_path: Path) -> None:
    bucket = await orders_bucket(tmp_path / "bucket")
    run_job(job(tmp_path))
    bucket.write([record(n) for n in range(400, 420)])
    await bucket.copy()
    assert run_job(job(tmp_path)) == 1
    expected = [(0, offset) for offset, value in bucket.values.items() if is_json(value)]
    assert coordinates(read_table("parquet", tmp_path)) == expected


async def test_small_batches_end_where_pieces_do(tmp_path: Path) -> None:
    """No task reads bytes of which it gives no row, where an index tells."""
    bucket = await orders_bucket(tmp_path / "bucket")
    config = job(tmp_path, more="batch: {max_bytes: 3 KiB}")
    assert run_job(config) >= 2
    expected = [(0, offset) for offset, value in bucket.values.items() if is_json(value)]
    assert coordinates(read_table("parquet", tmp_path)) == expected


async def test_a_topic_made_anew_is_told_before_any_task(tmp_path: Path) -> None:
    await orders_bucket(tmp_path / "bucket")
    run_job(job(tmp_path))
    anew = LakeBucket(tmp_path / "bucket", topic_id=UUID(int=9))
    anew.world.clock.advance(1000)
    anew.write([record(0)])
    await anew.copy()
    with pytest.raises(TopicReplacedError):
        run_job(job(tmp_path))
    rows = read_table("parquet", tmp_path).num_rows
    assert run_job(job(tmp_path), new_incarnation=True) == 1
    assert read_table("parquet", tmp_path).num_rows == rows + 1


async def test_a_stopped_job_ends(tmp_path: Path) -> None:
    await orders_bucket(tmp_path / "bucket")
    stop = threading.Event()
    stop.set()
    assert run_job(job(tmp_path, more="batch: {every: 60 s}"), stop=stop) == 0


def test_a_bucket_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no directory"):
        run_job(job(tmp_path))


def test_mistakes_that_only_the_source_sees_are_told_alike(tmp_path: Path) -> None:
    with pytest.raises(JobConfigError, match="source: "):
        run_job(job(tmp_path, source=", store: {profile: x}"))
    with (
        pytest.raises(JobConfigError, match="mode: upsert"),
        open_job(job(tmp_path, more="mode: upsert")),
    ):
        pass


def test_a_job_reads_committed_rows_unless_told_otherwise(tmp_path: Path) -> None:
    assert source_options(job(tmp_path)).read_committed
    loose = job(tmp_path, source=", isolation: read_uncommitted, headers: true")
    assert not source_options(loose).read_committed
    assert "headers" in source_options(loose).columns


def test_what_decides_the_bytes_is_in_the_fingerprint(tmp_path: Path) -> None:
    one = job_settings(job(tmp_path)).facts
    assert one == job_settings(job(tmp_path, more="batch: {every: 60 s}")).facts
    assert one != job_settings(job(tmp_path, source=", isolation: read_uncommitted")).facts
    assert one != job_settings(job(tmp_path, more="errors: {quarantine: fail}")).facts


def test_readers_travel_without_showing_secrets(tmp_path: Path) -> None:
    config = parse_job(
        "source: {location: s3://bucket/x, topic: t, "
        "store: {access_key_id: someone, secret_access_key: hush-hush}}\n"
        f"sink: {{type: delta, table: {tmp_path}/t}}"
    )
    options = source_options(config)
    assert options.bucket is not None
    assert options.bucket.secret_access_key == "hush-hush"
    assert "hush" not in repr(ReadPieces(ReadOptions(options.bucket)))
    assert "hush" not in repr(options)
