"""Rows of a whole machine: two of our brokers, one `varve serve --brokers 2`, beside one Kafka.

Each connection goes to the broker that leads its partition, as clients' do. Costs are those of the
whole process tree, the supervisor counted. The limit of consumers is that of `bench.limit`, with a
program for each of two brokers.
"""

import time

from bench import wire
from bench.consume_rows import fetch_beside_limit
from bench.generator import FetchLoad, LoadResult, ProduceLoad, fetch_all, produce, run_apart
from bench.latency import LatencyLoad, LatencyResult, measure
from bench.node import Node
from bench.rows import MIB, TRANSIENT, Bench, Metric, Row, rates, undisturbed
from bench.verify import verify_partition

PARTITIONS = tuple(range(4))
RECORDS = 16
VALUE = b"b" * 1000
CONSUMED_BYTES = 512 * MIB
LED_WITHIN_S = 60.0
BROKERS = 2


def _create(node: Node, topic: str, partitions: int) -> list[int]:
    """A topic; on which port each of its partitions is led, and served.

    Raises:
        AssertionError: One is not led by then.
    """
    with node.connect() as connection:
        wire.create_topics(connection, [topic], partitions, TRANSIENT)
    deadline = time.monotonic() + LED_WITHIN_S
    while True:
        with node.connect() as connection:
            brokers = wire.cluster_brokers(connection)
            shown = wire.topic_partitions(connection, [topic]).get(topic, [])
        ports = {
            it.index: brokers[it.leader][1] for it in shown if not it.error_code and it.leader >= 0
        }
        if len(ports) == partitions and all(
            _is_served(node, topic, index, port) for index, port in ports.items()
        ):
            return [ports[index] for index in range(partitions)]
        if time.monotonic() > deadline:
            raise AssertionError(f"{node.name}: {topic} is led on {ports} only")
        time.sleep(0.02)


def _is_served(node: Node, topic: str, index: int, port: int) -> bool:
    with node.connect(port=port) as connection:
        code, _ = wire.list_offsets(connection, topic, [index])[index]
    return not code


def _verify_and_delete(node: Node, topic: str, ports: list[int], value: bytes) -> int:
    """Records that are there, each batch with its sum and its end checked."""
    kept = 0
    for index, port in enumerate(ports):
        with node.connect(port=port) as connection:
            kept += verify_partition(connection, topic, index, value=value).records
    with node.connect() as connection:
        wire.delete_topics(connection, [topic])
    return kept


def _fill(node: Node, topic: str, ports: list[int], duration_s: float, size: int) -> LoadResult:
    load = ProduceLoad(
        *(node.port, node.pid, topic, PARTITIONS, wire.record_batch([VALUE] * RECORDS), 5),
        duration_s,
        size,
        host=node.host,
        ports=tuple(ports),
    )
    result: LoadResult = run_apart(None, produce, load)
    return result


def _check(node: Node, kept: int, filled: LoadResult) -> None:
    if kept != filled.requests * RECORDS:
        raise AssertionError(
            f"{node.name}: {kept} records in the log, {filled.requests * RECORDS} were acknowledged"
        )


def _produce(bench: Bench, node: Node) -> dict[str, float]:
    """Batches of 16 KiB, one connection for each of four partitions."""
    topic = bench.topic()
    ports = _create(node, topic, len(PARTITIONS))
    result = _fill(node, topic, ports, bench.duration_s, 2 << 30)
    _check(node, _verify_and_delete(node, topic, ports, VALUE), result)
    return rates(result) | {"brokers": float(len(set(ports)))}


def _consume(bench: Bench, node: Node) -> dict[str, float]:
    """A consumer for each of four partitions, from the page cache."""
    topic = bench.topic()
    ports = _create(node, topic, len(PARTITIONS))
    filled = _fill(node, topic, ports, 600.0, CONSUMED_BYTES)
    size = len(wire.record_batch([VALUE] * RECORDS))
    loads = []
    for index, port in enumerate(ports):
        with node.connect(port=port) as connection:
            end = wire.list_offset(connection, topic, index)
        loads.append(
            FetchLoad(
                *(port, node.pid, topic, size, RECORDS, end, MIB, bench.duration_s),
                host=node.host,
                partition=index,
            )
        )
    found = fetch_beside_limit(node, loads, BROKERS) if bench.beside_limit else None
    if found is None:
        found = rates(fetch_all(loads))
    _check(node, _verify_and_delete(node, topic, ports, VALUE), filled)
    return found | {"brokers": float(len(set(ports)))}


def _latency(bench: Bench, node: Node) -> dict[str, float]:
    """End to end on one partition, 200 records a second."""
    topic, value = bench.topic(), b"l" * 1024
    ports = _create(node, topic, 1)
    load = LatencyLoad(
        *(ports[0], node.pid, topic, wire.record_batch([value]), 200, bench.duration_s * 2),
        host=node.host,
    )
    result: LatencyResult = run_apart(None, measure, load)
    _verify_and_delete(node, topic, ports, value)
    return undisturbed(result)


_BROKERS = Metric("brokers", "brokers", "higher")
_BUSY = Metric("generator_busy", "cores", "lower")

BROKERS_ROWS: tuple[Row, ...] = (
    Row(
        "brokers2-produce-16k",
        "two brokers of ours beside one Kafka: produce, 16 KiB batches, 4 connections",
        (
            Metric("requests_per_s", "req/s", "higher", 1.5),
            Metric("cpu_us_per_request", "CPU us/req", "lower"),
            _BUSY,
            _BROKERS,
        ),
        _produce,
        brokers=BROKERS,
    ),
    Row(
        "brokers2-consume",
        "two brokers of ours beside one Kafka: hot consume, 4 consumers",
        (
            Metric("mb_per_s", "MB/s", "higher", 1.5),
            Metric("cpu_s_per_gb", "CPU s/GB", "lower"),
            Metric("limit_mb_per_s", "MB/s of the limit", "higher"),
            Metric("share_of_limit", "share of the limit", "higher"),
            Metric("cpu_x_limit", "times the limit's CPU", "lower"),
            _BUSY,
            _BROKERS,
        ),
        _consume,
        brokers=BROKERS,
    ),
    Row(
        "brokers2-latency-200",
        "two brokers of ours beside one Kafka: end to end, 1 KB, acks=all, 200 records/s",
        (
            Metric("p50_ms", "ms", "lower"),
            Metric("p99_ms", "ms", "lower", 1.0),
            Metric("left_out_percent", "%", "lower"),
        ),
        _latency,
        brokers=BROKERS,
    ),
)
