"""What reading a tiered topic in Spark costs: `python -m bench.spark_source [--gib 1] [--pairs 3]`.

The same topic, 16 KiB batches, all but the active segment in the bucket and nothing of it on the
broker's disk, is counted by one Spark session with one task at a time:

    files        `format("varve")`, the bucket as a directory, no broker
    s3           `format("varve")`, the bucket behind versitygw on loopback, no broker
    connector    Spark's own `format("kafka")` through the broker, which reads its tier
    get loop     one aiobotocore loop of 8 MiB ranged GETs over the same objects, no Spark

Spark with all its processes is bound to one core, broker and S3 server to the other. CPU seconds
are counted apart: the JVM, Python (driver, daemon, workers), the broker or store. Each round runs
every way once, in turns; the median counts, the spread is shown. The first round warms the JVM up
and is left out.

`--instructions` counts what is executed instead, which a busy machine does not change; for the JVM
it holds what its compiler does, too.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import wire
from bench.generator import LoadResult, ProduceLoad, produce, run_apart
from bench.instructions import billions_of
from bench.process import cpu_seconds_of, tree
from bench.s3_reading import new_store
from bench.s3_server import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, is_built, running_s3_server
from bench.spark_connector import connector_jars
from bench.tier_rows import TIERED, wait_until_tiered
from bench.tiered_node import TieredVarveNode

SPARK_CORE, OTHER_CORE = 0, 1
BATCH_BYTES = 16 << 10
SEGMENT_BYTES = 128 << 20
GET_BYTES = 8 << 20
STORE = "versitygw"
TOPIC = "history"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run: CPU seconds, or billions of instructions."""

    jvm: float
    python: float
    other: float
    seconds: float

    @property
    def reading(self) -> float:
        """What Spark, or the loop, has used by itself."""
        return self.jvm + self.python


def cost_by_kind(count: Callable[[int], float], other: int) -> Cost:
    """Used so far by this process and all it has started, but `other` apart."""
    jvm = python = 0.0
    apart = set(tree(other)) if other else set()
    for member in tree(os.getpid()):
        if member in apart:
            continue
        try:
            name = Path(f"/proc/{member}/comm").read_text().strip()
            used = count(member)
        except OSError:
            continue
        if name == "java":
            jvm += used
        else:
            python += used
    return Cost(jvm, python, sum(map(count, apart)), time.perf_counter())


@contextmanager
def measured(count: Callable[[int], float], other: int) -> Iterator[list[Cost]]:
    """Appends what the body has cost."""
    found: list[Cost] = []
    before = cost_by_kind(count, other)
    yield found
    after = cost_by_kind(count, other)
    found.append(
        Cost(
            after.jvm - before.jvm,
            after.python - before.python,
            after.other - before.other,
            after.seconds - before.seconds,
        )
    )


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
    session: Any, location: str, end_offset: int, options: Mapping[str, str] | None = None
) -> Any:
    """The topic's rows in the bucket."""
    return (
        session.read.format("varve")
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


async def get_loop(url: str, bucket: str) -> int:
    """Bytes of all logs, read by the library one range after the other."""
    store = new_store(url, bucket=bucket)
    total = 0
    try:
        found = [one for one in (await store.list("")).objects if one.key.endswith(".log")]
        client = store._calls._client
        for one in found:
            for at in range(0, one.size, GET_BYTES):
                end = min(at + GET_BYTES, one.size) - 1
                answer = await client.get_object(
                    Bucket=bucket, Key=one.key, Range=f"bytes={at}-{end}"
                )
                async with answer["Body"] as body:
                    total += len(await body.read())
    finally:
        await store.close()
    return total


def report(size: int, runs: dict[str, list[Cost]], unit: str) -> None:
    """A table of medians."""
    gb = size / 1e9
    print(
        f"\n| way | JVM {unit}/GB | Python | broker, store | all | MB/{unit} of reader | spread |"
    )
    print("|---|--:|--:|--:|--:|--:|---|")
    rates = {}
    for way, costs in runs.items():
        rate = [size / 1e6 / cost.reading for cost in costs]
        rates[way] = statistics.median(rate)
        parts = [
            statistics.median(getattr(cost, name) for cost in costs) / gb
            for name in ("jvm", "python", "other")
        ]
        print(
            f"| {way} | {parts[0]:.2f} | {parts[1]:.2f} | {parts[2]:.2f} | {sum(parts):.2f} "
            f"| {rates[way]:.0f} | {min(rate):.0f}-{max(rate):.0f} |"
        )

    def ratio(of: str, to: str, value: Callable[[Cost], float]) -> str:
        pairs = [value(a) / value(b) for a, b in zip(runs[of], runs[to], strict=True)]
        return f"{statistics.median(pairs):.2f} ({min(pairs):.2f}-{max(pairs):.2f})"

    def everything(cost: Cost) -> float:
        return cost.reading + cost.other

    for way in ("files", "s3"):
        if way in runs and "connector" in runs:
            print(f"{way} / connector, all processes: {ratio(way, 'connector', everything)}")
        if way in runs and "get loop" in runs:
            read = ratio("get loop", way, lambda cost: cost.reading)
            print(f"{way} / get loop, MB per {unit} of the reader: {read}")


def measure(
    record_bytes: int,
    size: int,
    rounds: int,
    count: Callable[[int], float],
    unit: str,
    directory: Path,
) -> None:
    """All ways over one topic."""
    node = TieredVarveNode(directory / f"node-{record_bytes}", cores=frozenset({OTHER_CORE}))
    node.start()
    with ExitStack() as stack:
        stack.callback(node.stop)
        records, written = fill(node, record_bytes, size)
        # What is in the bucket is counted alike everywhere; the active segment is on the broker.
        bucket = node.remote_directory
        session = new_session(directory)
        in_bucket = end_of_bucket(session, bucket)
        share = written * in_bucket // records
        ways: dict[str, tuple[int, Callable[[], int]]] = {
            "files": (0, counted(bucket_frame(session, f"file://{bucket}", in_bucket))),
        }
        if is_built(STORE):
            server = stack.enter_context(running_s3_server(STORE, bucket.parent))
            os.sched_setaffinity(server.pid, {OTHER_CORE})
            options = {
                "store.endpoint": server.url,
                "store.region": REGION,
                "store.pathStyle": "true",
                "store.accessKeyId": ACCESS_KEY_ID,
                "store.secretAccessKey": SECRET_ACCESS_KEY,
            }
            location = f"s3://{bucket.name}"
            ways["s3"] = (server.pid, counted(bucket_frame(session, location, in_bucket, options)))
            ways["get loop"] = (
                server.pid,
                lambda: in_bucket if asyncio.run(get_loop(server.url, bucket.name)) else 0,
            )
        ways["connector"] = (node.pid, counted(connector_frame(session, node.port, in_bucket)))
        runs: dict[str, list[Cost]] = {way: [] for way in ways}
        for number in range(rounds + 1):
            for way, (other, run) in ways.items():
                with measured(count, other) as found:
                    rows = run()
                assert rows == in_bucket, (way, rows, in_bucket)
                if number:
                    runs[way] += found
        session.stop()
        print(f"\n{record_bytes} bytes a record, {in_bucket:,} records, {share / 1e9:.2f} GB")
        report(share, runs, unit)


def end_of_bucket(session: Any, bucket: Path) -> int:
    """Exclusive end of what is in the bucket."""
    frame = session.read.format("varve").option("tier", "bucket").option("subscribe", TOPIC)
    return int(frame.load(f"file://{bucket}").count())


Measure = Callable[[int, int, int, Callable[[int], float], str, Path], None]
"""Of a record size, bytes to write, rounds, what counts costs, its unit, and a directory."""


def for_each_size(
    measure: Measure,
    arguments: Sequence[str] | None,
    *,
    program: str,
    description: str | None,
    gib: float,
    rounds: int,
) -> int:
    """Measure as the command line says; `gib` and `rounds` are its defaults."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--gib", type=float, default=gib, help="written per record size")
    parser.add_argument("--pairs", type=int, default=rounds, help="rounds that count")
    parser.add_argument("--sizes", default="1024,100", help="bytes of a record")
    parser.add_argument("--instructions", action="store_true", help="count them, not seconds")
    parser.add_argument("--directory", type=Path, help="where to write; default: a temporary one")
    given = parser.parse_args(arguments)
    count, unit = cpu_seconds_of, "CPU s"
    if given.instructions:
        count, unit = billions_of, "1e9 instructions"
    size = int(given.gib * (1 << 30))
    for record_bytes in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="varve-spark-", dir=given.directory) as directory:
            measure(record_bytes, size, given.pairs, count, unit, Path(directory))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each record size."""
    return for_each_size(
        measure,
        arguments,
        program="bench.spark_source",
        description=__doc__,
        gib=1.0,
        rounds=3,
    )


if __name__ == "__main__":
    sys.exit(main())
