"""The rows of consumer groups: both protocols, one big group and many, and their offsets.

Members are raw protocol clients in one process (`bench.group_members`, `bench.modern_members`), so
what is measured is the coordinator and the waiting the protocol asks for. Both brokers have Kafka's
defaults: the first phase of a classic group waits for latecomers
(`group.initial.rebalance.delay.ms` 3,000), classic members heartbeat every 3 s, members of the new
protocol every 5 s as the broker tells them.
"""

from collections.abc import Callable
from typing import Literal, TypeGuard

from bench import wire
from bench.client_group import ClientGroupResult, join_clients
from bench.commits import CommitLoad, CommitResult, commit_offsets
from bench.generator import run_apart
from bench.group_members import GroupResult, join_group
from bench.group_scale import ScaleLoad, ScaleResult, measure_scale
from bench.modern_members import ModernGroupResult, join_modern_group
from bench.node import Node, VarveNode
from bench.rows import TRANSIENT, Bench, Disturbed, Metric, Row
from bench.scrape import buckets, quantile, scrape

_LAG = "varve_event_loop_lag_seconds"
_COMMIT_RATE = 10_000


Figures = dict[str, float]
Join = Callable[..., GroupResult | ModernGroupResult]


def _members(bench: Bench) -> int:
    return 20 if bench.quick else 100


def _join_row(join: Join, counted: str, stagger_s: float) -> Callable[[Bench, Node], Figures]:
    """Members join a group of `join`'s protocol; `counted`: what else of its result is shown."""

    def run(bench: Bench, node: Node) -> Figures:
        topic, partitions = bench.topic(), 100
        with node.connect() as connection:
            wire.create_topic(connection, topic, partitions, TRANSIENT)
        result: GroupResult | ModernGroupResult = run_apart(
            None,
            join,
            *(node.host, node.port, node.pid, topic, partitions, f"group-{topic}"),
            _members(bench),
            stagger_s,
        )
        with node.connect() as connection:
            wire.delete_topics(connection, [topic])
        return {
            "join_s": result.join_s,
            "leave_s": result.leave_s,
            "join_cpu_s": result.broker_cpu_join_s,
            "leave_cpu_s": result.broker_cpu_leave_s,
            counted: float(getattr(result, counted)),
        }

    return run


def _classic_row(stagger_s: float) -> Callable[[Bench, Node], Figures]:
    return _join_row(join_group, "generations", stagger_s)


def _modern_row(stagger_s: float) -> Callable[[Bench, Node], Figures]:
    return _join_row(join_modern_group, "joins", stagger_s)


def _client_consumers(bench: Bench, kind: str) -> dict[str, float]:
    """On a broker that has just started, as after a deployment."""
    node = bench.new_node(kind, {})
    node.start()
    members = _members(bench)
    try:
        with node.connect() as connection:
            wire.create_topic(connection, "fleet", members)
        result: ClientGroupResult = run_apart(
            None, join_clients, node.address, node.pid, "fleet", members, members
        )
        return {
            "join_s": result.join_s,
            "leave_s": result.leave_s,
            "join_cpu_s": result.broker_cpu_s,
            "generator_busy": result.generator_busy,
        }
    finally:
        node.stop()


def _commits_row(rate_per_s: int | None) -> Callable[[Bench, Node], dict[str, float]]:
    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, topic, 1, TRANSIENT)
        load = CommitLoad(
            *(node.port, node.pid, topic),
            groups=20,
            duration_s=bench.duration_s,
            rate_per_s=rate_per_s,
            host=node.host,
        )
        result: CommitResult = run_apart(None, commit_offsets, load)
        with node.connect() as connection:
            wire.delete_topics(connection, [topic])
        if result.generator_busy > 0.95:
            raise Disturbed("the generator had no core to itself")
        return {
            "commits_per_s": result.commits / result.seconds,
            "p50_ms": result.p50_ms,
            "p99_ms": result.p99_ms,
            "cpu_us_per_commit": result.broker_cpu_s / result.commits * 1e6,
            "behind_s": result.behind_s,
            "generator_busy": result.generator_busy,
        }

    return run


def _scale_row(
    protocol: Literal["classic", "consumer"],
) -> Callable[[Bench, Node], dict[str, float]]:
    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic, members = bench.topic(), 10
        groups = 100 if bench.quick else 1000
        with node.connect() as connection:
            wire.create_topic(connection, topic, members, TRANSIENT)
        load = ScaleLoad(
            *(node.port, node.pid, topic, protocol, groups, members),
            groups_at_once=min(groups, 100),
            steady_s=6.0 if bench.quick else 20.0,
            host=node.host,
        )
        before = buckets(scrape(node.admin_address), _LAG) if _has_metrics(node) else {}
        result: ScaleResult = run_apart(None, measure_scale, load)
        found = {
            "forming_s": result.forming_s,
            "forming_cpu_s": result.forming_cpu_s,
            "forming_metadata_p99_ms": result.forming_metadata_p99_ms,
            "heartbeats_per_s": result.heartbeats_per_s,
            "heartbeat_p50_ms": result.heartbeat_p50_ms,
            "heartbeat_p99_ms": result.heartbeat_p99_ms,
            "metadata_p99_ms": result.metadata_p99_ms,
            "cpu_percent": result.cpu_percent,
            "rss_kb_per_member": result.rss_kb_per_member,
            "generator_busy": result.generator_busy,
        }
        if _has_metrics(node):
            after = buckets(scrape(node.admin_address), _LAG)
            found["loop_lag_p99_ms"] = quantile(before, after, 0.99) * 1e3
        with node.connect() as connection:
            wire.delete_topics(connection, [topic])
        return found

    return run


def _has_metrics(node: Node) -> TypeGuard[VarveNode]:
    return isinstance(node, VarveNode)


_WARM_UP_S = 10.0
_JOIN_CPU = Metric("join_cpu_s", "CPU s", "lower")
_LEAVE = Metric("leave_s", "s", "lower")
_LEAVE_CPU = Metric("leave_cpu_s", "CPU s", "lower")
_GENERATIONS = Metric("generations", "", "lower")
_JOINS = Metric("joins", "", "lower")
_BUSY = Metric("generator_busy", "cores", "lower")
_P50, _P99 = Metric("p50_ms", "ms", "lower"), Metric("p99_ms", "ms", "lower")
_CPU_COMMIT = Metric("cpu_us_per_commit", "CPU us", "lower")
_SCALE = (
    Metric("forming_s", "s", "lower"),
    Metric("forming_cpu_s", "CPU s", "lower"),
    Metric("forming_metadata_p99_ms", "ms", "lower"),
    Metric("heartbeats_per_s", "1/s", "higher"),
    Metric("heartbeat_p50_ms", "ms", "lower"),
    Metric("heartbeat_p99_ms", "ms", "lower"),
    Metric("metadata_p99_ms", "ms", "lower"),
    Metric("cpu_percent", "% of a core", "lower"),
    Metric("rss_kb_per_member", "KB", "lower"),
    Metric("loop_lag_p99_ms", "ms at most", "lower"),
    _BUSY,
)

GROUP_ROWS: tuple[Row, ...] = (
    Row(
        "groups-classic",
        "100 classic consumers join at once, then one leaves",
        (Metric("join_s", "s", "lower", 0.4), _LEAVE, _JOIN_CPU, _LEAVE_CPU, _GENERATIONS),
        _classic_row(0.0),
        warm_up_s=_WARM_UP_S,
        pairs_max=5,
    ),
    Row(
        "groups-classic-stream",
        "100 classic consumers join, one every 100 ms, then one leaves",
        (Metric("join_s", "s", "lower"), _LEAVE, _JOIN_CPU, _LEAVE_CPU, _GENERATIONS),
        _classic_row(0.1),
        pairs_max=3,
    ),
    Row(
        "groups-classic-clients",
        "100 librdkafka consumers start on a fresh broker, then one leaves",
        (Metric("join_s", "s", "lower", 0.6), _LEAVE, _JOIN_CPU, _BUSY),
        run_own=_client_consumers,
        pairs_max=3,
    ),
    Row(
        "groups-848",
        "100 KIP-848 consumers join at once, then one leaves",
        (
            Metric("join_s", "s", "lower", 0.9),
            _LEAVE,
            Metric("join_cpu_s", "CPU s", "lower", 0.5),
            _LEAVE_CPU,
            _JOINS,
        ),
        _modern_row(0.0),
        warm_up_s=_WARM_UP_S,
        pairs_max=5,
    ),
    Row(
        "groups-848-stream",
        "100 KIP-848 consumers join, one every 100 ms, then one leaves",
        (Metric("join_s", "s", "lower"), _LEAVE, _JOIN_CPU, _LEAVE_CPU, _JOINS),
        _modern_row(0.1),
        pairs_max=3,
    ),
    Row(
        "commits-10000",
        "10,000 offset commits/s of 20 groups",
        (
            Metric("commits_per_s", "1/s", "higher", bound=0.99 * _COMMIT_RATE),
            _P50,
            _P99,
            _CPU_COMMIT,
            Metric("behind_s", "s", "lower"),
            _BUSY,
        ),
        _commits_row(_COMMIT_RATE),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "commits-saturated",
        "offset commits of 20 groups, 32 in flight each",
        (Metric("commits_per_s", "1/s", "higher", 2.0), _P50, _P99, _CPU_COMMIT, _BUSY),
        _commits_row(None),
        warm_up_s=_WARM_UP_S,
    ),
    Row(
        "group-scale-848",
        "1,000 groups with 10,000 KIP-848 members form, then heartbeat",
        _SCALE,
        _scale_row("consumer"),
        warm_up_s=_WARM_UP_S,
        pairs_max=2,
    ),
    Row(
        "group-scale-classic",
        "1,000 groups with 10,000 classic members form, then heartbeat",
        _SCALE,
        _scale_row("classic"),
        warm_up_s=_WARM_UP_S,
        pairs_max=2,
    ),
)
