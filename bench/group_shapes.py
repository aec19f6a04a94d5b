"""Ten thousand members in groups of every size, and a producer that wants its answers meanwhile.

Every member has a connection of its own, and all of them start together. What happens to them:

    forming    until every group is balanced       growth     more partitions, topics they do not
    steady     heartbeats                                     read, one that matches their pattern
    leaving    everybody at once                   again      forming as before, to be restarted
    loading    the broker has started anew         expiring   everybody's session ends

A producer on a connection of its own writes a hundred records a second to a topic of its own,
whether or not it was answered. Its latencies, and how long the loop was held at most
(`bench.loop_watch`), are taken from each of these phases.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench import group_wire, wire
from bench.coordinator_lookup import RETRIABLE, RETRY_S, find_coordinator
from bench.generator import GeneratorError, percentile
from bench.group_members import ClassicGroup, ClassicMember
from bench.group_wire import Subscription
from bench.loop_watch import LongestHold
from bench.modern_members import ModernMember, is_balanced
from bench.pipeline import Connection, Loop
from bench.process import cpu_seconds

_PROBE_INTERVAL_S = 0.01
_FORMING_S = 240.0
_LOOK_INTERVAL_S = 0.1
"""Looking at ten thousand members is work, too."""

PROBE_TOPIC = "probe"


@dataclass(frozen=True, slots=True)
class Shape:
    """`groups` of `members` each.

    They read a topic of `partitions`, or with `topics` so many topics with one partition each, by
    a pattern.
    """

    protocol: Literal["classic", "consumer"]
    groups: int
    members: int
    partitions: int = 1
    topics: int = 0

    @property
    def total(self) -> int:
        """Partitions of each group."""
        return self.topics or self.partitions


@dataclass(frozen=True, slots=True)
class ShapeLoad:
    """A shape on a broker; the topics are there already, and are named `topic` and a number."""

    host: str
    port: int
    pid: int
    shape: Shape
    topic: str
    watch_path: Path
    session_timeout_ms: int
    steady_s: float = 10.0

    @property
    def pattern(self) -> str:
        """What the groups subscribe to if they read many topics."""
        return f"{self.topic}-[0-9]+"


@dataclass(slots=True)
class Phase:
    """Figures of one phase."""

    seconds: float
    cpu_s: float
    produce_p99_ms: float
    produce_max_ms: float
    hold_ms: float
    hold_cpu_ms: float


class Phases:
    """Watches the broker while a phase lasts; `found` has the figures of those that are over."""

    def __init__(self, loop: Loop, load: ShapeLoad) -> None:
        self.loop, self.load = loop, load
        self.found: dict[str, Phase] = {}
        self._longest = LongestHold(load.watch_path)
        self._laps: list[float] = []
        batch = wire.record_batch([b"probe"])
        self._frame = wire.produce_frame(PROBE_TOPIC, 0, batch)
        self._connection = self.loop.connect(self.load.host, self.load.port, self._begin)

    def _begin(self) -> None:
        self._ask(time.perf_counter())

    def _ask(self, due: float) -> None:
        """Late when this process is: what counts is from when it went out."""
        sent = time.perf_counter()
        self._connection.send(self._frame, lambda _: self._laps.append(time.perf_counter() - sent))
        after = max(due, sent - 0.1) + _PROBE_INTERVAL_S
        self.loop.call_at(after, lambda: self._ask(after))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what the body does."""
        self._longest.take()
        self._laps.clear()
        begin, cpu_before = time.perf_counter(), cpu_seconds(self.load.pid)
        yield
        seconds = time.perf_counter() - begin
        self.loop.run_until(lambda: bool(self._laps), 60.0, "an answer to the producer")
        laps, hold = sorted(self._laps), self._longest.take()
        self.found[name] = Phase(
            seconds,
            cpu_seconds(self.load.pid) - cpu_before,
            percentile(laps, 0.99) * 1e3,
            laps[-1] * 1e3,
            hold.wall_s * 1e3,
            hold.cpu_s * 1e3,
        )

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        end = time.perf_counter() + seconds
        self.loop.run_until(lambda: time.perf_counter() > end, seconds + 60.0, "waiting")

    def wait_until(self, is_done: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Look now and then; whatever it looks at is large."""
        look_at = 0.0

        def is_found() -> bool:
            nonlocal look_at
            if time.perf_counter() < look_at:
                return False
            found = is_done()
            look_at = time.perf_counter() + _LOOK_INTERVAL_S
            return found

        self.loop.run_until(is_found, timeout_s, what)


class _Classic:
    def __init__(
        self, loop: Loop, load: ShapeLoad, name: str, connections: list[Connection]
    ) -> None:
        self._group = ClassicGroup(name, load.topic, load.shape.partitions)
        for connection in connections:
            ClassicMember(
                loop, connection, self._group, session_timeout_ms=load.session_timeout_ms
            ).start()

    def is_balanced(self, partitions: int) -> bool:
        return self._group.is_balanced(len(self._group.members))

    def leave(self) -> None:
        for member in self._group.members:
            member.leave()


class _Modern:
    def __init__(
        self, loop: Loop, load: ShapeLoad, name: str, connections: list[Connection]
    ) -> None:
        shape = load.shape
        subscription = (
            Subscription([], regex=load.pattern) if shape.topics else Subscription([load.topic])
        )
        self.members = [
            ModernMember(loop, connection, name, subscription) for connection in connections
        ]
        for member, connection in zip(self.members, connections, strict=True):
            find_coordinator(loop, connection, name, member.join)

    def is_balanced(self, partitions: int) -> bool:
        return is_balanced(self.members, partitions)

    def leave(self) -> None:
        for member in self.members:
            member.leave()


def live(load: ShapeLoad) -> dict[str, Phase]:
    """Everything up to the restart; the members are there when this returns."""
    loop, shape = Loop(), load.shape
    phases = Phases(loop, load)
    connections: list[Connection] = []
    standing: list[None] = []
    for _ in range(shape.groups * shape.members):
        connections.append(loop.connect(load.host, load.port, lambda: standing.append(None)))
        loop.run_until(lambda: len(standing) == len(connections), 60.0, "connecting")
    phases.wait(1.0)
    kind: type[_Classic | _Modern] = _Classic if shape.protocol == "classic" else _Modern
    groups: list[_Classic | _Modern] = []
    total = shape.total

    def form() -> None:
        groups.clear()
        for number in range(shape.groups):
            own = connections[number * shape.members : (number + 1) * shape.members]
            groups.append(kind(loop, load, group_name(load, number), own))
        phases.wait_until(lambda: all(g.is_balanced(total) for g in groups), _FORMING_S, "forming")

    with phases.phase("forming"):
        form()
    with phases.phase("steady"):
        phases.wait(load.steady_s)
    with phases.phase("growth"):
        total = _grow(load, phases, total)
        if shape.protocol == "consumer":
            phases.wait_until(
                lambda: all(g.is_balanced(total) for g in groups), _FORMING_S, "growing"
            )
    with phases.phase("leaving"):
        for group in groups:
            group.leave()
        loop.run_until(lambda: not any(c.in_flight for c in connections), 120.0, "leaving")
    with phases.phase("again"):
        form()
    loop.close()
    return phases.found


def _grow(load: ShapeLoad, phases: Phases, total: int) -> int:
    """Topics without readers, then more of what the groups read; how many partitions they have."""
    waiting = 0

    def send(key: int, version: int, body: bytes) -> None:
        nonlocal waiting
        waiting += 1
        connection.send(wire.frame(key, version, 0, body), on_answer)

    def on_answer(_: bytes) -> None:
        nonlocal waiting
        waiting -= 1

    connection = phases.loop.connect(load.host, load.port, lambda: None)
    for number in range(20):
        send(wire.CREATE_TOPICS, 4, wire.create_topics_body([f"other-{number}"]))
    if load.shape.topics:
        total += 1
        name = f"{load.topic}-{load.shape.topics}"
        send(wire.CREATE_TOPICS, 4, wire.create_topics_body([name]))
    else:
        total += load.shape.members
        send(wire.CREATE_PARTITIONS, 1, wire.create_partitions_body(load.topic, total))
    phases.loop.run_until(lambda: not waiting, 60.0, "topics")
    return total


def load_again(load: ShapeLoad) -> dict[str, Phase]:
    """What follows a restart: groups are loaded, then everybody's session ends."""
    loop = Loop()
    phases = Phases(loop, load)
    missing = {group_name(load, number) for number in range(load.shape.groups)}
    connection = loop.connect(load.host, load.port, lambda: None)

    def ask(group: str) -> None:
        def on_answer(answer: bytes) -> None:
            code = int.from_bytes(answer[-2:], "big")
            if code in RETRIABLE:
                loop.call_at(time.perf_counter() + RETRY_S, lambda: ask(group))
            elif code:
                raise GeneratorError(f"OffsetFetch {group}: error {code}")
            else:
                missing.discard(group)

        connection.send(group_wire.offset_fetch_frame(group, PROBE_TOPIC, [0], 0), on_answer)

    with phases.phase("loading"):
        for group in list(missing):
            ask(group)
        loop.run_until(lambda: not missing, 120.0, "loading")
    with phases.phase("expiring"):
        phases.wait(load.session_timeout_ms / 1000 + 5.0)
    loop.close()
    return phases.found


def group_name(load: ShapeLoad, number: int) -> str:
    """Of one of the groups."""
    return f"{load.topic}-group-{number}"
