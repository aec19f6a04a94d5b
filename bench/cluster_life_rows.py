"""Rows on the life of three brokers: at rest, with many partitions, with a replica that comes back.

Each leaves the cluster whole: what it kills is started again, its topics are deleted.
"""

import socket
import time
from collections.abc import Callable
from functools import partial

from bench import wire
from bench.cluster.cluster import Cluster
from bench.cluster.failover import FAULTS, Fault, sample
from bench.cluster.raw_clients import RawProducer, leader_route
from bench.cluster_rows import ROTATIONS
from bench.generator import ProduceLoad, percentile, produce, run_apart
from bench.process import cpu_seconds, rss_bytes
from bench.rows import TRANSIENT, Bench, Metric, Row

CREATED = 1000
PRODUCED_TO = 20
"""Partitions of a new topic that are tried."""
RATE_PER_S = 200.0
RETURNING = 3
"""The broker whose replicas have to catch up."""
BATCH = wire.record_batch([bytes([65 + n % 26]) * 10_000 for n in range(104)])


def _idle(bench: Bench, cluster: Cluster) -> dict[str, float]:
    topic = bench.topic()
    cluster.create_topic(topic, ROTATIONS, TRANSIENT)
    found = _at_rest(bench, cluster)
    _delete(cluster, [topic])
    return found


def _idle_many(bench: Bench, cluster: Cluster) -> dict[str, float]:
    topics = _create_many(bench, cluster)
    found = _at_rest(bench, cluster)
    _delete(cluster, topics)
    return found


def _at_rest(bench: Bench, cluster: Cluster) -> dict[str, float]:
    """Of each broker, on average."""
    window_s = 5.0 if bench.quick else 20.0
    time.sleep(window_s / 4)
    pids = [node.pid for node in cluster.nodes.values()]
    before, begin = sum(map(cpu_seconds, pids)), time.monotonic()
    time.sleep(window_s)
    cpu = (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - begin)
    brokers = len(pids)
    return {
        "rss_mb": sum(map(rss_bytes, pids)) / brokers / 1e6,
        "cpu_percent": cpu / brokers * 100,
    }


def _delete(cluster: Cluster, topics: list[str]) -> None:
    with cluster.connected() as connection:
        wire.delete_topics(connection, topics)


def _create(cluster: Cluster, topic: str, partitions: int) -> float:
    """Seconds until every broker shows them all, led and in sync, and some take records."""
    begin = time.monotonic()
    assignment = [ROTATIONS[index % len(ROTATIONS)] for index in range(partitions)]
    cluster.create_topic(topic, assignment, timeout_s=300.0)
    batch = wire.record_batch([b"x"])
    for index in {*range(0, partitions, max(partitions // PRODUCED_TO, 1)), partitions - 1}:
        route = leader_route(cluster.addresses, topic, index)
        route.until_done(partial(_produce_one, topic=topic, index=index, batch=batch))
        route.close()
    return time.monotonic() - begin


def _produce_one(connection: socket.socket, *, topic: str, index: int, batch: bytes) -> None:
    connection.settimeout(10.0)
    wire.produce(connection, topic, index, batch)


def _create_many(bench: Bench, cluster: Cluster) -> list[str]:
    """Topics of at most CREATED partitions each, `bench.partitions` in all."""
    topics = []
    for first in range(0, bench.partitions, CREATED):
        topics.append(bench.topic())
        _create(cluster, topics[-1], min(CREATED, bench.partitions - first))
    return topics


def _create_1000(bench: Bench, cluster: Cluster) -> dict[str, float]:
    topic = bench.topic()
    count = min(CREATED, bench.partitions)
    before = cluster.cpu_seconds()
    seconds = _create(cluster, topic, count)
    cpu_s = cluster.cpu_seconds() - before
    _delete(cluster, [topic])
    return {"seconds": seconds, "cpu_s": cpu_s}


def _failover_many(bench: Bench, cluster: Cluster) -> dict[str, float]:
    """A raw client's gap by the kill of a leader: of one topic, and with many partitions beside."""
    fault = FAULTS[0]
    one = sample(cluster, fault, bench.topic(), RATE_PER_S, is_raw=True)
    topics = _create_many(bench, cluster)
    many = sample(cluster, fault, bench.topic(), RATE_PER_S, is_raw=True)
    _delete(cluster, topics)
    return {
        "gap_s": many.gap_s,
        "extra_s": many.gap_s - one.gap_s,
        "in_sync_s": many.in_sync_s,
    }


def _catch_up(bench: Bench, cluster: Cluster) -> dict[str, float]:
    """A broker was away while records were written; a producer to another partition meanwhile."""
    size = (128 << 20) if bench.quick else (1 << 30)
    topic, beside = bench.topic(), bench.topic()
    configs = {**TRANSIENT, "max.message.bytes": "2097152"}
    cluster.create_topic(topic, ROTATIONS[:1], configs)
    cluster.create_topic(beside, ROTATIONS[:1], TRANSIENT)
    cluster.terminate(RETURNING)
    cluster.nodes[RETURNING].stop()
    port = cluster.nodes[cluster.leader_of(topic)].port
    load = ProduceLoad(
        *(port, cluster.nodes[1].pid, topic, (0,), BATCH, 5, 600.0, size), ports=(port,)
    )
    run_apart(None, produce, load)
    producer = RawProducer(cluster.bootstrap, beside, RATE_PER_S)
    producer.start()
    try:
        producer.wait_for_acks(int(RATE_PER_S))
        quiet = time.monotonic()
        producer.wait_for_acks(int(RATE_PER_S * 4))
        cluster.restart(RETURNING)
        log = cluster.nodes[RETURNING].data_directory / f"{topic}-0"
        had = log_size(cluster, topic, RETURNING)
        cluster.wait_until(
            f"{log} grows", lambda: log_size(cluster, topic, RETURNING) > had, timeout_s=120.0
        )
        begin, had = time.monotonic(), log_size(cluster, topic, RETURNING)
        cluster.wait_until_in_sync([topic], timeout_s=300.0)
        end = time.monotonic()
        before = _p99_ms(producer, quiet, begin - (begin - quiet) / 4)
        during = _p99_ms(producer, begin, end)
    finally:
        producer.stop()
    producer.finish()
    cluster.wait_for_all()
    cluster.wait_until_in_sync(timeout_s=120.0)
    rate = (log_size(cluster, topic, RETURNING) - had) / (end - begin) / 1e6
    _delete(cluster, [topic, beside])
    return {
        "mb_per_s": rate,
        "p99_beside_ms": during,
        "p99_growth": during / before,
    }


def log_size(cluster: Cluster, topic: str, node_id: int) -> int:
    """Bytes of a replica's segments of partition 0."""
    directory = cluster.nodes[node_id].data_directory / f"{topic}-0"
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def _p99_ms(producer: RawProducer, begin: float, end: float) -> float:
    """Of the records that were sent in between."""
    waits = sorted(
        at - producer.sent_at[number]
        for at, number in list(producer.acks)
        if begin <= producer.sent_at[number] <= end
    )
    return percentile(waits, 0.99) * 1e3


def _gap(fault: Fault) -> Callable[[Bench, Cluster], dict[str, float]]:
    def run(bench: Bench, cluster: Cluster) -> dict[str, float]:
        found = sample(cluster, fault, bench.topic(), RATE_PER_S)
        return {"gap_s": found.gap_s, "in_sync_s": found.in_sync_s}

    return run


_IN_SYNC = Metric("in_sync_s", "s until in sync again", "lower")
_AT_REST = (
    Metric("rss_mb", "MB", "lower", 0.2),
    Metric("cpu_percent", "% of a core", "lower", 0.5),
)
_GAPS = {
    "rf3-gap-leader": (0, 3.0),
    "rf3-gap-controller": (1, 3.0),
    "rf3-gap-follower": (2, 3.0),
    "rf3-gap-sigterm": (3, 0.5),
    "rf3-gap-sigstop": (4, 4.5),
    "rf3-gap-group-coordinator": (7, 3.0),
    "rf3-gap-txn-coordinator": (8, 3.0),
}
"""Of the faults of `bench.failover`, those that both kinds of cluster can have, and bounds."""

LIFE_ROWS: tuple[Row, ...] = (
    Row(
        "rf3-idle",
        "three replicas: at rest, each broker",
        _AT_REST,
        run_cluster=_idle,
        pairs_max=1,
    ),
    Row(
        "rf3-idle-many",
        "three replicas: at rest with 5,000 partitions, each broker",
        _AT_REST,
        run_cluster=_idle_many,
        pairs_max=1,
    ),
    Row(
        "rf3-create-1000",
        "three replicas: 1,000 partitions created, shown by every broker, some written to",
        (Metric("seconds", "s", "lower", 1.0), Metric("cpu_s", "CPU s", "lower", 1.0)),
        run_cluster=_create_1000,
        pairs_max=3,
    ),
    Row(
        "rf3-catch-up",
        "three replicas: a broker comes back and lacks 1 GiB; a producer at 200/s beside it",
        (
            Metric("mb_per_s", "MB/s", "higher", 1.0),
            Metric("p99_beside_ms", "ms", "lower"),
            Metric("p99_growth", "times p99 before", "lower", bound=1.5),
        ),
        run_cluster=_catch_up,
        pairs_max=3,
    ),
    *(
        Row(
            name,
            f"three replicas: {FAULTS[number].name}, longest time without an acknowledgement",
            (Metric("gap_s", "s", "lower", 1.0, bound=bound), _IN_SYNC),
            run_cluster=_gap(FAULTS[number]),
        )
        for name, (number, bound) in _GAPS.items()
    ),
    Row(
        "rf3-failover-many",
        "three replicas: kill -9 of a leader with 5,000 partitions beside, raw client",
        (
            Metric("gap_s", "s", "lower", 1.0),
            Metric("extra_s", "s beside one partition", "lower", bound=1.0),
            _IN_SYNC,
        ),
        run_cluster=_failover_many,
        pairs_max=1,
    ),
)
