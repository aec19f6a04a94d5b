"""Offset commits at a steady rate, and as many as a broker takes.

Each group has one classic member on its own connection, as a consumer has that commits after every
poll: generation and member id are checked for every commit. At a steady rate each commit is timed
from the moment it was due. Afterwards every group's last acknowledged offset is read back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import group_wire
from bench.generator import GeneratorError, percentile
from bench.group_members import ClassicGroup, ClassicMember
from bench.group_wire import CommitFrame
from bench.pipeline import Connection, Loop
from bench.process import cpu_seconds


@dataclass(frozen=True, slots=True)
class CommitLoad:
    """`rate_per_s` over all groups, or None: `window` commits in flight per group."""

    port: int
    pid: int
    topic: str
    groups: int
    duration_s: float
    rate_per_s: int | None
    partitions: int = 1
    """In every commit."""
    window: int = 32
    host: str = "127.0.0.1"


@dataclass(slots=True)
class CommitResult:
    """All commits were acknowledged without error, and the last of each group read back."""

    commits: int
    seconds: float
    broker_cpu_s: float
    p50_ms: float
    p99_ms: float
    behind_s: float
    """After the end of the load, until the last commit was answered."""
    generator_busy: float


class _Committer:
    """One group's only member, and what it has committed."""

    def __init__(self, loop: Loop, load: CommitLoad, name: str) -> None:
        self.group = ClassicGroup(name, load.topic, load.partitions)
        self.connection: Connection = loop.connect(
            load.host, load.port, lambda: self.member.start()
        )
        self.member = ClassicMember(loop, self.connection, self.group)
        self.sent = self.acknowledged = 0
        self.laps: list[float] = []
        self.good_answer = b""
        self.frame: CommitFrame | None = None
        self._partitions = range(load.partitions)

    def prepare(self) -> None:
        """The group is stable: its generation is known."""
        self.frame = CommitFrame.of(
            self.group.name,
            self.member.generation,
            self.member.member_id,
            self.group.topic,
            self._partitions,
        )

    def commit(self, due: float, then: Callable[[], None] | None = None) -> None:
        """Commit the next offset, which is the number of commits before it."""
        assert self.frame is not None
        offset = self.sent
        self.sent += 1

        def on_answer(answer: bytes) -> None:
            self.laps.append(time.perf_counter() - due)
            if offset != self.acknowledged:
                raise GeneratorError("commits answered out of order")
            # Answers of one group differ in their correlation id alone: reading one is enough.
            if answer[4:] != self.good_answer:
                errors = group_wire.commit_errors(answer)
                if errors:
                    raise GeneratorError(f"{self.group.name}: OffsetCommit errors {errors}")
                self.good_answer = answer[4:]
            self.acknowledged += 1
            if then is not None:
                then()

        self.connection.send(self.frame.filled(offset, offset), on_answer)

    def verify(self, loop: Loop) -> None:
        """What was acknowledged last is what the broker has."""
        found: list[dict[int, int]] = []
        frame = group_wire.offset_fetch_frame(
            self.group.name, self.group.topic, self._partitions, 0
        )
        self.connection.send(frame, lambda data: found.append(group_wire.fetched_offsets(data)))
        loop.run_until(lambda: bool(found), 30.0, "OffsetFetch")
        if found != [dict.fromkeys(self._partitions, self.acknowledged - 1)]:
            raise GeneratorError(
                f"{self.group.name}: {found[0]} fetched, {self.acknowledged - 1} was committed"
            )


def commit_offsets(load: CommitLoad) -> CommitResult:
    """Join, commit, read back, leave."""
    loop = Loop()
    committers = [_Committer(loop, load, f"{load.topic}-{n}") for n in range(load.groups)]
    loop.run_until(lambda: all(one.group.is_balanced(1) for one in committers), 60.0, "joining")
    for one in committers:
        one.prepare()
    cpu_before, own_before = cpu_seconds(load.pid), time.process_time()
    begin = time.perf_counter()
    end = begin + load.duration_s
    if load.rate_per_s is None:
        _saturate(loop, committers, load.window, end)
    else:
        _keep_pace(loop, committers, load.rate_per_s, begin, end)
    stopped = time.perf_counter()
    loop.run_until(lambda: all(one.acknowledged == one.sent for one in committers), 60.0, "commits")
    finished = time.perf_counter()
    own = time.process_time() - own_before
    cpu = cpu_seconds(load.pid) - cpu_before
    for one in committers:
        one.verify(loop)
        one.member.leave()
    loop.turn()
    loop.close()
    laps = sorted(lap for one in committers for lap in one.laps)
    return CommitResult(
        len(laps),
        finished - begin,
        cpu,
        percentile(laps, 0.5) * 1e3,
        percentile(laps, 0.99) * 1e3,
        finished - stopped,
        own / (finished - begin),
    )


def _keep_pace(
    loop: Loop, committers: list[_Committer], rate_per_s: int, begin: float, end: float
) -> None:
    """Groups in round-robin; a late request is timed from when it was due."""
    total = int((end - begin) * rate_per_s)
    count = 0
    while count < total:
        now = time.perf_counter()
        while count < total and (due := begin + count / rate_per_s) <= now:
            committers[count % len(committers)].commit(due)
            count += 1
        loop.turn(0.001)


def _saturate(loop: Loop, committers: list[_Committer], window: int, end: float) -> None:
    """Every answer makes room for another commit."""

    def again(one: _Committer) -> Callable[[], None]:
        def commit() -> None:
            now = time.perf_counter()
            if now < end:
                one.commit(now, commit)

        return commit

    for one in committers:
        commit = again(one)
        for _ in range(window):
            commit()
    while time.perf_counter() < end:
        loop.turn()
