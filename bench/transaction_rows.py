"""The rows of transactions: producers that commit as fast as they may, and at a rate.

`commit` is the EndTxn round trip, `transaction` everything from a transaction's first request on.
Released Kafka answers EndTxn before the markers are written; a producer that begins its next
transaction at once waits for them there, 20 ms at a time. So where producers do not pause,
`transaction` is the whole price, and `commit` compares a broker that is busy with one that mostly
waits. At a rate both have the same to do. A retry that the broker asked for counts in full.
"""

from collections.abc import Callable, Sequence

from bench import group_wire, wire
from bench.client_transactions import (
    ClientTransactionLoad,
    ClientTransactionResult,
    run_client_transactions,
)
from bench.generator import run_apart
from bench.node import Node
from bench.rows import TRANSIENT, Bench, Metric, Row
from bench.transaction_wire import TV1, TV2, Versions
from bench.transactions import TransactionLoad, TransactionResult, run_transactions
from bench.verify import verify_committed

_VALUE = b"t" * 100
_OUTPUTS = (0, 1, 2)
"""Every transaction writes to each of these partitions."""


def _figures(result: TransactionResult) -> dict[str, float]:
    return {
        "transactions_per_s": result.transactions / result.seconds,
        "commit_p50_ms": result.commit_p50_ms,
        "commit_p99_ms": result.commit_p99_ms,
        "transaction_p50_ms": result.transaction_p50_ms,
        "transaction_p99_ms": result.transaction_p99_ms,
        "cpu_us_per_transaction": result.broker_cpu_s / result.transactions * 1e6,
        "retries_percent": result.retries / result.transactions * 100,
        "generator_busy": result.generator_busy,
    }


def _verify(node: Node, topic: str, partitions: Sequence[int], records: int) -> None:
    with node.connect() as connection:
        for partition in partitions:
            verify_committed(connection, topic, partition, records)


def _raw_row(
    producers: int, versions: Versions, rate_per_s: float | None = None
) -> Callable[[Bench, Node], dict[str, float]]:
    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, topic, len(_OUTPUTS), TRANSIENT)
        load = TransactionLoad(
            *(node.port, node.pid, topic, producers, _OUTPUTS, bench.duration_s),
            versions=versions,
            value=_VALUE,
            rate_per_s=rate_per_s,
            name=topic,
            host=node.host,
        )
        result: TransactionResult = run_apart(None, run_transactions, load)
        _verify(node, topic, _OUTPUTS, result.transactions)
        with node.connect() as connection:
            wire.delete_topics(connection, [topic])
        return _figures(result)

    return run


def _read_process_write_row(producers: int) -> Callable[[Bench, Node], dict[str, float]]:
    """Each has a partition of the source to itself, as in a consumer group."""
    batches, records = 4000, 10
    batch = wire.record_batch([b"s" * 100] * records)

    def run(bench: Bench, node: Node) -> dict[str, float]:
        source, topic = bench.topic(), bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, source, producers, TRANSIENT)
            wire.create_topic(connection, topic, len(_OUTPUTS), TRANSIENT)
            for partition in range(producers):
                frame = wire.produce_frame(source, partition, batch)
                for _ in range(batches // 100):
                    connection.sendall(frame * 100)
                    for _ in range(100):
                        wire.receive(connection)
        load = TransactionLoad(
            *(node.port, node.pid, topic, producers, _OUTPUTS, bench.duration_s),
            source=source,
            name=topic,
            host=node.host,
        )
        result: TransactionResult = run_apart(None, run_transactions, load)
        if max(result.by_producer) >= batches:
            raise AssertionError("a producer ran out of input")
        _verify(node, topic, _OUTPUTS, result.transactions * records)
        with node.connect() as connection:
            for index, expected in enumerate(result.consumed):
                group = f"{topic}-{index}-in"
                connection.sendall(group_wire.offset_fetch_frame(group, source, [index], 1))
                found = group_wire.fetched_offsets(bytes(wire.receive(connection)))
                if found != {index: expected}:
                    raise AssertionError(f"{group}: {found} committed, {expected} acknowledged")
            wire.delete_topics(connection, [source, topic])
        return _figures(result)

    return run


def _client_row(producers: int) -> Callable[[Bench, Node], dict[str, float]]:
    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, topic, len(_OUTPUTS), TRANSIENT)
        load = ClientTransactionLoad(
            node.address, node.pid, topic, producers, _OUTPUTS, bench.duration_s, _VALUE
        )
        result: ClientTransactionResult = run_apart(None, run_client_transactions, load)
        _verify(node, topic, _OUTPUTS, result.transactions)
        with node.connect() as connection:
            wire.delete_topics(connection, [topic])
        return {
            "transactions_per_s": result.transactions / result.seconds,
            "commit_p50_ms": result.commit_p50_ms,
            "commit_p99_ms": result.commit_p99_ms,
            "transaction_p99_ms": result.transaction_p99_ms,
            "cpu_us_per_transaction": result.broker_cpu_s / result.transactions * 1e6,
            "generator_busy": result.generator_busy,
        }

    return run


_WARM_UP_S = 10.0

_CLIENTS = (
    "transactions_per_s",
    "commit_p50_ms",
    "commit_p99_ms",
    "transaction_p99_ms",
    "cpu_us_per_transaction",
    "generator_busy",
)
"""What the row of librdkafka's producers tells."""

_METRICS = (
    Metric("transactions_per_s", "1/s", "higher", 1.2),
    Metric("commit_p50_ms", "ms", "lower"),
    Metric("commit_p99_ms", "ms", "lower", 0.8),
    Metric("transaction_p50_ms", "ms", "lower"),
    Metric("transaction_p99_ms", "ms", "lower", 0.8),
    Metric("cpu_us_per_transaction", "CPU us", "lower"),
    Metric("retries_percent", "%", "lower"),
    Metric("generator_busy", "cores", "lower"),
)

TRANSACTION_ROWS: tuple[Row, ...] = (
    Row(
        "transactions-1",
        "one producer, 3 partitions a transaction, transaction version 2",
        _METRICS,
        _raw_row(1, TV2),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "transactions-8",
        "8 producers, 3 partitions a transaction, transaction version 2",
        _METRICS,
        _raw_row(8, TV2),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "transactions-50",
        "50 producers, 3 partitions a transaction, transaction version 2",
        _METRICS,
        _raw_row(50, TV2),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "transactions-200-a-second",
        "200 transactions/s of 20 producers, 3 partitions each, transaction version 2",
        _METRICS[1:],
        _raw_row(20, TV2, 200.0),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "transactions-8-old",
        "8 producers, 3 partitions a transaction, transaction version 1",
        _METRICS,
        _raw_row(8, TV1),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "transactions-8-clients",
        "8 librdkafka producers, 3 partitions a transaction",
        tuple(metric for metric in _METRICS if metric.name in _CLIENTS),
        _client_row(8),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "read-process-write-8",
        "8 jobs: fetch 10 records, write them to 3 partitions, commit their offset, with TV 2",
        _METRICS,
        _read_process_write_row(8),
        warm_up_s=_WARM_UP_S,
    ),
)
