"""Rows on three brokers: every record on three replicas, acknowledged when all in sync have it.

Costs are those of all brokers together, and of etcd where there is one: Kafka's brokers are their
own controllers. Partitions are led by the brokers in turn; a connection goes to its one's leader.
"""

import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from bench import wire
from bench.cluster.cluster import Cluster
from bench.cluster.floor import replication_floor
from bench.generator import LoadResult, ProduceLoad, produce, run_apart
from bench.latency import LatencyLoad, LatencyResult, measure
from bench.rows import GENERATOR_CORE, TRANSIENT, Bench, Metric, Row, rates, undisturbed
from bench.verify import verify_partition

ROTATIONS = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
"""Replicas of partitions 0, 1, 2, and of 3, 4, 5 and so on again; the first leads."""


def _create(cluster: Cluster, topic: str, partitions: int, configs: Mapping[str, str]) -> list[int]:
    """Create a topic that is in sync, and say on which port each partition is led."""
    assignment = [ROTATIONS[index % len(ROTATIONS)] for index in range(partitions)]
    cluster.create_topic(topic, assignment, dict(configs))
    shown = cluster.state([topic])
    leaders = {partition.index: partition.leader for partition in shown.partitions}
    for index, leader in leaders.items():
        # The image has it in sync before its leader has opened the log.
        with cluster.connected(leader) as connection:
            cluster.wait_until(f"{topic}-{index} led", partial(_is_led, connection, topic, index))
    return [cluster.nodes[leaders[index]].port for index in range(partitions)]


def _is_led(connection: socket.socket, topic: str, index: int) -> bool:
    code, _ = wire.list_offsets(connection, topic, [index])[index]
    return not code


def _verify_and_delete(cluster: Cluster, topic: str, partitions: int, value: bytes) -> int:
    """Records that are there, each batch with its sum and its end checked."""
    kept = 0
    for index in range(partitions):
        with cluster.connected_to_leader(topic, index) as connection:
            kept += verify_partition(connection, topic, index, value=value).records
    with cluster.connected() as connection:
        wire.delete_topics(connection, [topic])
    return kept


def _produce_row(
    *,
    values: tuple[int, int],
    connections: int,
    configs: Mapping[str, str] | None = None,
    beside_floor: bool = False,
) -> Callable[[Bench, Cluster], dict[str, float]]:
    """Batches of `values` = (records, bytes each), one connection for each partition.

    `beside_floor`: CPU also as a multiple of what the same takes without brokers, just before.
    """
    records, size = values
    batch = wire.record_batch([bytes([65 + n % 26]) * size for n in range(records)])
    last_value = bytes([65 + (records - 1) % 26]) * size

    def run(bench: Bench, cluster: Cluster) -> dict[str, float]:
        topic = bench.topic()
        ports = _create(cluster, topic, connections, {**TRANSIENT, **(configs or {})})
        load = ProduceLoad(
            *(ports[0], cluster.nodes[1].pid, topic, tuple(range(connections)), batch, 5),
            bench.duration_s,
            ports=tuple(ports),
        )
        floor = replication_floor(cluster.nodes[1].data_directory.parent) if beside_floor else None
        before = cluster.cpu_seconds()
        result: LoadResult = run_apart(None, produce, load)
        result = replace(result, broker_cpu_s=cluster.cpu_seconds() - before)
        kept = _verify_and_delete(cluster, topic, connections, last_value)
        if kept != result.requests * records:
            raise AssertionError(
                f"{cluster.kind}: {kept} records in the log, "
                f"{result.requests * records} were acknowledged"
            )
        found = rates(result)
        if floor is not None:
            found["cpu_x_floor"] = found["cpu_s_per_gb"] / floor.cpu_s_per_gb
        return found

    return run


def _latency_row(rate_per_s: int) -> Callable[[Bench, Cluster], dict[str, float]]:
    value = b"l" * 1024
    batch = wire.record_batch([value])

    def run(bench: Bench, cluster: Cluster) -> dict[str, float]:
        topic = bench.topic()
        (port,) = _create(cluster, topic, 1, TRANSIENT)
        duration_s = bench.duration_s * (2 if rate_per_s < 1000 else 1)
        load = LatencyLoad(port, cluster.nodes[1].pid, topic, batch, rate_per_s, duration_s)
        before = cluster.cpu_seconds()
        result: LatencyResult = run_apart(GENERATOR_CORE, measure, load)
        cpu_s = cluster.cpu_seconds() - before
        _verify_and_delete(cluster, topic, 1, value)
        cpu_percent = cpu_s / (duration_s + load.warm_up_s) * 100
        return {**undisturbed(result), "cpu_percent": cpu_percent}

    return run


_MB = Metric("mb_per_s", "MB/s", "higher", 1.5)
_CPU_GB = Metric("cpu_s_per_gb", "CPU s/GB", "lower", 0.6)
_RATE = Metric("requests_per_s", "req/s", "higher", 1.5)
_BUSY = Metric("generator_busy", "cores", "lower")
_LATENCY = (
    Metric("p50_ms", "ms", "lower", 0.6),
    Metric("p99_ms", "ms", "lower", 0.6),
    Metric("ack_p50_ms", "ms", "lower"),
    Metric("ack_p99_ms", "ms", "lower"),
    Metric("cpu_percent", "% of a core", "lower"),
    Metric("left_out_percent", "%", "lower"),
)

CLUSTER_ROWS: tuple[Row, ...] = (
    Row(
        "rf3-produce-1m",
        "three replicas: produce, acks=all, 1 MiB batches, 1 connection",
        (_MB, _CPU_GB, Metric("cpu_x_floor", "times the floor", "lower"), _BUSY),
        run_cluster=_produce_row(
            values=(104, 10_000),
            connections=1,
            configs={"max.message.bytes": "2097152"},
            beside_floor=True,
        ),
    ),
    Row(
        "rf3-produce-16k-1",
        "three replicas: produce, acks=all, 16 KiB batches, 1 connection",
        (_RATE, Metric("cpu_s_per_gb", "CPU s/GB", "lower"), _BUSY),
        run_cluster=_produce_row(values=(16, 1000), connections=1),
    ),
    Row(
        "rf3-produce-16k-4",
        "three replicas: produce, acks=all, 16 KiB batches, 4 connections, leaders in turn",
        (_RATE, Metric("cpu_s_per_gb", "CPU s/GB", "lower"), _BUSY),
        run_cluster=_produce_row(values=(16, 1000), connections=4),
    ),
    Row(
        "rf3-latency-200",
        "three replicas: end to end, 1 KB, acks=all, 200 records/s, all brokers on one core",
        _LATENCY,
        run_cluster=_latency_row(200),
        pinned=True,
    ),
    Row(
        "rf3-latency-2000",
        "three replicas: end to end, 1 KB, acks=all, 2,000 records/s, all brokers on one core",
        _LATENCY,
        run_cluster=_latency_row(2000),
        pinned=True,
    ),
)
