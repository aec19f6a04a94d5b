"""`make run-pipeline`: a pipeline on this machine, from producers to three tables and a plot.

    broker (a process) <- producers: some transactions are aborted, some records are no JSON
      | tier
    bucket (a directory), and the broker for the rest
      | Spark
    Delta, Iceberg and Parquet, batch by batch
      |
    reconciliation: counts, offset ranges and sums of each table against what a consumer gets
    plot: rows and commits over time

    python -m bench.pipeline_demo [--records N] [--directory DIR] [--local]

Everything is made below the directory, which is removed first. Exit status 1: a table is not what a
consumer sees.
"""

import argparse
import json
import logging
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import wire
from bench.node import VarveNode

TOPIC: Final = "orders"
PARTITIONS: Final = 3
KINDS: Final = ("delta", "iceberg", "parquet")

SETTINGS: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "500",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "rsm.config.chunk.size": "1048576",
}
TOPIC_SETTINGS: Final = {"remote.storage.enable": "true", "internal.segment.bytes": "262144"}

SPARK: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
}

BAD_EVERY: Final = 997
TIER_TIMEOUT_S: Final = 120.0


class Sums(NamedTuple):
    """What two sets of rows are compared by, of one partition."""

    rows: int
    first: int
    last: int
    offsets: int
    amounts: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]]) -> "Sums":
        """Of (offset, amount)."""
        offsets = [offset for offset, _ in pairs]
        return cls(
            len(pairs),
            min(offsets, default=-1),
            max(offsets, default=-1),
            sum(offsets),
            sum(amount for _, amount in pairs),
        )


class Committed(NamedTuple):
    """A batch of one table, for the plot."""

    seconds: float
    rows: int
    commit_ms: float


def value_of(number: int, chance: random.Random) -> bytes:
    """An order, or what is none."""
    if number % BAD_EVERY == BAD_EVERY // 2:
        return b"{an order that was cut off"
    order = {
        "id": number,
        "customer": f"customer-{chance.randrange(5000)}",
        "amount": chance.randrange(100, 100_000),
        "items": [f"item-{chance.randrange(300)}" for _ in range(chance.randrange(1, 4))],
    }
    return json.dumps(order).encode()


def fill(address: str, records: int) -> None:
    """Plain records, and transactions of which every third is aborted."""
    from confluent_kafka import Producer

    chance = random.Random(7)
    settings = {"bootstrap.servers": address, "linger.ms": 20, "compression.type": "lz4"}
    quiet = logging.getLogger("producer")
    plain = Producer({**settings, "log_level": 2}, logger=quiet)
    careful = Producer({**settings, "log_level": 2, "transactional.id": "orders-1"}, logger=quiet)
    careful.init_transactions(30)
    number = transactions = 0
    while number < records:
        producer = careful if (number // 2000) % 2 else plain
        if producer is careful:
            careful.begin_transaction()
        for _ in range(2000):
            producer.produce(
                TOPIC,
                key=f"order-{number % 20_000}".encode(),
                value=value_of(number, chance),
                partition=number % PARTITIONS,
            )
            number += 1
            if number % 500 == 0:
                producer.poll(0)
        if producer is careful:
            careful.flush(30)
            transactions += 1
            if transactions % 3 == 0:
                careful.abort_transaction(30)
            else:
                careful.commit_transaction(30)
    plain.flush(30)


def consumed(address: str) -> tuple[dict[int, Sums], dict[int, Sums]]:
    """What a consumer of committed records gets: orders, and what is none."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reconciliation",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 2,
        },
        logger=logging.getLogger("consumer"),
    )
    numbers = range(PARTITIONS)
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in numbers])
    good: dict[int, list[tuple[int, int]]] = {number: [] for number in numbers}
    bad: dict[int, list[tuple[int, int]]] = {number: [] for number in numbers}
    left = set(numbers)
    while left:
        for message in consumer.consume(1000, 10):
            number, offset = message.partition(), message.offset()
            if message.error():
                left.discard(number)
                continue
            assert number is not None
            assert offset is not None
            try:
                amount = json.loads(message.value() or b"")["amount"]
            except ValueError:
                bad[number].append((offset, 0))
            else:
                good[number].append((offset, amount))
    consumer.close()
    return (
        {number: Sums.of(pairs) for number, pairs in good.items()},
        {number: Sums.of(pairs) for number, pairs in bad.items()},
    )


def wait_until_tiered(node: VarveNode, bucket: Path) -> None:
    """Until all but the active segments are in the bucket."""
    deadline = time.monotonic() + TIER_TIMEOUT_S
    for number in range(PARTITIONS):
        folder = node.data_directory / f"{TOPIC}-{number}"
        while True:
            local = sorted(path.stem for path in folder.glob("*.log"))[:-1]
            found = bucket.glob(f"{TOPIC}-*/{number}/*.rsm-manifest")
            if set(local) <= {path.name.partition("-")[0] for path in found}:
                break
            if time.monotonic() > deadline:
                raise SystemExit(f"{TOPIC}-{number} is not in the bucket yet")
            time.sleep(0.1)


def job_text(kind: str, directory: Path, address: str, *, local: bool) -> str:
    """A job's settings, as its user writes them."""
    sink = f"type: {kind}\n  table: {directory}/tables/{kind}"
    if kind == "iceberg":
        sink = (
            "type: iceberg\n  table: lake.orders\n"
            f"  catalog: {{type: sql, uri: 'sqlite:///{directory}/catalog.db', "
            f"warehouse: 'file://{directory}/tables/iceberg'}}"
        )
    runner = "{type: local}" if local else "{type: spark}"
    return (
        f"name: demo-{kind}\n"
        f"source: {{location: 'file://{directory}/bucket', topic: {TOPIC}, "
        f"bootstrap: '{address}'}}\n"
        "value: {format: json}\n"
        f"sink:\n  {sink}\n  partition_by: [day(timestamp)]\n  target_file_bytes: 4 MiB\n"
        "batch: {max_bytes: 1 MiB, every: once}\n"
        f"runner: {runner}\n"
    )


def rows_in(kind: str, directory: Path, *, quarantine: bool = False) -> dict[int, Sums]:
    """What a released reader finds in a table."""
    name = "_quarantine" if quarantine else ""
    columns = ["partition", "offset"] if quarantine else ["partition", "offset", "amount"]
    table = _read(kind, directory, name, columns).to_pydict()
    amounts = table.get("amount", [0] * len(table["offset"]))
    pairs: dict[int, list[tuple[int, int]]] = {number: [] for number in range(PARTITIONS)}
    for partition, offset, amount in zip(table["partition"], table["offset"], amounts, strict=True):
        pairs[partition].append((offset, amount))
    return {number: Sums.of(found) for number, found in pairs.items()}


def _read(kind: str, directory: Path, name: str, columns: list[str]) -> Any:
    if kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(f"{directory}/tables/delta{name}").to_pyarrow_table(columns=columns)
    if kind == "iceberg":
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog(
            "varve",
            type="sql",
            uri=f"sqlite:///{directory}/catalog.db",
            warehouse=f"file://{directory}/tables/iceberg",
        )
        table = catalog.load_table(f"lake.orders{name}")
        return table.scan(selected_fields=tuple(columns)).to_arrow()
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pipeline.lake.app.locations import open_table_store
    from pipeline.lake.settings.config import StoreConfig
    from pipeline.lake.sinks.parquet import committed_files

    location = f"{directory}/tables/parquet{name}"
    files = committed_files(open_table_store(location, StoreConfig()))
    found = [pq.ParquetFile(f"{location}/{f.key}").read(columns=columns) for f in files]
    return pa.concat_tables(found)


def plot(batches: Mapping[str, Sequence[Committed]], path: Path) -> None:
    """Rows by time, and how long commits took."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (rows, commits) = pyplot.subplots(1, 2, figsize=(11, 4))
    for kind, made in batches.items():
        total = 0
        line = [(0.0, 0)]
        for batch in made:
            total += batch.rows
            line.append((batch.seconds, total))
        rows.plot([x for x, _ in line], [y for _, y in line], marker="o", label=kind)
        commits.plot([one.commit_ms for one in made], marker="o", label=kind)
    rows.set(title="rows in the table", xlabel="seconds since the job began", ylim=(0, None))
    commits.set(title="commit of a batch, ms", xlabel="batch", ylim=(0, None))
    rows.legend()
    commits.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


@contextmanager
def _session(*, local: bool) -> Iterator[Any]:
    """One for all three jobs; none where they run in this process."""
    if local:
        yield None
        return
    from pipeline.lake.app.assembly import start_session
    from pipeline.lake.settings.config import parse_job

    text = job_text("delta", Path("/demo"), "localhost:9092", local=False)
    config = parse_job(text)
    session = start_session(
        config.model_copy(update={"runner": config.runner.model_copy(update={"conf": SPARK})})
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def run(directory: Path, records: int, *, local: bool) -> int:
    """The whole; exit status."""
    from pipeline.lake.app.assembly import run_job
    from pipeline.lake.job.job import Batch
    from pipeline.lake.settings.config import parse_job

    shutil.rmtree(directory, ignore_errors=True)
    for folder in ("bucket", "tables/iceberg", "broker"):
        (directory / folder).mkdir(parents=True)
    settings = {**SETTINGS, "rsm.config.storage.root": str(directory / "bucket")}
    node = VarveNode(directory / "broker", settings)
    with ExitStack() as held:
        node.start()
        held.callback(node.stop)
        with node.connect() as connection:
            wire.create_topic(connection, TOPIC, PARTITIONS, TOPIC_SETTINGS)
        print(f"broker at {node.address}; {records} records, transactions and bad ones among them")
        fill(node.address, records)
        wait_until_tiered(node, directory / "bucket")
        batches: dict[str, list[Committed]] = {}
        with _session(local=local) as session:
            for kind in KINDS:
                path = directory / f"{kind}.yaml"
                path.write_text(job_text(kind, directory, node.address, local=local))
                began = time.monotonic()
                made: list[Committed] = batches.setdefault(kind, [])

                def note_batch(
                    batch: Batch, made: list[Committed] = made, began: float = began
                ) -> None:
                    seconds = time.monotonic() - began
                    made.append(Committed(seconds, batch.rows, batch.commit_ms))

                run_job(parse_job(path.read_text(), str(path)), session, on_batch=note_batch)
                rows = sum(one.rows for one in made)
                print(f"{kind:8} {rows:8} rows in {len(made)} batches, {made[-1].seconds:.1f} s")
        same = reconcile(node.address, directory)
    picture = directory / "run.png"
    plot(batches, picture)
    print(f"jobs, tables and {picture.name} are in {directory}")
    return 0 if same else 1


def reconcile(address: str, directory: Path) -> bool:
    """Each table against what a consumer gets."""
    same = True
    good, bad = consumed(address)
    for kind in KINDS:
        found = rows_in(kind, directory)
        aside = rows_in(kind, directory, quarantine=True)
        fits = (good, bad) == (found, aside)
        same = same and fits
        rows, lost = sum(s.rows for s in found.values()), sum(s.rows for s in aside.values())
        verdict = "the consumer's" if fits else f"NOT the consumer's: {good} {bad}"
        print(f"{kind:8} {rows:8} rows, {lost} in quarantine: {verdict}")
    return same


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser("python -m bench.pipeline_demo")
    parser.add_argument("--records", type=int, default=120_000)
    parser.add_argument("--directory", type=Path, default=Path("data/pipeline"))
    parser.add_argument("--local", action="store_true", help="without Spark")
    args = parser.parse_args(words)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    return run(args.directory.resolve(), args.records, local=args.local)


if __name__ == "__main__":
    # Spark ends with its gateway; nothing else is left to be waited for.
    status = main()
    sys.stdout.flush()
    os._exit(status)
