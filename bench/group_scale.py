"""Ten thousand members of a thousand groups, and the latency of another client beside them.

Members share connections with members of other groups, as ten thousand ports are not to be had.
Groups form in rounds, because a parked JoinGroup keeps its connection waiting. Then all of them
heartbeat at the real interval while a connection of its own asks for Metadata. Whether a request
goes out never depends on an answer, so its time counts from the moment it is sent.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench import group_wire
from bench.coordinator_lookup import find_coordinator
from bench.generator import GeneratorError, percentile
from bench.group_members import ClassicGroup, ClassicMember
from bench.group_wire import Subscription
from bench.modern_members import ModernMember, is_balanced
from bench.pipeline import Connection, Loop
from bench.process import cpu_seconds, rss_bytes

_PROBE_INTERVAL_S = 0.01
_FORMING_S = 300.0


@dataclass(frozen=True, slots=True)
class ScaleLoad:
    """`groups` of `members` each on one topic with as many partitions as a group has members."""

    port: int
    pid: int
    topic: str
    protocol: Literal["classic", "consumer"]
    groups: int
    members: int
    groups_at_once: int
    """Form at the same time, and have connections of their own."""
    steady_s: float
    host: str = "127.0.0.1"


@dataclass(slots=True)
class ScaleResult:
    """Forming is until every group is balanced; steady is afterwards."""

    forming_s: float
    forming_cpu_s: float
    forming_metadata_p99_ms: float
    heartbeats_per_s: float
    heartbeat_p50_ms: float
    heartbeat_p99_ms: float
    metadata_p50_ms: float
    metadata_p99_ms: float
    cpu_percent: float
    rss_kb_per_member: float
    generator_busy: float


class _Probe:
    """Asks for Metadata of one topic, a hundred times a second, whether or not it was answered."""

    def __init__(self, loop: Loop, load: ScaleLoad) -> None:
        self.laps: list[float] = []
        self._loop = loop
        self._frame = group_wire.topic_id_frame(load.topic, 1)
        self._connection = loop.connect(load.host, load.port, self._begin)

    def _begin(self) -> None:
        self._ask(time.perf_counter())

    def _ask(self, due: float) -> None:
        sent = time.perf_counter()
        self._connection.send(self._frame, lambda _: self.laps.append(time.perf_counter() - sent))
        after = due + _PROBE_INTERVAL_S
        self._loop.call_at(after, lambda: self._ask(after))

    def take(self) -> list[float]:
        """The laps since the last call, in order of length."""
        laps, self.laps = sorted(self.laps), []
        return laps


class _ClassicScale:
    """A group of the classic protocol."""

    def __init__(
        self,
        loop: Loop,
        load: ScaleLoad,
        name: str,
        connections: list[Connection],
        laps: list[float],
    ) -> None:
        self._group = ClassicGroup(name, load.topic, load.members)
        for connection in connections:
            ClassicMember(loop, connection, self._group, laps=laps).start()

    def is_balanced(self) -> bool:
        return self._group.is_balanced(len(self._group.members))

    def leave(self) -> None:
        for member in self._group.members:
            member.leave()


class _ModernScale:
    """A group of the new protocol."""

    def __init__(
        self,
        loop: Loop,
        load: ScaleLoad,
        name: str,
        connections: list[Connection],
        laps: list[float],
    ) -> None:
        self._partitions = load.members
        subscription = Subscription([load.topic])
        self._members = [
            ModernMember(loop, connection, name, subscription, laps=laps)
            for connection in connections
        ]
        for member, connection in zip(self._members, connections, strict=True):
            find_coordinator(loop, connection, name, member.join)

    def is_balanced(self) -> bool:
        return is_balanced(self._members, self._partitions)

    def leave(self) -> None:
        for member in self._members:
            member.leave()


def measure_scale(load: ScaleLoad) -> ScaleResult:
    """Form all groups, watch them for a while, dissolve them."""
    loop = Loop()
    kind: Callable[..., _ClassicScale | _ModernScale] = (
        _ClassicScale if load.protocol == "classic" else _ModernScale
    )
    laps: list[float] = []
    rss_before, cpu_before = rss_bytes(load.pid), cpu_seconds(load.pid)
    begin, own_before = time.perf_counter(), time.process_time()
    probe = _Probe(loop, load)
    connections = _connect(loop, load)
    groups: list[_ClassicScale | _ModernScale] = []
    while len(groups) < load.groups:
        forming = []
        for position in range(min(load.groups_at_once, load.groups - len(groups))):
            first = position * load.members
            own = connections[first : first + load.members]
            name = f"{load.topic}-{len(groups) + position}"
            forming.append(kind(loop, load, name, own, laps))
        groups += forming
        waiting = list(forming)

        def is_formed(waiting: list[_ClassicScale | _ModernScale] = waiting) -> bool:
            while waiting and waiting[-1].is_balanced():
                waiting.pop()
            return not waiting

        loop.run_until(is_formed, _FORMING_S, "forming groups")
    forming_s = time.perf_counter() - begin
    forming_cpu = cpu_seconds(load.pid) - cpu_before
    forming_laps = probe.take()
    # A round of heartbeats, so that what the last groups still had to say is over.
    settle = time.perf_counter() + 6.0
    loop.run_until(lambda: time.perf_counter() > settle, 60.0, "settling")
    probe.take()
    laps.clear()
    cpu_before, own_before, begin = cpu_seconds(load.pid), time.process_time(), time.perf_counter()
    end = begin + load.steady_s
    loop.run_until(lambda: time.perf_counter() > end, load.steady_s + 60.0, "heartbeats")
    seconds = time.perf_counter() - begin
    cpu, own_cpu = cpu_seconds(load.pid) - cpu_before, time.process_time() - own_before
    heartbeats, metadata = sorted(laps), probe.take()
    if not all(group.is_balanced() for group in groups):
        raise GeneratorError("a group lost its balance while nothing happened")
    rss = rss_bytes(load.pid) - rss_before
    for group in groups:
        group.leave()
    loop.run_until(lambda: not any(c.in_flight for c in connections), 60.0, "leaving")
    loop.close()
    if not heartbeats:
        raise GeneratorError("no heartbeat was answered")
    return ScaleResult(
        forming_s,
        forming_cpu,
        percentile(forming_laps, 0.99) * 1e3,
        len(heartbeats) / seconds,
        percentile(heartbeats, 0.5) * 1e3,
        percentile(heartbeats, 0.99) * 1e3,
        percentile(metadata, 0.5) * 1e3,
        percentile(metadata, 0.99) * 1e3,
        cpu / seconds * 100,
        rss / (load.groups * load.members) / 1024,
        own_cpu / seconds,
    )


def _connect(loop: Loop, load: ScaleLoad) -> list[Connection]:
    """One after the other: released Kafka's accept queue is short."""
    connections: list[Connection] = []
    standing: list[None] = []
    for _ in range(load.groups_at_once * load.members):
        connections.append(loop.connect(load.host, load.port, lambda: standing.append(None)))
        loop.run_until(lambda: len(standing) == len(connections), 60.0, "connecting")
    return connections
