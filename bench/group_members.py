"""A hundred consumers of one group (classic protocol), in one process that is not the bottleneck.

Each member has a connection of its own and behaves as a client library does:

    connect -> FindCoordinator -> JoinGroup -> (member id required) -> JoinGroup
            -> SyncGroup -> stable: Heartbeat every 3 s
                 ^                     |
                 +---- JoinGroup <-----+  REBALANCE_IN_PROGRESS

The group is balanced when every member is stable in one generation that holds all of them.

Source: KIP-62, KIP-394; Kafka's ConsumerCoordinator and AbstractCoordinator.
"""

import enum
import errno
import select
import socket
import struct
import time
from dataclasses import dataclass

from bench import wire
from bench.generator import GeneratorError
from bench.process import cpu_seconds

HEARTBEAT_INTERVAL_S = 3.0
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION = 79, 27, 25, 22
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR = 15, 14, 16
_RETRY = {COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR}


@dataclass(slots=True)
class GroupResult:
    """Seconds until balanced, from the first connect and from the first leave."""

    join_s: float
    leave_s: float
    broker_cpu_join_s: float
    broker_cpu_leave_s: float


class _State(enum.Enum):
    CONNECTING = enum.auto()
    FINDING = enum.auto()
    JOINING = enum.auto()
    SYNCING = enum.auto()
    STABLE = enum.auto()
    LEFT = enum.auto()


class _Member:
    def __init__(self, run: "_Run", index: int) -> None:
        self.run = run
        self.index = index
        self.member_id = ""
        self.generation = -1
        self.size = 0
        self.state = _State.CONNECTING
        self.next_heartbeat = 0.0
        self.retry_at = 0.0
        self.partitions = 0
        self.buffer = bytearray()
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = self.socket.connect_ex((run.host, run.port))
        if code not in (0, errno.EINPROGRESS):
            raise GeneratorError(f"connect: {errno.errorcode[code]}")

    def send(self, api_key: int, version: int, body: bytes) -> None:
        self.socket.sendall(wire.frame(api_key, version, self.index, body))

    def find(self) -> None:
        self.state = _State.FINDING
        self.send(wire.FIND_COORDINATOR, 2, wire.string(self.run.group) + b"\x00")

    def join(self) -> None:
        self.state = _State.JOINING
        subscription = struct.pack(">h", 1) + wire.array([wire.string(self.run.topic)])
        subscription += wire.blob(b"") + wire.array([])
        self.send(
            wire.JOIN_GROUP,
            5,
            wire.string(self.run.group)
            + struct.pack(">ii", 45_000, 60_000)
            + wire.string(self.member_id)
            + wire.string(None)
            + wire.string("consumer")
            + wire.array([wire.string("range") + wire.blob(subscription)]),
        )

    def sync(self, members: list[str]) -> None:
        self.state = _State.SYNCING
        assignments = []
        for position, member in enumerate(members):
            owned = range(position, self.run.partitions, len(members))
            assignment = struct.pack(">h", 1)
            assignment += wire.array(
                [wire.string(self.run.topic) + wire.array(struct.pack(">i", p) for p in owned)]
            )
            assignments.append(wire.string(member) + wire.blob(assignment + wire.blob(b"")))
        self.send(
            wire.SYNC_GROUP,
            3,
            wire.string(self.run.group)
            + struct.pack(">i", self.generation)
            + wire.string(self.member_id)
            + wire.string(None)
            + wire.array(assignments),
        )

    def heartbeat(self, now: float) -> None:
        self.next_heartbeat = now + HEARTBEAT_INTERVAL_S
        self.send(
            wire.HEARTBEAT,
            3,
            wire.string(self.run.group)
            + struct.pack(">i", self.generation)
            + wire.string(self.member_id)
            + wire.string(None),
        )

    def leave(self) -> None:
        self.state = _State.LEFT
        body = wire.string(self.run.group) + wire.string(self.member_id)
        self.send(wire.LEAVE_GROUP, 1, body)

    def on_readable(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise GeneratorError("the broker closed a member's connection")
        self.buffer += data
        while len(self.buffer) >= 4:
            (size,) = struct.unpack_from(">i", self.buffer)
            if len(self.buffer) < size + 4:
                return
            answer = wire.Reader(bytes(self.buffer[8 : size + 4]))
            del self.buffer[: size + 4]
            self._on_answer(answer)

    def _on_answer(self, answer: wire.Reader) -> None:
        if self.state is _State.LEFT:
            return
        answer.int32()  # throttle time, first in every answer used here
        code = answer.int16()
        if code in _RETRY:
            self.state = _State.FINDING
            self.retry_at = time.perf_counter() + 0.1
        elif self.state is _State.FINDING:
            self._expect(code, 0)
            self.join()
        elif self.state is _State.JOINING:
            self._on_joined(code, answer)
        elif self.state is _State.SYNCING:
            if code in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION):
                self.join()
                return
            self._expect(code, 0)
            self._on_assigned(answer.blob())
        elif code == REBALANCE_IN_PROGRESS:
            self.join()
        else:
            self._expect(code, 0)

    def _on_joined(self, code: int, answer: wire.Reader) -> None:
        if code == MEMBER_ID_REQUIRED:
            answer.int32()
            answer.string()
            answer.string()
            self.member_id = answer.string() or ""
            self.join()
            return
        if code == UNKNOWN_MEMBER_ID:
            self.member_id = ""
            self.join()
            return
        self._expect(code, 0)
        self.generation = answer.int32()
        answer.string()
        leader, self.member_id = answer.string(), answer.string() or ""
        members = []
        for _ in answer.times():
            members.append(answer.string() or "")
            answer.string()
            answer.blob()
        if leader == self.member_id:
            self.run.group_size[self.generation] = len(members)
        self.sync(members)

    def _on_assigned(self, assignment: bytes) -> None:
        reader = wire.Reader(assignment)
        reader.int16()
        self.partitions = 0
        for _ in reader.times():
            reader.string()
            count = len(reader.times_then_skip(4))
            self.partitions += count
        self.state = _State.STABLE
        self.next_heartbeat = time.perf_counter() + HEARTBEAT_INTERVAL_S

    def _expect(self, code: int, wanted: int) -> None:
        if code != wanted:
            raise GeneratorError(f"member {self.index}, {self.state.name}: error {code}")


class _Run:
    def __init__(
        self, host: str, port: int, topic: str, partitions: int, group: str, stagger_s: float
    ) -> None:
        self.host, self.port, self.topic, self.group = host, port, topic, group
        self.partitions = partitions
        self.stagger_s = stagger_s
        self.group_size: dict[int, int] = {}
        self.members: list[_Member] = []
        self.poll = select.epoll()
        self.by_fd: dict[int, _Member] = {}

    def add_member(self) -> None:
        member = _Member(self, len(self.members))
        self.members.append(member)
        self.by_fd[member.socket.fileno()] = member
        self.poll.register(member.socket.fileno(), select.EPOLLOUT)

    def is_balanced(self, count: int) -> bool:
        alive = [m for m in self.members if m.state is not _State.LEFT]
        if len(alive) != count or any(m.state is not _State.STABLE for m in alive):
            return False
        generations = {m.generation for m in alive}
        return (
            len(generations) == 1
            and self.group_size.get(generations.pop()) == count
            and sum(m.partitions for m in alive) == self.partitions
        )

    def turn(self) -> None:
        for fd, events in self.poll.poll(0.01):
            member = self.by_fd[fd]
            if member.state is _State.CONNECTING and events & select.EPOLLOUT:
                self.poll.modify(fd, select.EPOLLIN)
                # Requests are small and few: sending may block.
                member.socket.setblocking(True)
                member.find()
            elif events & select.EPOLLIN:
                member.on_readable()
            elif events & (select.EPOLLHUP | select.EPOLLERR):
                raise GeneratorError("the broker closed a member's connection")
        now = time.perf_counter()
        for member in self.members:
            if member.state is _State.STABLE and now >= member.next_heartbeat:
                member.heartbeat(now)
            elif member.retry_at and now >= member.retry_at:
                member.retry_at = 0.0
                member.find()

    def run_until_balanced(self, count: int, timeout_s: float = 120.0) -> float:
        begin = time.perf_counter()
        while not self.is_balanced(count):
            now = time.perf_counter()
            if now - begin > timeout_s:
                states = {m.state.name for m in self.members}
                raise GeneratorError(f"not balanced after {timeout_s} s: {states}")
            if len(self.members) < count and now - begin >= len(self.members) * self.stagger_s:
                self.add_member()
            self.turn()
        return time.perf_counter() - begin


def join_group(
    host: str,
    port: int,
    pid: int,
    topic: str,
    partitions: int,
    group: str,
    members: int,
    stagger_s: float,
) -> GroupResult:
    """Let `members` join, one every `stagger_s`; wait until balanced; then one leaves."""
    run = _Run(host, port, topic, partitions, group, stagger_s)
    cpu_0 = cpu_seconds(pid)
    join_s = run.run_until_balanced(members)
    cpu_1 = cpu_seconds(pid)
    run.members[0].leave()
    leave_s = run.run_until_balanced(members - 1)
    cpu_2 = cpu_seconds(pid)
    for member in run.members:
        if member.state is not _State.LEFT:
            member.leave()
    for member in run.members:
        member.socket.close()
    return GroupResult(join_s, leave_s, cpu_1 - cpu_0, cpu_2 - cpu_1)
