"""What a lake job costs beside Spark's own way: `python -m bench.pipeline_lake [--gib 1]`.

The topic of `bench.spark_source`, on one core, becomes a folder of zstd Parquet files:

    lake         a job of ours: tasks decode, convert and write in the Python worker, raw values
    varve        `format("varve")` and Spark's Parquet writer
    connector    `format("kafka")` through the broker, and Spark's Parquet writer

Wall clock, and what all processes use, apart as there. Every way first writes a table that is left
out; each round then runs every way once, in turns. Wall clock of a busy machine says little:
`--instructions` tells what was executed.
"""

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench.perf_counters import CPU_SECONDS, Event
from bench.spark_cost import Cost, SessionCost, mebibytes
from bench.spark_source import (
    OTHER_CORE,
    TOPIC,
    Way,
    bucket_frame,
    connector_frame,
    end_of_bucket,
    fill,
    for_each_size,
    median,
    new_session,
    ratio,
    run_in_turns,
    verdict,
)
from bench.tiered_node import TieredVarveNode

WALL_GOALS: Final = {1024: 1.8, 100: 3.0}
"""Times as fast as connector and Spark's writer: at least."""

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def lake_job(session: Any, bucket: Path, table: Path) -> Callable[[], int]:
    """Keep a new Parquet table, from the bucket alone."""
    from pipeline.lake.app.assembly import run_job
    from pipeline.lake.job.job import Batch
    from pipeline.lake.settings.config import parse_job

    config = parse_job(
        f"source: {{location: 'file://{bucket}', topic: {TOPIC}}}\n"
        f"sink: {{type: parquet, table: '{table}'}}\n"
    )

    def run() -> int:
        shutil.rmtree(table, ignore_errors=True)
        rows: list[int] = []

        def note_batch(batch: Batch) -> None:
            rows.append(batch.rows)

        run_job(config, session, on_batch=note_batch)
        return sum(rows)

    return run


def by_writer(frame: Any, table: Path, expected: int) -> Callable[[], int]:
    """Write what a source gives by Spark's writer."""

    def run() -> int:
        frame.select(*COLUMNS).write.mode("overwrite").option("compression", "zstd").parquet(
            str(table)
        )
        return expected

    return run


def measure(
    record_bytes: int, size: int, event: Event, given: argparse.Namespace, directory: Path
) -> None:
    """All ways over one topic."""
    node = TieredVarveNode(directory / f"node-{record_bytes}", cores=frozenset({OTHER_CORE}))
    node.start()
    with ExitStack() as stack:
        stack.callback(node.stop)
        records, written = fill(node, record_bytes, size)
        session = new_session(directory)
        stack.callback(session.stop)
        meter = SessionCost(event, [node.pid])
        stack.callback(meter.close)
        bucket = node.remote_directory
        rows = end_of_bucket(session, bucket)
        share = written * rows // records
        sources = {
            "varve": bucket_frame(session, f"file://{bucket}", rows),
            "connector": connector_frame(session, node.port, rows),
        }
        # A job has no end but the log's: the left-out round warms it up, as it does the others.
        ways = {"lake": Way(lake_job(session, bucket, directory / "lake"), int, node.pid)}
        for name, frame in sources.items():
            ways[name] = Way(by_writer(frame, directory / name, rows), int, node.pid)
        if given.ways:
            ways = {name: ways[name] for name in given.ways.split(",")}
        runs = run_in_turns(ways, meter, rows, given)
        for name in ways:
            there = session.read.parquet(str(directory / name)).count()
            assert there == rows, (name, there, rows)
    print(f"\n{record_bytes} bytes a record, {rows:,} records, {share / 1e9:.2f} GB")
    report(record_bytes, share, runs, event)


def report(record_bytes: int, size: int, runs: dict[str, list[Cost]], event: Event) -> None:
    """Medians, and the ratios that count."""
    unit, gb = event.unit, size / 1e9
    print(f"\n| way | MB/s | JVM {unit}/GB | Python | broker | all | largest worker, MiB |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for way, costs in runs.items():
        wall = size / 1e6 / median(costs, lambda cost: cost.seconds)
        jvm = median(costs, lambda cost: cost.jvm) / gb
        python = median(costs, lambda cost: cost.python) / gb
        other = median(costs, lambda cost: cost.other) / gb
        print(
            f"| {way} | {wall:.0f} | {jvm:.2f} | {python:.2f} | {other:.2f} "
            f"| {jvm + python + other:.2f} "
            f"| {mebibytes(max(cost.worker_bytes for cost in costs))} |"
        )
    print()
    for way in ("varve", "connector"):
        if "lake" not in runs or way not in runs:
            continue
        faster, wall_text = ratio(runs[way], runs["lake"], lambda cost: cost.seconds)
        _, cost_text = ratio(runs[way], runs["lake"], lambda cost: cost.everything)
        goal = WALL_GOALS.get(record_bytes) if way == "connector" else None
        if goal is not None and event is CPU_SECONDS:
            wall_text += verdict(reached=faster >= goal, goal=f">= {goal}")
        print(f"lake against {way} and Spark's writer: wall {wall_text}; {unit} {cost_text}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each record size."""
    return for_each_size(
        measure, arguments, program="bench.pipeline_lake", description=__doc__, rounds=3
    )


if __name__ == "__main__":
    sys.exit(main())
