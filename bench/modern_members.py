"""Consumers of the new group protocol (KIP-848), as state machines on shared or own connections.

A member tells what it subscribes to once, and then only what it owns, whenever that changed:

    join (epoch 0) --> heartbeat every interval the broker names --> leave (epoch -1)
                          |       ^
      another assignment  v       |  at once: "I own this now"
                       give up what is not in it, take what is new

Giving up and taking takes no time here, so a member owns its assignment when it has sent the
heartbeat that says so; one that has not been answered yet counts as unsettled. This is how the
Java client and librdkafka behave: the acknowledgement never waits for the interval.

Source: KIP-848; Kafka's ConsumerHeartbeatRequestManager and AbstractMembershipManager.
"""

import time
import uuid
from dataclasses import dataclass

from bench import group_wire
from bench.coordinator_lookup import RETRIABLE, RETRY_S, find_coordinator
from bench.generator import GeneratorError
from bench.group_wire import Assignment, HeartbeatAnswer, Subscription
from bench.pipeline import Connection, Loop
from bench.process import cpu_seconds

UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH = 25, 110


class ModernMember:
    """One member; `laps` get the seconds of every heartbeat that says nothing new."""

    def __init__(
        self,
        loop: Loop,
        connection: Connection,
        group: str,
        subscription: Subscription,
        *,
        laps: list[float] | None = None,
    ) -> None:
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.owned: Assignment = {}
        self.is_settled = False
        self.has_left = False
        self.joins = 0
        self.interval_s = 0.0
        self._loop, self._connection = loop, connection
        self._group, self._subscription = group, subscription
        self._laps = laps
        self._number = 0
        self._beat = 0
        """Which heartbeat is the next: what was planned before another was sent is void."""

    @property
    def partitions(self) -> int:
        """How many it owns."""
        return sum(map(len, self.owned.values()))

    def join(self) -> None:
        """Also after having been fenced: then it owns nothing any more."""
        self.epoch, self.owned, self.is_settled = 0, {}, False
        self.joins += 1
        self._send(subscription=self._subscription, owned={})

    def leave(self) -> None:
        """Say goodbye; the answer is not waited for."""
        self.has_left, self.is_settled = True, False
        self.epoch = group_wire.LEAVING
        self._send()

    def _send(
        self,
        *,
        subscription: Subscription | None = None,
        owned: Assignment | None = None,
    ) -> None:
        self._number += 1
        self._beat += 1
        frame = group_wire.consumer_heartbeat_frame(
            self._group,
            self.member_id,
            self.epoch,
            self._number,
            subscription=subscription,
            owned=owned,
        )
        beat, sent = self._beat, time.perf_counter()
        is_plain = owned is None and not self.has_left

        def on_answer(answer: bytes) -> None:
            if self._laps is not None and is_plain:
                self._laps.append(time.perf_counter() - sent)
            if not self.has_left:
                self._on_answer(HeartbeatAnswer.read(answer), beat, sent)

        self._connection.send(frame, on_answer)

    def _on_answer(self, answer: HeartbeatAnswer, beat: int, sent: float) -> None:
        if answer.error_code in {UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH}:
            self.join()
            return
        if answer.error_code in RETRIABLE:
            self._loop.call_at(time.perf_counter() + RETRY_S, self.join)
            return
        if answer.error_code:
            raise GeneratorError(f"heartbeat: error {answer.error_code} {answer.error_message}")
        self.epoch, self.interval_s = answer.epoch, answer.interval_s
        if answer.assignment is not None and answer.assignment != self.owned:
            self.owned = answer.assignment
            self.is_settled = False
            self._send(owned=self.owned)
            return
        self.is_settled = True

        def next_heartbeat() -> None:
            if beat == self._beat and not self.has_left:
                self._send()

        self._loop.call_at(sent + self.interval_s, next_heartbeat)


def is_balanced(members: list[ModernMember], partitions: int) -> bool:
    """Whether every one is settled in the same epoch and each partition has one owner."""
    alive = [member for member in members if not member.has_left]
    if not all(member.is_settled for member in alive):
        return False
    if len({member.epoch for member in alive}) != 1:
        return False
    owned = [(topic, one) for m in alive for topic, some in m.owned.items() for one in some]
    return len(owned) == partitions == len(set(owned))


@dataclass(slots=True)
class ModernGroupResult:
    """Seconds until balanced, from the first connect and from the first leave."""

    join_s: float
    leave_s: float
    broker_cpu_join_s: float
    broker_cpu_leave_s: float
    joins: int
    """More than there are members when some had to join again."""
    generator_busy: float


def join_modern_group(
    host: str,
    port: int,
    pid: int,
    topic: str,
    partitions: int,
    group: str,
    members: int,
    stagger_s: float,
) -> ModernGroupResult:
    """Let `members` join, one every `stagger_s`; wait until balanced; then one leaves.

    Each has a connection of its own.
    """
    loop = Loop()
    subscription = Subscription([topic])
    everybody: list[ModernMember] = []

    def add() -> None:
        def start() -> None:
            find_coordinator(loop, connection, group, member.join)

        connection = loop.connect(host, port, start)
        member = ModernMember(loop, connection, group, subscription)
        everybody.append(member)

    cpu_0, own_0 = cpu_seconds(pid), time.process_time()
    begin = time.perf_counter()
    for index in range(members):
        loop.call_at(begin + index * stagger_s, add)
    loop.run_until(
        lambda: len(everybody) == members and is_balanced(everybody, partitions), 120.0, "joining"
    )
    join_s = time.perf_counter() - begin
    busy = (time.process_time() - own_0) / join_s
    cpu_1 = cpu_seconds(pid)
    epoch = max(member.epoch for member in everybody)
    everybody[0].leave()

    def is_balanced_again() -> bool:
        return (
            everybody[1].epoch > epoch
            and everybody[-1].epoch > epoch
            and is_balanced(everybody, partitions)
        )

    leave_s = loop.run_until(is_balanced_again, 120.0, "leaving")
    cpu_2 = cpu_seconds(pid)
    for member in everybody[1:]:
        member.leave()
    loop.turn()
    joins = sum(member.joins for member in everybody)
    loop.close()
    return ModernGroupResult(join_s, leave_s, cpu_1 - cpu_0, cpu_2 - cpu_1, joins, busy)
