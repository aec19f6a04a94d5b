"""The rows of the comparison: what each one does, in which unit, and the ratio to reach.

Ratios are ours divided by Kafka's. Three kinds of rows:

- shared: both brokers run all the time, one is loaded at a time;
- cluster: likewise, with several brokers of each (`bench.cluster_rows`);
- own: every sample starts a broker of its own (start-up, memory, recovery).

A row's function takes a broker and gives a value for each of its metrics. It verifies what the
broker kept before it returns, outside the timed part.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from bench import wire
from bench.connections import open_connections
from bench.generator import (
    LoadResult,
    ProduceLoad,
    produce,
    produce_ping_pong,
    run_apart,
)
from bench.latency import LEFT_OUT_LIMIT, LatencyLoad, LatencyResult, measure
from bench.node import Node, OwnedNode
from bench.process import cpu_seconds, rss_bytes
from bench.verify import verify_partition

if TYPE_CHECKING:
    from bench.cluster.cluster import Cluster

GENERATOR_CORE = 1
BROKER_CORE = 0
MIB = 1 << 20

# Topics of one run: their files go soon after them.
TRANSIENT = {"file.delete.delay.ms": "1000", "retention.ms": "-1"}


class Disturbed(RuntimeError):
    """The machine was busy with something else: the pair is taken again."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a row."""

    name: str
    unit: str
    better: Literal["higher", "lower"]
    goal: float | None = None
    """The ratio ours/Kafka to reach: at least for `higher`, at most for `lower`."""
    bound: float | None = None
    """What our own figure must reach, whatever Kafka's is."""

    def is_within(self, ours: float) -> bool | None:
        """Whether our own figure reaches its bound; None without one."""
        if self.bound is None:
            return None
        return ours >= self.bound if self.better == "higher" else ours <= self.bound

    def is_reached(self, ratio: float) -> bool | None:
        """Whether a ratio reaches the goal; None without a goal."""
        if self.goal is None:
            return None
        return ratio >= self.goal if self.better == "higher" else ratio <= self.goal


@dataclass(slots=True)
class Bench:
    """Settings of one invocation, and how brokers are made."""

    quick: bool
    duration_s: float
    restart_gib: float
    partitions: int
    new_node: Callable[[str, Mapping[str, str]], OwnedNode]
    """Kind and properties to a broker that is not started yet."""
    new_tiered_node: Callable[[str, Mapping[str, str]], OwnedNode]
    """Likewise, with remote storage in a directory."""
    tier_gib: float = 2.0
    """How much history the tier's rows write and read."""
    histories: dict[str, Any] = field(default_factory=dict)
    """What the tier's rows wrote once per broker (`replay.History`)."""
    beside_limit: bool = True
    """Rows of consumers measure what the machine would give, too (`bench.limit`)."""
    counter: int = 0

    def topic(self) -> str:
        """A topic name not used before in this invocation."""
        self.counter += 1
        return f"bench-{self.counter}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the scoreboard, or several that one run gives."""

    name: str
    title: str
    metrics: tuple[Metric, ...]
    run: Callable[[Bench, Node], dict[str, float]] | None = None
    run_own: Callable[[Bench, str], dict[str, float]] | None = None
    run_cluster: "Callable[[Bench, Cluster], dict[str, float]] | None" = None
    """On several brokers that run all the time."""
    pinned: bool = False
    """Broker on one core, generator on the other: a per-core figure."""
    pairs_max: int | None = None
    """Rows that take minutes are repeated less often."""
    brokers: int = 1
    """Of ours on this machine, as one `varve serve --brokers`, beside one of Kafka's."""
    tiered: bool = False
    """`run` gets a broker with remote storage, an `OwnedNode`."""
    only: str | None = None
    """The one broker that this can be measured on."""
    warm_up_s: float = 0.0
    """So long a load of this kind goes before the first pair, small and not measured."""


RATE = Metric("requests_per_s", "req/s", "higher")


def _with_goal(metric: Metric, goal: float) -> Metric:
    return Metric(metric.name, metric.unit, metric.better, goal)


def rates(result: LoadResult) -> dict[str, float]:
    """The figures of a load that rows choose from."""
    return {
        "requests_per_s": result.requests / result.seconds,
        "mb_per_s": result.size_bytes / result.seconds / 1e6,
        "cpu_us_per_request": result.broker_cpu_s / result.requests * 1e6,
        "cpu_s_per_gb": result.broker_cpu_s / result.size_bytes * 1e9,
        "generator_busy": result.generator_busy,
        "p50_ms": result.latencies_ms[0],
        "p99_ms": result.latencies_ms[1],
    }


def _produce_row(
    *,
    values: tuple[int, int],
    partitions: tuple[int, ...],
    window: int,
    pinned: bool,
    spin: bool = False,
    configs: Mapping[str, str] | None = None,
) -> Callable[[Bench, Node], dict[str, float]]:
    """Batches of `values` = (records, bytes each); one connection per entry of `partitions`."""
    records, size = values
    batch = wire.record_batch([bytes([65 + n % 26]) * size for n in range(records)])
    last_value = bytes([65 + (records - 1) % 26]) * size
    function = produce_ping_pong if spin else produce

    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(
                connection, topic, max(partitions) + 1, {**TRANSIENT, **(configs or {})}
            )
        load = ProduceLoad(
            node.port, node.pid, topic, partitions, batch, window, bench.duration_s, host=node.host
        )
        result: LoadResult = run_apart(GENERATOR_CORE if pinned else None, function, load)
        with node.connect() as connection:
            kept = 0
            for partition in sorted(set(partitions)):
                found = verify_partition(connection, topic, partition, value=last_value)
                kept += found.records
            if kept != result.requests * records:
                raise AssertionError(
                    f"{node.name}: {kept} records in the log, "
                    f"{result.requests * records} were acknowledged"
                )
            wire.delete_topics(connection, [topic])
        return rates(result)

    return run


def undisturbed(result: LatencyResult) -> dict[str, float]:
    """The figures of a latency row.

    Raises:
        Disturbed: Too few of the records met a machine that was theirs.
    """
    if result.left_out_share > LEFT_OUT_LIMIT:
        raise Disturbed(f"{result.left_out_share:.0%} of the records met a busy machine")
    return {
        "p50_ms": result.p50_ms,
        "p99_ms": result.p99_ms,
        "p999_ms": result.p999_ms,
        "ack_p50_ms": result.ack_p50_ms,
        "ack_p99_ms": result.ack_p99_ms,
        "left_out_percent": result.left_out_share * 100,
    }


def _latency_row(rate_per_s: int) -> Callable[[Bench, Node], dict[str, float]]:
    value = b"l" * 1024
    batch = wire.record_batch([value])

    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, topic, 1, TRANSIENT)
        duration_s = bench.duration_s * (2 if rate_per_s < 1000 else 1)
        load = LatencyLoad(
            node.port, node.pid, topic, batch, rate_per_s, duration_s, host=node.host
        )
        result: LatencyResult = run_apart(GENERATOR_CORE, measure, load)
        with node.connect() as connection:
            verify_partition(connection, topic, 0, value=value)
            wire.delete_topics(connection, [topic])
        return undisturbed(result)

    return run


def _connections(bench: Bench, node: Node) -> dict[str, float]:
    result = run_apart(None, open_connections, node.host, node.port, node.pid, 1000)
    # Let the broker notice that they are gone before the next sample.
    time.sleep(1.0)
    return {
        "seconds": result.seconds,
        "cpu_s": result.broker_cpu_s,
        "rss_kb_per_connection": result.rss_per_connection_bytes / 1024,
    }


def _idle(bench: Bench, kind: str) -> dict[str, float]:
    node = bench.new_node(kind, {})
    node.start()
    try:
        with node.connect() as connection:
            wire.create_topic(connection, "idle")
            wire.produce(connection, "idle", 0, wire.record_batch([b"x"]))
            verify_partition(connection, "idle", 0, expected_records=1)
        window_s = 5.0 if bench.quick else 20.0
        time.sleep(window_s / 2)
        before, begin = cpu_seconds(node.pid), time.monotonic()
        time.sleep(window_s)
        cpu = (cpu_seconds(node.pid) - before) / (time.monotonic() - begin)
        return {"rss_mb": rss_bytes(node.pid) / 1e6, "cpu_percent": cpu * 100}
    finally:
        node.stop()


def _create_many(node: Node, count: int) -> list[str]:
    """Topics of at most 1,000 partitions each, `count` partitions in all."""
    names = []
    with node.connect(timeout_s=300) as connection:
        for begin in range(0, count, 1000):
            names.append(f"many-{begin}")
            wire.create_topic(connection, names[-1], min(1000, count - begin))
    return names


def _partitions(bench: Bench, kind: str) -> dict[str, float]:
    node = bench.new_node(kind, {})
    node.start()
    try:
        with node.connect() as connection:
            wire.create_topic(connection, "first")
            wire.produce(connection, "first", 0, wire.record_batch([b"x"]))
        time.sleep(5.0)
        before = rss_bytes(node.pid)
        begin = time.monotonic()
        first = min(1000, bench.partitions)
        _create_many(node, first)
        seconds = time.monotonic() - begin
        with node.connect(timeout_s=300) as connection:
            for start in range(first, bench.partitions, 1000):
                count = min(1000, bench.partitions - start)
                wire.create_topic(connection, f"more-{start}", count)
        time.sleep(5.0)
        grown = rss_bytes(node.pid) - before
        return {"rss_kb_per_partition": grown / bench.partitions / 1024, "create_1000_s": seconds}
    finally:
        node.stop()


def _cold_start(bench: Bench, kind: str) -> dict[str, float]:
    node = bench.new_node(kind, {})
    node.prepare()
    seconds = node.start()
    cpu = cpu_seconds(node.pid)
    node.stop()
    return {"seconds": seconds, "cpu_s": cpu}


def _restart_full(bench: Bench, kind: str) -> dict[str, float]:
    """Kill -9 with `restart_gib` in 4 partitions; until each answers a Fetch at its end."""
    node = bench.new_node(kind, {})
    node.start()
    topic, partitions = "full", 4
    value = b"r" * 10_000
    records = 104
    batch = wire.record_batch([value] * records)
    with node.connect() as connection:
        wire.create_topic(connection, topic, partitions, {"max.message.bytes": "2097152"})
    size = int(bench.restart_gib * (1 << 30))
    load = ProduceLoad(node.port, node.pid, topic, tuple(range(partitions)), batch, 3, 3600.0, size)
    filled: LoadResult = run_apart(None, produce, load)
    with node.connect() as connection:
        ends = [wire.list_offset(connection, topic, p) for p in range(partitions)]
    if sum(ends) != filled.requests * records:
        raise AssertionError(f"{kind}: {sum(ends)} records before the kill")
    node.kill()
    begin = time.monotonic()
    node.launch()
    _wait_for_fetch(node, topic, ends)
    seconds = time.monotonic() - begin
    cpu = cpu_seconds(node.pid)
    with node.connect() as connection:
        for partition, end in enumerate(ends):
            verify_partition(connection, topic, partition, expected_records=end, value=value)
    node.kill()
    return {"seconds": seconds, "cpu_s": cpu}


def _wait_for_fetch(node: Node, topic: str, ends: list[int], timeout_s: float = 600.0) -> None:
    """Until every partition gives the batch that holds its last record."""
    deadline = time.monotonic() + timeout_s
    left = dict(enumerate(ends))
    while left:
        if time.monotonic() > deadline:
            raise AssertionError(f"{node.name}: {topic} {sorted(left)} not served")
        node.check_alive()
        try:
            with node.connect(timeout_s=30.0) as connection:
                for partition, end in list(left.items()):
                    frame = wire.fetch_frame(
                        topic, partition, end - 1, max_bytes=4 * MIB, max_wait_ms=10
                    )
                    connection.sendall(frame)
                    answer = wire.parse_fetch(wire.receive(connection))
                    if not answer.error_code and any(
                        base <= end - 1 < base + count
                        for base, count, _ in wire.whole_batches(answer.records)
                    ):
                        del left[partition]
                if left:
                    time.sleep(0.01)
        except (OSError, wire.WireError):
            time.sleep(0.01)


def _restart_many(bench: Bench, kind: str) -> dict[str, float]:
    """Kill -9 with many empty partitions; until every one of them answers again."""
    node = bench.new_node(kind, {})
    node.start()
    names = _create_many(node, bench.partitions)
    node.kill()
    begin = time.monotonic()
    node.launch()
    node.wait_until_ready(600.0)
    first_answer = time.monotonic() - begin
    with node.connect(timeout_s=300) as connection:
        for start, name in zip(range(0, bench.partitions, 1000), names, strict=True):
            wire.wait_until_led(connection, name, min(1000, bench.partitions - start), 600.0)
        seconds = time.monotonic() - begin
        wire.produce(connection, names[-1], 0, wire.record_batch([b"x"]))
        verify_partition(connection, names[-1], 0, expected_records=1)
    cpu = cpu_seconds(node.pid)
    node.kill()
    return {"seconds": seconds, "first_metadata_s": first_answer, "cpu_s": cpu}


_SMALL, _MEDIUM, _LARGE = (1, 100), (16, 1000), (104, 10_000)
_LATENCY = (
    Metric("p50_ms", "ms", "lower", 0.5),
    Metric("p99_ms", "ms", "lower", 0.4),
    Metric("p999_ms", "ms", "lower"),
    Metric("ack_p50_ms", "ms", "lower"),
    Metric("ack_p99_ms", "ms", "lower"),
    Metric("left_out_percent", "%", "lower"),
)
_MB = Metric("mb_per_s", "MB/s", "higher")
_CPU_GB = Metric("cpu_s_per_gb", "CPU s/GB", "lower")
_CPU_REQUEST = Metric("cpu_us_per_request", "CPU us/req", "lower")
_BUSY = Metric("generator_busy", "cores", "lower")
_FLUSH = {"flush.messages": "1"}

ROWS: tuple[Row, ...] = (
    Row(
        "produce-1m",
        "produce, 1 MiB batches, 1 connection",
        (_with_goal(_MB, 1.2), _with_goal(_CPU_GB, 0.8), _BUSY),
        _produce_row(
            values=_LARGE,
            partitions=(0,),
            window=5,
            pinned=False,
            configs={"max.message.bytes": "2097152"},
        ),
    ),
    Row(
        "produce-16k-1",
        "produce, 16 KiB batches, 1 connection",
        (_with_goal(RATE, 2.0), _MB, _CPU_REQUEST, _BUSY),
        _produce_row(values=_MEDIUM, partitions=(0,), window=5, pinned=False),
    ),
    Row(
        "produce-16k-4",
        "produce, 16 KiB batches, 4 connections",
        (_with_goal(RATE, 1.5), _MB, _CPU_REQUEST, _BUSY),
        _produce_row(values=_MEDIUM, partitions=(0, 1, 2, 3), window=5, pinned=False),
    ),
    Row(
        "produce-100-pipelined",
        "produce, 100 B records, 4 connections pipelined, per core",
        (_with_goal(RATE, 3.0), _CPU_REQUEST, _BUSY),
        _produce_row(values=_SMALL, partitions=(0, 1, 2, 3), window=64, pinned=True),
        pinned=True,
    ),
    Row(
        "produce-100-ping-pong",
        "produce, 100 B records, one at a time, per core",
        (
            _with_goal(RATE, 1.6),
            _CPU_REQUEST,
            Metric("p50_ms", "ms", "lower"),
            Metric("p99_ms", "ms", "lower"),
        ),
        _produce_row(values=_SMALL, partitions=(0,), window=1, pinned=True, spin=True),
        pinned=True,
    ),
    Row(
        "flush-1",
        "produce with flush.messages=1, 16 KiB, one at a time",
        (RATE, Metric("p50_ms", "ms", "lower"), Metric("p99_ms", "ms", "lower"), _CPU_REQUEST),
        _produce_row(
            values=_MEDIUM, partitions=(0,), window=1, pinned=False, spin=True, configs=_FLUSH
        ),
    ),
    Row(
        "flush-4",
        "produce with flush.messages=1, 16 KiB, 4 connections to one partition",
        (RATE, _CPU_REQUEST),
        _produce_row(
            values=_MEDIUM, partitions=(0, 0, 0, 0), window=1, pinned=False, configs=_FLUSH
        ),
    ),
    Row(
        "latency-200",
        "end to end, 1 KB, acks=all, 200 records/s, per core",
        _LATENCY,
        _latency_row(200),
        pinned=True,
    ),
    Row(
        "latency-2000",
        "end to end, 1 KB, acks=all, 2,000 records/s, per core",
        _LATENCY,
        _latency_row(2000),
        pinned=True,
    ),
    Row(
        "connections",
        "1,000 connections opened and answered",
        (
            Metric("seconds", "s", "lower", 0.05),
            Metric("cpu_s", "CPU s", "lower"),
            Metric("rss_kb_per_connection", "KB", "lower"),
        ),
        _connections,
    ),
    Row(
        "idle",
        "idle broker",
        (Metric("rss_mb", "MB", "lower", 0.25), Metric("cpu_percent", "% of a core", "lower", 0.2)),
        run_own=_idle,
        pairs_max=3,
    ),
    Row(
        "partitions",
        "memory per partition",
        (
            Metric("rss_kb_per_partition", "KB", "lower", 0.2),
            Metric("create_1000_s", "s", "lower", 1.5),
        ),
        run_own=_partitions,
        pairs_max=3,
    ),
    Row(
        "cold-start",
        "cold start to the first Metadata answer",
        (Metric("seconds", "s", "lower", 0.2), Metric("cpu_s", "CPU s", "lower")),
        run_own=_cold_start,
    ),
    Row(
        "restart-full",
        "kill -9 with a full log, until every partition is served",
        (Metric("seconds", "s", "lower", 0.35), Metric("cpu_s", "CPU s", "lower")),
        run_own=_restart_full,
        pairs_max=2,
    ),
    Row(
        "restart-partitions",
        "kill -9 with many partitions, until every one is served",
        (
            Metric("seconds", "s", "lower", 0.15),
            Metric("first_metadata_s", "s", "lower"),
            Metric("cpu_s", "CPU s", "lower"),
        ),
        run_own=_restart_many,
        pairs_max=3,
    ),
)
