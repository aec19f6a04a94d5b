"""What a lake job costs beside Spark's own way: `python -m bench.pipeline_lake [--gib 0.5]`.

The topic of `bench.spark_source`, on one core, becomes a folder of zstd Parquet files:

    lake         a job of ours: tasks decode, convert and write in the Python worker, raw values
    varve        `format("varve")` and Spark's Parquet writer
    connector    `format("kafka")` through the broker, and Spark's Parquet writer

Wall clock and what all processes use (the broker apart) are told; each round runs every way once.
"""

import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.spark_source import (
    OTHER_CORE,
    TOPIC,
    Cost,
    bucket_frame,
    connector_frame,
    end_of_bucket,
    fill,
    for_each_size,
    measured,
    new_session,
)
from bench.tiered_node import TieredVarveNode

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def lake_job(session: Any, bucket: Path, table: Path) -> Callable[[], int]:
    """Keep a new Parquet table, from the bucket alone."""
    from pipeline.lake.assembly import run_job
    from pipeline.lake.config import parse_job
    from pipeline.lake.job import Batch

    config = parse_job(
        f"source: {{location: 'file://{bucket}', topic: {TOPIC}}}\n"
        f"sink: {{type: parquet, table: '{table}'}}\n"
    )

    def run() -> int:
        shutil.rmtree(table, ignore_errors=True)
        rows: list[int] = []

        def told(batch: Batch) -> None:
            rows.append(batch.rows)

        run_job(config, session, told=told)
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
    record_bytes: int,
    size: int,
    rounds: int,
    count: Callable[[int], float],
    unit: str,
    directory: Path,
) -> None:
    """All ways over one topic; the first round is left out."""
    node = TieredVarveNode(directory / f"node-{record_bytes}", cores=frozenset({OTHER_CORE}))
    node.start()
    with ExitStack() as stack:
        stack.callback(node.stop)
        records, written = fill(node, record_bytes, size)
        session = new_session(directory)
        bucket = node.remote_directory
        rows = end_of_bucket(session, bucket)
        share = written * rows // records
        ways = {"lake": lake_job(session, bucket, directory / "lake")}
        sources = {
            "varve": bucket_frame(session, f"file://{bucket}", rows),
            "connector": connector_frame(session, node.port, rows),
        }
        for way, frame in sources.items():
            ways[way] = by_writer(frame, directory / way, rows)
        runs: dict[str, list[Cost]] = {way: [] for way in ways}
        for number in range(rounds + 1):
            for way, run in ways.items():
                with measured(count, node.pid) as found:
                    made = run()
                assert made == rows, (way, made, rows)
                if number:
                    runs[way] += found
        for way in ways:
            there = session.read.parquet(str(directory / way)).count()
            assert there == rows, (way, there, rows)
        session.stop()
    print(f"\n{record_bytes} bytes a record, {rows:,} records, {share / 1e9:.2f} GB")
    report(share, runs, unit)


def report(size: int, runs: dict[str, list[Cost]], unit: str) -> None:
    """Medians, and the ratios that count."""
    print(f"\n| way | MB/s | JVM {unit}/GB | Python | broker |\n|---|--:|--:|--:|--:|")
    for way, costs in runs.items():
        wall = statistics.median(size / 1e6 / cost.seconds for cost in costs)
        parts = [
            statistics.median(getattr(cost, name) for cost in costs) / (size / 1e9)
            for name in ("jvm", "python", "other")
        ]
        print(f"| {way} | {wall:.0f} | {parts[0]:.2f} | {parts[1]:.2f} | {parts[2]:.2f} |")
    for way in ("varve", "connector"):
        faster = [b.seconds / a.seconds for a, b in zip(runs["lake"], runs[way], strict=True)]
        cheaper = [
            (b.reading + b.other) / (a.reading + a.other)
            for a, b in zip(runs["lake"], runs[way], strict=True)
        ]
        print(
            f"lake against {way} and Spark's writer: wall {statistics.median(faster):.2f} "
            f"({min(faster):.2f}-{max(faster):.2f}), {unit} {statistics.median(cheaper):.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each record size."""
    return for_each_size(
        measure,
        arguments,
        program="bench.pipeline_lake",
        description=__doc__,
        gib=0.5,
        rounds=2,
    )


if __name__ == "__main__":
    sys.exit(main())
