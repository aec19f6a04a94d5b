"""The rows of groups of every size: what ten thousand members cost other clients.

For each phase (`bench.group_shapes`): how long it took, the p99 of a producer that has nothing to
do with it, and the most CPU time that the loop took before it looked at its timers again. The
last says what the broker does whatever else the machine is busy with.
"""

import socket
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from typing_extensions import override

from bench import wire
from bench.generator import run_apart
from bench.group_shapes import PROBE_TOPIC, Phase, Shape, ShapeLoad, live, load_again
from bench.node import VarveNode
from bench.rows import Bench, Metric, Row

SESSION_TIMEOUT_MS = 15_000
_TOPIC = "shape"
_CREATED_AT_ONCE = 500
_PROPERTIES = {
    "group.consumer.min.session.timeout.ms": "10000",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.max.size": "20000",
    "offsets.topic.num.partitions": "50",
}
_PHASES = ("forming", "steady", "growth", "leaving", "again", "loading", "expiring")
_KINDS = (
    ("s", "seconds", "s"),
    ("produce_p99_ms", "produce_p99_ms", "ms"),
    ("hold_cpu_ms", "hold_cpu_ms", "CPU ms"),
)


class WatchedNode(VarveNode):
    """`varve serve` with a watch on its loop (`bench.loop_watch`)."""

    @property
    def watch_path(self) -> Path:
        """Where the longest hold is noted."""
        return self.directory / "watch"

    @override
    def command(self) -> list[str]:
        python = str(Path(super().command()[0]).parent / "python")
        return [python, "-m", "bench.loop_watch", str(self.watch_path), *super().command()[1:]]


def _scaled(shape: Shape, bench: Bench) -> Shape:
    """A tenth of it when there is little time."""
    if not bench.quick:
        return shape
    if shape.groups >= shape.members:
        return replace(shape, groups=max(shape.groups // 10, 1), topics=shape.topics // 10)
    return replace(
        shape,
        members=shape.members // 10,
        partitions=max(shape.partitions // 10, 1),
        topics=shape.topics // 10,
    )


def _figures(phases: Mapping[str, Phase]) -> dict[str, float]:
    values = {name: asdict(phase) for name, phase in phases.items()}
    return {
        f"{name}_{suffix}": values[name][field]
        for name in _PHASES
        if name in values
        for suffix, field, _ in _KINDS
    }


def _shape_row(shape: Shape) -> Callable[[Bench, str], dict[str, float]]:
    def run(bench: Bench, kind: str) -> dict[str, float]:
        there = bench.new_node(kind, _PROPERTIES)
        node = WatchedNode(there.directory, there.properties)
        wanted = _scaled(shape, bench)

        def load() -> ShapeLoad:
            return ShapeLoad(
                node.host,
                node.port,
                node.pid,
                wanted,
                _TOPIC,
                node.watch_path,
                SESSION_TIMEOUT_MS,
                steady_s=6.0 if bench.quick else 15.0,
            )

        node.start()
        try:
            with node.connect() as connection:
                wire.create_topic(connection, PROBE_TOPIC)
                _create(connection, wanted)
            phases: dict[str, Phase] = run_apart(None, live, load())
            node.stop()
            node.start()
            phases |= run_apart(None, load_again, load())
            return _figures(phases)
        finally:
            node.stop()

    return run


def _create(connection: socket.socket, shape: Shape) -> None:
    if not shape.topics:
        wire.create_topic(connection, _TOPIC, shape.partitions)
        return
    names = [f"{_TOPIC}-{number}" for number in range(shape.topics)]
    for start in range(0, len(names), _CREATED_AT_ONCE):
        wire.create_topics(connection, names[start : start + _CREATED_AT_ONCE])


def _row(name: str, title: str, shape: Shape) -> Row:
    metrics = tuple(
        Metric(f"{phase}_{suffix}", unit, "lower")
        for phase in _PHASES
        for suffix, _, unit in _KINDS
    )
    return Row(name, title, metrics, run_own=_shape_row(shape), pairs_max=2, only="varve")


GROUP_SHAPE_ROWS: tuple[Row, ...] = (
    _row(
        "group-shape-848-1000x10",
        "1,000 KIP-848 groups of 10, all at once",
        Shape("consumer", 1000, 10, partitions=10),
    ),
    _row(
        "group-shape-848-10x1000",
        "10 KIP-848 groups of 1,000, all at once",
        Shape("consumer", 10, 1000, partitions=1000),
    ),
    _row(
        "group-shape-848-1x10000",
        "one KIP-848 group of 10,000 on 1,000 partitions",
        Shape("consumer", 1, 10_000, partitions=1000),
    ),
    _row(
        "group-shape-848-regex",
        "1,000 members of one KIP-848 group read 20,000 topics by a pattern",
        Shape("consumer", 1, 1000, topics=20_000),
    ),
    _row(
        "group-shape-classic-1000x10",
        "1,000 classic groups of 10, all at once",
        Shape("classic", 1000, 10, partitions=10),
    ),
    _row(
        "group-shape-classic-10x1000",
        "10 classic groups of 1,000, all at once",
        Shape("classic", 10, 1000, partitions=1000),
    ),
)
