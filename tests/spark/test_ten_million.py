"""Row for row what a consumer and Spark's own connector give, of a topic with a whole life.

`make test-exact` reads 10,000,000 records so, in half an hour and with 3 GB of disk; elsewhere
RECORDS_DEFAULT do, or what VARVE_TEST_RECORDS says. The history is told in `long_history`.

Every read is summed up by partition in one pass: how many rows, a sum of their hashes over all
columns, of their offsets, and the least and greatest one, apart for what lies in the bucket and
what behind it. A sum hides no difference that matters, but does not show any either: so windows of
offsets are compared row by row as well.
"""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from bench.process import tree
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.piece.piece_rows import ReadOptions, read_piece
from pipeline.source.options.offsets import format_offsets
from pipeline.source.options.options import parse_options
from pipeline.source.planner import Planner
from storage.types.topic_partition import TopicPartition
from tests.spark.comparison import kafka, sorted_rows, varve
from tests.spark.consumer_dump import SCHEMA, dump, dumped
from tests.spark.long_history import NAME, PARTITIONS, SETTINGS, LongHistory
from tests.spark.test_tiers import fetches
from tests.spark.tiered_topic import TieredBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDS_DEFAULT = 200_000
RECORDS = int(os.environ.get("VARVE_TEST_RECORDS", RECORDS_DEFAULT))
LEVELS = ("read_uncommitted", "read_committed")
WORKER_BYTES_MAX = 256 * 1024 * 1024
COLUMNS = tuple(SCHEMA.names)
WINDOW = 300

Sums = Mapping[tuple[int, bool], tuple[int, int, int, int, int]]
"""By partition, and whether in the bucket: rows, hashes, sum, least and greatest of offsets."""


class Told(NamedTuple):
    """What a level has: rows as a consumer got them, and where the bucket's part ends."""

    dump: Path
    ends: Mapping[TopicPartition, int]
    sums: Sums


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongHistory]:
    folder = tmp_path_factory.mktemp("history")
    broker = TieredBroker(folder, {"rsm.config.storage.root": str(folder / "bucket"), **SETTINGS})
    broker.start()
    history = LongHistory(broker, RECORDS)
    try:
        history.live(report)
        report("the history is told")
        yield history
    finally:
        history.close()
        broker.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def told(spark: Any, history: LongHistory) -> Mapping[str, Told]:
    """The consumer's rows at each level."""
    found = {}
    for level in LEVELS:
        path = history.broker.directory / level
        rows = dump(history.broker.node.address, NAME, PARTITIONS, level, path)
        report(f"a consumer has read {rows} rows, {level}, from {history.log_starts()}")
        ends = history.broker.bucket_ends(NAME, level)
        found[level] = Told(path, ends, sums(spark.read.parquet(str(path)), ends))
        assert sum(one[0] for one in found[level].sums.values()) == rows
    return found


@pytest.fixture(scope="module")
def workers(spark: Any) -> Iterator["WorkerMemory"]:
    memory = WorkerMemory()
    memory.start()
    yield memory
    memory.stop()


BEGUN = time.monotonic()


def report(text: str) -> None:
    """For who watches a run of many minutes (`pytest -s`)."""
    sys.stdout.write(f"{time.monotonic() - BEGUN:8.1f} s  {text}\n")
    sys.stdout.flush()


def sums(rows: Any, ends: Mapping[TopicPartition, int]) -> Sums:
    """One pass over all rows."""
    from pyspark.sql import functions

    begun = time.monotonic()
    hashed = ", ".join(f"`{name}`" for name in COLUMNS)
    border = " ".join(f"WHEN {one.partition} THEN {end}" for one, end in ends.items())
    marked = rows.selectExpr(
        "partition",
        f"offset < CASE partition {border} END AS inside",
        "offset",
        f"cast(xxhash64({hashed}) AS decimal(38, 0)) AS hash",
    )
    found = (
        marked.groupBy("partition", "inside")
        .agg(
            functions.count("*").alias("rows"),
            functions.sum("hash").alias("hashes"),
            functions.sum("offset").alias("total"),
            functions.min("offset").alias("least"),
            functions.max("offset").alias("most"),
        )
        .collect()
    )
    result = {
        (row["partition"], row["inside"]): (
            row["rows"],
            int(row["hashes"]),
            row["total"],
            row["least"],
            row["most"],
        )
        for row in found
    }
    count = sum(one[0] for one in result.values())
    seconds = time.monotonic() - begun
    report(f"{count} rows summed in {seconds:.1f} s, {count / seconds / 1000:.0f} thousand/s")
    return result


def inside(all_sums: Sums) -> Sums:
    """Of the bucket's part alone."""
    return {key: found for key, found in all_sums.items() if key[1]}


def servers(history: LongHistory) -> dict[str, str]:
    return {"kafka.bootstrap.servers": history.broker.node.address}


def rows_of(history: LongHistory, partition: int, tier: str, level: str) -> Iterator[Any]:
    """What tasks would give of a partition, without Spark."""
    given = {
        **history.broker.options,
        "assign": json.dumps({NAME: [partition]}),
        "isolationLevel": level,
        "tier": tier,
        **({} if tier == "bucket" else servers(history)),
    }
    options = parse_options(given)
    with Planner(options) as planner:
        views = planner.view()
        plan = planner.plan(views, planner.batch_spans(views))
    reading = ReadOptions(
        options.bucket,
        BrokerOptions(history.broker.node.address),
        COLUMNS,
        read_committed=level == "read_committed",
    )
    for piece in plan.pieces:
        yield from read_piece(piece, reading)


def assert_same_rows(ours: Iterator[Any], theirs: Iterator[Any], end: int | None) -> int:
    """Every column of every row, in order, up to an offset; returns how many."""
    left = right = pa.RecordBatch.from_pylist([], SCHEMA)
    compared = 0
    while True:
        while left is not None and not left.num_rows:
            left = next(ours, None)
        while right is not None and not right.num_rows:
            right = next(theirs, None)
        if right is not None and end is not None:
            inside = int(np.searchsorted(right.column("offset").to_numpy(), end))
            right = right.slice(0, inside) if inside else None
        if left is None or right is None:
            break
        rows = min(left.num_rows, right.num_rows)
        for name in COLUMNS:
            mine, other = left.column(name).slice(0, rows), right.column(name).slice(0, rows)
            if not mine.equals(other):
                # The first that differs, in words.
                for row in range(rows):
                    assert left.slice(row, 1).to_pylist() == right.slice(row, 1).to_pylist()
        compared += rows
        left, right = left.slice(rows), right.slice(rows)
    assert left is None, f"more than the consumer got: {left.slice(0, 1).to_pylist()}"
    assert right is None, f"less than the consumer got: {right.slice(0, 1).to_pylist()}"
    return compared


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tier", ["auto", "bucket", "broker"])
def test_every_row_of_every_piece_is_the_consumers(
    history: LongHistory, told: Mapping[str, Told], tier: str, level: str
) -> None:
    """All of them, not a sample: as tasks read them, in the order of their offsets."""
    begun = time.monotonic()
    compared = 0
    for partition in range(PARTITIONS):
        end = told[level].ends[TopicPartition(NAME, partition)] if tier == "bucket" else None
        ours = rows_of(history, partition, tier, level)
        compared += assert_same_rows(ours, dumped(told[level].dump, partition), end)
    wanted = told[level].sums if tier != "bucket" else inside(told[level].sums)
    assert compared == sum(one[0] for one in wanted.values())
    seconds = time.monotonic() - begun
    report(f"{compared} rows of tier={tier}, {level}, compared one by one in {seconds:.1f} s")


def test_the_history_has_everything(history: LongHistory, told: Mapping[str, Told]) -> None:
    """Else the comparisons below say little."""
    everything, committed = (sum(one[0] for one in told[level].sums.values()) for level in LEVELS)
    assert everything >= RECORDS
    assert committed < everything * 95 // 100
    for partition in range(PARTITIONS):
        log = history.log(partition)
        assert len(log.leader_epochs) > 2
        assert len(log.segments) > 20
        assert not log.damaged
        stable = told["read_committed"].ends[TopicPartition(NAME, partition)]
        assert stable < log.end_offset, "nothing is aborted behind the bucket's end"
        assert (partition, False) in told["read_uncommitted"].sums
    used = {segment.metadata.id for segment in history.log(1).segments}
    assert used & set(history.replicated), "of copies that overlap one reaches furthest"
    assert len(set(history.broker.bucket.glob(f"{NAME}-*"))) == 2, "an earlier topic is there"


@pytest.mark.parametrize("level", LEVELS)
def test_the_connector_gives_what_the_consumer_got(
    spark: Any, history: LongHistory, told: Mapping[str, Told], level: str
) -> None:
    """Two oracles that know nothing of each other."""
    theirs = kafka(spark, history.broker, subscribe=NAME, **{"kafka.isolation.level": level})
    assert sums(theirs, told[level].ends) == told[level].sums


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tier", ["auto", "broker"])
def test_the_whole_topic_is_what_the_consumer_got(
    spark: Any,
    history: LongHistory,
    told: Mapping[str, Told],
    workers: "WorkerMemory",
    tier: str,
    level: str,
) -> None:
    options = {"subscribe": NAME, "kafka.isolation.level": level, "tier": tier}
    ours = varve(spark, history.broker, **options, **servers(history))
    assert sums(ours, told[level].ends) == told[level].sums
    workers.check()


@pytest.mark.parametrize("level", LEVELS)
def test_the_bucket_alone_has_what_lies_below_its_stable_end(
    spark: Any,
    history: LongHistory,
    told: Mapping[str, Told],
    workers: "WorkerMemory",
    level: str,
) -> None:
    """Without a broker; and with one whose log goes on, no tiered offset is fetched."""
    options = {"subscribe": NAME, "kafka.isolation.level": level}
    ours = varve(spark, history.broker, **options)
    assert sums(ours, told[level].ends) == inside(told[level].sums)
    ends = format_offsets(told[level].ends)
    before = fetches(history.broker, NAME)
    if level == "read_uncommitted":
        return
    both = varve(
        spark, history.broker, **options, **servers(history), tier="auto", endingOffsets=ends
    )
    assert sums(both, told[level].ends) == inside(told[level].sums)
    assert fetches(history.broker, NAME) == before
    workers.check()


@pytest.mark.parametrize("level", LEVELS)
def test_windows_of_offsets_are_the_same_row_by_row(
    spark: Any, history: LongHistory, told: Mapping[str, Told], level: str
) -> None:
    """Around borders of segments and of tiers, where the log begins and where it ends."""
    compared = 0
    for partition in range(PARTITIONS):
        log = history.log(partition)
        begin = log.log_start_offset
        borders = [segment.start_offset for segment in log.segments]
        end = told[level].sums[partition, False][4] + 1
        middles = {begin, borders[1], borders[len(borders) // 2], log.end_offset, end}
        for middle in sorted(middles):
            start = max(begin, middle - WINDOW // 2)
            stop = min(start + WINDOW, end)
            given = {
                "assign": f'{{"{NAME}":[{partition}]}}',
                "startingOffsets": f'{{"{NAME}":{{"{partition}":{start}}}}}',
                "endingOffsets": f'{{"{NAME}":{{"{partition}":{stop}}}}}',
                "kafka.isolation.level": level,
            }
            consumed = spark.read.parquet(str(told[level].dump)).where(
                f"partition = {partition} AND offset >= {start} AND offset < {stop}"
            )
            expected = sorted_rows(consumed)
            ours = varve(spark, history.broker, **given, **servers(history), tier="auto")
            assert sorted_rows(ours.select(*COLUMNS)) == expected
            assert sorted_rows(kafka(spark, history.broker, **given)) == expected
            compared += len(expected)
    assert compared > PARTITIONS * WINDOW


@pytest.mark.parametrize("level", LEVELS)
def test_a_copy_that_is_removed_while_it_is_read_is_read_elsewhere(
    spark: Any, history: LongHistory, told: Mapping[str, Told], level: str
) -> None:
    """The plan is made with the first action; the other replica's copies go before the second.

    What they had comes from the leader's own segments, which the plan had passed over.
    """
    (folder,) = {path.parent for path in history.copies()}
    aside = history.broker.directory / "copies"
    ours = varve(spark, history.broker, subscribe=NAME, **{"kafka.isolation.level": level})
    assert ours.where("partition = 1").limit(1).count() == 1
    aside.mkdir()
    for path in history.copies():
        path.rename(aside / path.name)
    try:
        assert sums(ours, told[level].ends) == inside(told[level].sums)
    finally:
        for path in aside.iterdir():
            path.rename(folder / path.name)
        aside.rmdir()


class WorkerMemory(threading.Thread):
    """The most memory that any Python worker of this process's Spark has had."""

    def __init__(self) -> None:
        super().__init__(name="worker-memory", daemon=True)
        self.peak = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.3):
            for pid in tree(os.getpid()):
                self._look(pid)

    def _look(self, pid: int) -> None:
        folder = Path(f"/proc/{pid}")
        try:
            if b"pyspark.daemon" not in (folder / "cmdline").read_bytes():
                return
            for line in (folder / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.peak = max(self.peak, int(line.split()[1]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            return

    def check(self) -> None:
        report(f"a Python worker had {self.peak / 2**20:.0f} MiB at most")
        assert 0 < self.peak < WORKER_BYTES_MAX

    def stop(self) -> None:
        self._over.set()
        self.join()
