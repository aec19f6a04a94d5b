"""A hundred consumers of one group (classic protocol), in one process that is not the bottleneck.

Each member behaves as a client library does:

    FindCoordinator -> JoinGroup -> (member id required) -> JoinGroup
            -> SyncGroup -> stable: Heartbeat every 3 s
                 ^                     |
                 +---- JoinGroup <-----+  REBALANCE_IN_PROGRESS

The group is balanced when every member is stable in one generation that holds all of them.

Source: KIP-62, KIP-394; Kafka's ConsumerCoordinator and AbstractCoordinator.
"""

import enum
import time
from dataclasses import dataclass

from bench import group_wire
from bench.coordinator_lookup import RETRIABLE, RETRY_S, find_coordinator
from bench.generator import GeneratorError
from bench.pipeline import Connection, Loop
from bench.process import cpu_seconds

HEARTBEAT_INTERVAL_S = 3.0
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION = 79, 27, 25, 22


class MemberState(enum.Enum):
    """What a member waits for."""

    FINDING = enum.auto()
    JOINING = enum.auto()
    SYNCING = enum.auto()
    STABLE = enum.auto()
    LEFT = enum.auto()


class ClassicGroup:
    """What the members of one group have in common; `sizes` is what leaders saw."""

    def __init__(self, name: str, topic: str, partitions: int) -> None:
        self.name, self.topic, self.partitions = name, topic, partitions
        self.sizes: dict[int, int] = {}
        self.members: list[ClassicMember] = []

    def is_balanced(self, count: int) -> bool:
        """Whether `count` members, all that have not left, share the topic in one generation."""
        alive = [m for m in self.members if m.state is not MemberState.LEFT]
        if len(alive) != count or any(m.state is not MemberState.STABLE for m in alive):
            return False
        generations = {m.generation for m in alive}
        return (
            len(generations) == 1
            and self.sizes.get(generations.pop()) == count
            and sorted(one for m in alive for one in m.partitions) == list(range(self.partitions))
        )


class ClassicMember:
    """One member; `laps` get the seconds until every heartbeat was answered."""

    def __init__(
        self,
        loop: Loop,
        connection: Connection,
        group: ClassicGroup,
        *,
        laps: list[float] | None = None,
        session_timeout_ms: int = 45_000,
    ) -> None:
        self.member_id = ""
        self.generation = -1
        self.state = MemberState.FINDING
        self.partitions: list[int] = []
        self._loop, self._connection, self._group = loop, connection, group
        self._laps = laps
        self._session_timeout_ms = session_timeout_ms
        self._number = len(group.members)
        self._is_beating = False
        group.members.append(self)

    def start(self) -> None:
        """Find the coordinator and join."""
        self.state = MemberState.FINDING
        find_coordinator(self._loop, self._connection, self._group.name, self.join)

    def join(self) -> None:
        """Join, or join again."""
        self.state = MemberState.JOINING
        frame = group_wire.join_frame(
            self._group.name,
            self.member_id,
            self._group.topic,
            self._number,
            session_timeout_ms=self._session_timeout_ms,
        )
        self._connection.send(frame, self._on_joined)

    def leave(self) -> None:
        """Say goodbye; the answer is not waited for."""
        self.state = MemberState.LEFT
        frame = group_wire.classic_leave_frame(self._group.name, self.member_id, self._number)
        self._connection.send(frame, lambda _: None)

    def _on_joined(self, data: bytes) -> None:
        if self.state is not MemberState.JOINING:
            return
        answer = group_wire.Joined.read(data)
        if answer.error_code == MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.join()
        elif not self._goes_on(answer.error_code):
            return
        else:
            self.generation, self.member_id = answer.generation, answer.member_id
            self._sync(answer)

    def _sync(self, answer: group_wire.Joined) -> None:
        self.state = MemberState.SYNCING
        owned = {}
        if answer.leader == self.member_id:
            count = len(answer.members)
            self._group.sizes[self.generation] = count
            owned = {
                member: range(position, self._group.partitions, count)
                for position, member in enumerate(answer.members)
            }
        frame = group_wire.sync_frame(
            self._group.name,
            self.generation,
            self.member_id,
            self._number,
            topic=self._group.topic,
            owned=owned,
        )
        self._connection.send(frame, self._on_synced)

    def _on_synced(self, data: bytes) -> None:
        if self.state is not MemberState.SYNCING:
            return
        code, partitions = group_wire.assigned_partitions(data)
        if not self._goes_on(code):
            return
        self.partitions = partitions
        self.state = MemberState.STABLE
        self._plan_heartbeat(time.perf_counter())

    def _plan_heartbeat(self, now: float) -> None:
        """At most one is planned; a member that rejoins keeps the beat it had."""
        if not self._is_beating:
            self._is_beating = True
            due = now + HEARTBEAT_INTERVAL_S
            self._loop.call_at(due, lambda: self._heartbeat(due))

    def _heartbeat(self, due: float) -> None:
        self._is_beating = False
        if self.state is not MemberState.STABLE:
            return
        frame = group_wire.classic_heartbeat_frame(
            self._group.name, self.generation, self.member_id, self._number
        )
        generation, sent = self.generation, time.perf_counter()

        def on_answer(data: bytes) -> None:
            if self._laps is not None:
                self._laps.append(time.perf_counter() - sent)
            if self.state is MemberState.STABLE and generation == self.generation:
                self._goes_on(group_wire.plain_error(data))

        self._connection.send(frame, on_answer)
        self._plan_heartbeat(due)

    def _goes_on(self, code: int) -> bool:
        """Whether there was no error; otherwise does what a client does about it."""
        if not code:
            return True
        if code in RETRIABLE:
            self.state = MemberState.FINDING
            self._loop.call_at(time.perf_counter() + RETRY_S, self.start)
        elif code in {REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION}:
            self.join()
        elif code == UNKNOWN_MEMBER_ID:
            self.member_id = ""
            self.join()
        else:
            raise GeneratorError(f"member {self._number}, {self.state.name}: error {code}")
        return False


@dataclass(slots=True)
class GroupResult:
    """Seconds until balanced, from the first connect and from the first leave."""

    join_s: float
    leave_s: float
    broker_cpu_join_s: float
    broker_cpu_leave_s: float
    generations: int
    """How many there were until the group was balanced for the first time."""
    generator_busy: float


def join_group(
    host: str,
    port: int,
    pid: int,
    topic: str,
    partitions: int,
    name: str,
    members: int,
    stagger_s: float,
) -> GroupResult:
    """Let `members` join, one every `stagger_s`; wait until balanced; then one leaves.

    Each has a connection of its own.
    """
    loop = Loop()
    group = ClassicGroup(name, topic, partitions)

    def add() -> None:
        connection = loop.connect(host, port, lambda: member.start())
        member = ClassicMember(loop, connection, group)

    cpu_0, own_0 = cpu_seconds(pid), time.process_time()
    begin = time.perf_counter()
    for index in range(members):
        loop.call_at(begin + index * stagger_s, add)
    loop.run_until(lambda: group.is_balanced(members), 120.0, f"joining {name}")
    join_s = time.perf_counter() - begin
    busy = (time.process_time() - own_0) / join_s
    cpu_1 = cpu_seconds(pid)
    generations = len(group.sizes)
    group.members[0].leave()
    leave_s = loop.run_until(lambda: group.is_balanced(members - 1), 120.0, f"leaving {name}")
    cpu_2 = cpu_seconds(pid)
    for member in group.members[1:]:
        member.leave()
    loop.turn()
    loop.close()
    return GroupResult(join_s, leave_s, cpu_1 - cpu_0, cpu_2 - cpu_1, generations, busy)
