"""What reading a tiered topic in Spark costs: `python -m bench.spark_source [--gib 1] [--pairs 5]`.

The same topic, 16 KiB batches, all but the active segment in the bucket and nothing of it on the
broker's disk, is counted by one Spark session with one task at a time:

    files        `format("varve")`, the bucket as a directory, no broker
    numpy        the same with the kernel that needs no compiler
    s3           `format("varve")`, the bucket behind versitygw on loopback, no broker
    connector    Spark's own `format("kafka")` through the broker, which reads its tier
    get loop     one aiobotocore loop of 8 MiB ranged GETs over the same objects, no Spark

Spark with all its processes is bound to one core, broker and S3 server to the other. CPU seconds
are counted apart (`bench.spark_cost`): the JVM, Python (driver, daemon, workers), the broker or
store. A JVM compiles for as long as it meets something new, Spark's planning above all: every way
first does `--warm` queries of a few rows, and a whole round that is left out. Then each round runs
every way once, in turns; the median counts, the spread is shown.

Of the get loop nothing but its GETs is counted: its client is open before.

`--instructions` counts what is executed instead, which a busy machine does not change; for the JVM
it holds what its compiler does, too.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import wire
from bench.generator import LoadResult, ProduceLoad, produce, run_apart
from bench.perf_counters import CPU_SECONDS, INSTRUCTIONS, Event
from bench.process import pin
from bench.s3_reading import new_store
from bench.s3_server import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, is_built, running_s3_server
from bench.spark_connector import connector_jars
from bench.spark_cost import Cost, SessionCost, mebibytes
from bench.tier_rows import TIERED, wait_until_tiered
from bench.tiered_node import TieredVarveNode

SPARK_CORE, OTHER_CORE = 0, 1
BATCH_BYTES = 16 << 10
SEGMENT_BYTES = 128 << 20
GET_BYTES = 8 << 20
STORE = "versitygw"
TOPIC = "history"

CONNECTOR_GOALS: Final = {1024: 0.5, 100: 0.45}
"""CPU seconds of all processes a GB, of the connector's: at most."""

GET_LOOP_GOALS: Final = {1024: 0.7, 100: 0.4}
"""MB for each CPU second of the reader, of the loop's: at least."""

WARM_ROWS: Final = 2000
WARM_QUERIES: Final = 20


def fill(node: TieredVarveNode, record_bytes: int, size: int) -> tuple[int, int]:
    """Write `size` bytes of equal batches and wait until they are tiered: (records, bytes)."""
    records = max(1, BATCH_BYTES // record_bytes)
    batch = wire.record_batch([os.urandom(record_bytes)] * records)
    with node.connect() as connection:
        settings = {**TIERED, "segment.bytes": str(SEGMENT_BYTES)}
        wire.create_topic(connection, TOPIC, 1, settings)
    batches = size // len(batch)
    load = ProduceLoad(node.port, node.pid, TOPIC, (0,), batch, 5, 3600.0, batches * len(batch))
    filled: LoadResult = run_apart(None, produce, load)
    assert filled.requests == batches, filled
    wait_until_tiered(node, TOPIC, (0,))
    return records * batches, batches * len(batch)


def new_session(folder: Path) -> Any:
    """One task at a time, everything on one core; the connector beside our source."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.sched_setaffinity(0, {SPARK_CORE})
    session = (
        SparkSession.builder.master("local[1]")
        .appName("varve-bench")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def bucket_frame(
    session: Any,
    location: str,
    end_offset: int,
    options: Mapping[str, str] | None = None,
    *,
    source: str = "varve",
) -> Any:
    """The topic's rows in the bucket."""
    return (
        session.read.format(source)
        .options(**(options or {}))
        .option("tier", "bucket")
        .option("subscribe", TOPIC)
        .option("endingOffsets", _ending_at(end_offset))
        .option("isolationLevel", "read_committed")
        .load(location)
    )


def connector_frame(session: Any, port: int, end_offset: int) -> Any:
    """The same rows through the broker, by Spark's own connector."""
    return (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", f"127.0.0.1:{port}")
        .option("subscribe", TOPIC)
        .option("kafka.isolation.level", "read_committed")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", _ending_at(end_offset))
        .load()
    )


def _ending_at(offset: int) -> str:
    return f'{{"{TOPIC}":{{"0":{offset}}}}}'


def counted(frame: Any) -> Callable[[], int]:
    """Count a frame's rows, each time anew."""
    return lambda: int(frame.count())


class GetLoop:
    """One loop of the library's GETs, one after the other, over all logs of a bucket."""

    def __init__(self, url: str, bucket: str) -> None:
        self._runner = asyncio.Runner()
        self._store = new_store(url, bucket=bucket)
        self._bucket = bucket
        self._objects = self._runner.run(self._logs())

    async def _logs(self) -> list[tuple[str, int]]:
        found = (await self._store.list("")).objects
        return [(one.key, one.size) for one in found if one.key.endswith(".log")]

    def run(self) -> int:
        """Bytes that came."""
        return self._runner.run(self._read())

    async def _read(self) -> int:
        client = self._store._calls._client
        total = 0
        for key, size in self._objects:
            for at in range(0, size, GET_BYTES):
                end = min(at + GET_BYTES, size) - 1
                wanted = f"bytes={at}-{end}"
                answer = await client.get_object(Bucket=self._bucket, Key=key, Range=wanted)
                async with answer["Body"] as body:
                    total += len(await body.read())
        return total

    def close(self) -> None:
        """Its connections."""
        self._runner.run(self._store.close())
        self._runner.close()


@dataclass(frozen=True, slots=True)
class Way:
    """One way through the topic.

    Attributes:
        run: All of it; the rows.
        warm: A few rows.
        other: The process that serves it; 0: none.
        is_spark: The JVM does it.
    """

    run: Callable[[], int]
    warm: Callable[[], object]
    other: int = 0
    is_spark: bool = True


def run_in_turns(
    ways: Mapping[str, Way], meter: SessionCost, expected: int, given: argparse.Namespace
) -> dict[str, list[Cost]]:
    """What each way has cost in each round that counts; the rows are compared."""
    for _ in range(given.warm):
        for way in ways.values():
            way.warm()
    runs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(given.pairs + 1):
        for name, way in ways.items():
            with meter.measured(way.other, is_spark=way.is_spark) as found:
                rows = way.run()
            assert rows == expected, (name, rows, expected)
            if number:
                runs[name] += found
    return runs


def median(costs: Sequence[Cost], value: Callable[[Cost], float]) -> float:
    """Of a way's rounds."""
    return statistics.median(map(value, costs))


def ratio(
    above: Sequence[Cost], below: Sequence[Cost], value: Callable[[Cost], float]
) -> tuple[float, str]:
    """Median of the rounds' ratios, and it with the spread as text."""
    pairs = [value(a) / value(b) for a, b in zip(above, below, strict=True)]
    middle = statistics.median(pairs)
    return middle, f"{middle:.2f} ({min(pairs):.2f}-{max(pairs):.2f})"


def verdict(*, reached: bool, goal: str) -> str:
    """Behind a ratio that has a goal."""
    return f", goal {goal} {'reached' if reached else '**missed**'}"


def report(record_bytes: int, size: int, runs: dict[str, list[Cost]], event: Event) -> None:
    """A table of medians, and the ratios that count."""
    unit, gb = event.unit, size / 1e9
    print(
        f"\n| way | JVM {unit}/GB | Python | broker, store | all | MB/{unit} of reader | spread "
        "| MB/s | largest worker, MiB |"
    )
    print("|---|--:|--:|--:|--:|--:|---|--:|--:|")
    for way, costs in runs.items():
        rates = [size / 1e6 / cost.reading for cost in costs]
        jvm = median(costs, lambda cost: cost.jvm) / gb
        python = median(costs, lambda cost: cost.python) / gb
        other = median(costs, lambda cost: cost.other) / gb
        wall = size / 1e6 / median(costs, lambda cost: cost.seconds)
        print(
            f"| {way} | {jvm:.2f} | {python:.2f} | {other:.2f} | {jvm + python + other:.2f} "
            f"| {statistics.median(rates):.0f} | {min(rates):.0f}-{max(rates):.0f} | {wall:.0f} "
            f"| {mebibytes(max(cost.worker_bytes for cost in costs))} |"
        )
    print()
    for way in ("files", "numpy", "s3"):
        has_goals = way != "numpy" and event is CPU_SECONDS
        if way in runs and "connector" in runs:
            value, text = ratio(runs[way], runs["connector"], lambda cost: cost.everything)
            goal = CONNECTOR_GOALS.get(record_bytes) if has_goals else None
            if goal is not None:
                text += verdict(reached=value <= goal, goal=f"<= {goal}")
            print(f"{way} / connector, {unit} of all processes: {text}")
        if way in runs and "get loop" in runs:
            value, text = ratio(runs["get loop"], runs[way], lambda cost: cost.reading)
            goal = GET_LOOP_GOALS.get(record_bytes) if has_goals else None
            if goal is not None:
                text += verdict(reached=value >= goal, goal=f">= {goal}")
            print(f"{way} / get loop, MB for each {unit} of the reader: {text}")


def measure(
    record_bytes: int, size: int, event: Event, given: argparse.Namespace, directory: Path
) -> None:
    """All ways over one topic."""
    node = TieredVarveNode(directory / f"node-{record_bytes}", cores=frozenset({OTHER_CORE}))
    node.start()
    with ExitStack() as stack:
        stack.callback(node.stop)
        records, written = fill(node, record_bytes, size)
        # What is in the bucket is counted alike everywhere; the active segment is on the broker.
        bucket = node.remote_directory
        others = [node.pid]
        server = None
        if is_built(STORE):
            server = stack.enter_context(running_s3_server(STORE, bucket.parent))
            pin(server.pid, {OTHER_CORE})
            others.append(server.pid)
        else:
            print(f"no {STORE} in .build/s3/bin: the rows s3 and get loop are left out")
        session = new_session(directory)
        stack.callback(session.stop)
        meter = SessionCost(event, others)
        stack.callback(meter.close)
        in_bucket = end_of_bucket(session, bucket)
        share = written * in_bucket // records

        def way(frame: Callable[[int], Any], other: int = 0) -> Way:
            few = frame(min(WARM_ROWS, in_bucket))
            return Way(counted(frame(in_bucket)), counted(few), other)

        from bench.numpy_source import NumpySource

        session.dataSource.register(NumpySource)
        location = f"file://{bucket}"
        ways = {
            "files": way(lambda end: bucket_frame(session, location, end)),
            "numpy": way(
                lambda end: bucket_frame(session, location, end, source=NumpySource.name())
            ),
        }
        if server is not None:
            url, store_pid = server.url, server.pid
            options = {
                "store.endpoint": url,
                "store.region": REGION,
                "store.pathStyle": "true",
                "store.accessKeyId": ACCESS_KEY_ID,
                "store.secretAccessKey": SECRET_ACCESS_KEY,
            }
            ways["s3"] = way(
                lambda end: bucket_frame(session, f"s3://{bucket.name}", end, options), store_pid
            )
            gets = GetLoop(url, bucket.name)
            stack.callback(gets.close)
            ways["get loop"] = Way(
                lambda: in_bucket if gets.run() == share else 0, int, store_pid, is_spark=False
            )
        ways["connector"] = way(lambda end: connector_frame(session, node.port, end), node.pid)
        if given.ways:
            ways = {name: ways[name] for name in given.ways.split(",")}
        runs = run_in_turns(ways, meter, in_bucket, given)
    print(f"\n{record_bytes} bytes a record, {in_bucket:,} records, {share / 1e9:.2f} GB")
    report(record_bytes, share, runs, event)


def end_of_bucket(session: Any, bucket: Path) -> int:
    """Exclusive end of what is in the bucket."""
    frame = session.read.format("varve").option("tier", "bucket").option("subscribe", TOPIC)
    return int(frame.load(f"file://{bucket}").count())


Measure = Callable[[int, int, Event, argparse.Namespace, Path], None]
"""Of a record size, bytes to write, what is counted, the command line, and a directory."""


def for_each_size(
    measure: Measure,
    arguments: Sequence[str] | None,
    *,
    program: str,
    description: str | None,
    rounds: int,
) -> int:
    """Measure as the command line says; `rounds` is its default."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--gib", type=float, default=1.0, help="written per record size")
    parser.add_argument("--pairs", type=int, default=rounds, help="rounds that count")
    parser.add_argument("--warm", type=int, default=WARM_QUERIES, help="small queries before")
    parser.add_argument("--sizes", default="1024,100", help="bytes of a record")
    parser.add_argument("--ways", default="", help="only these, by name, with commas")
    parser.add_argument("--instructions", action="store_true", help="count them, not seconds")
    parser.add_argument("--directory", type=Path, help="where to write; default: a temporary one")
    given = parser.parse_args(arguments)
    event = INSTRUCTIONS if given.instructions else CPU_SECONDS
    size = int(given.gib * (1 << 30))
    for record_bytes in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="varve-spark-", dir=given.directory) as directory:
            measure(record_bytes, size, event, given, Path(directory))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each record size."""
    return for_each_size(
        measure, arguments, program="bench.spark_source", description=__doc__, rounds=5
    )


if __name__ == "__main__":
    sys.exit(main())
