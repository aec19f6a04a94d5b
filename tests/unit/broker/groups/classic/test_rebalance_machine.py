"""The classic protocol against what must always hold, whatever clients do.

Members join, sync, send heartbeats, leave, fall silent, come back under their instance id; the log
fails now and then, or commits late; time passes in steps. After every step:

- A member that was answered has the assignment its leader made for that very generation.
- All members that hold one generation hold it of one leader; generations only grow.
- Nobody is removed before its timeout unless it left, was replaced, or did not come in time.
- Nobody waits for ever: once clients keep quiet, everything parked is answered within the longest
  timeouts, and the log read back is the state that was acknowledged.
"""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from protocol.error_codes import ErrorCode
from tests.effort import examples
from tests.harness.groups import Harness, Parked

SESSION_MS = 10_000
REBALANCE_MS = 20_000
CLIENTS = 4
FATAL = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
)


@dataclass
class Client:
    """A consumer as the protocol wants it, that may fall silent at any time."""

    number: int
    instance: str | None
    member_id: str = ""
    generation: int = -1
    leads: bool = False
    listed: tuple[str, ...] = ()
    join: Parked | None = None
    sync: Parked | None = None
    assignment: bytes | None = None
    last_seen_ms: float = 0.0

    def forget(self) -> None:
        """Start over as somebody new."""
        self.member_id = ""
        self.generation = -1
        self.leads = False
        self.assignment = None


class RebalanceMachine(RuleBasedStateMachine):
    """Four clients, two of them static."""

    def __init__(self) -> None:
        super().__init__()
        self.h = Harness()
        self.clients = [
            Client(number, f"i{number}" if number < 2 else None) for number in range(CLIENTS)
        ]
        self.highest_generation = 0
        self.has_lost_writes = False

    def _poll(self) -> None:
        """Let clients read the answers that have come."""
        for client in self.clients:
            if client.join is not None and not client.join.is_parked:
                self._joined(client, client.join)
                client.join = None
            if client.sync is not None and not client.sync.is_parked:
                self._synced(client, client.sync)
                client.sync = None

    def _joined(self, client: Client, join: Parked) -> None:
        response = join.response
        if join.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = response.member_id
            return
        if join.error is not ErrorCode.NONE:
            if join.error in FATAL:
                client.forget()
            return
        client.member_id = response.member_id
        client.generation = response.generation_id
        client.leads = response.leader == response.member_id
        client.listed = tuple(m.member_id for m in response.members)
        client.last_seen_ms = self.h.clock.monotonic_ms()
        assert not client.leads or client.member_id in client.listed

    def _synced(self, client: Client, sync: Parked) -> None:
        if sync.error is ErrorCode.NONE:
            client.assignment = sync.response.assignment
            client.last_seen_ms = self.h.clock.monotonic_ms()
            own = f"{client.generation}:{client.member_id}".encode()
            if client.instance is None:
                # Empty when its leader did not know of it.
                assert client.assignment in (b"", own)
            else:
                # It may have taken over the assignment of a former member id.
                generation = f"{client.generation}:{client.instance}-".encode()
                assert client.assignment == b"" or client.assignment.startswith(generation)
        elif sync.error in FATAL:
            client.forget()

    @rule(number=st.integers(0, CLIENTS - 1), metadata=st.sampled_from([b"1", b"2"]))
    def join(self, number: int, metadata: bytes) -> None:
        client = self.clients[number]
        client.join = self.h.join(
            client.member_id,
            instance=client.instance,
            protocols=(("range", metadata), ("other", b"")),
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
        )
        client.assignment = None
        self._poll()

    @rule(number=st.integers(0, CLIENTS - 1))
    def sync(self, number: int) -> None:
        client = self.clients[number]
        if client.generation < 0 or client.join is not None:
            return
        assignments = {}
        if client.leads:
            assignments = {m: f"{client.generation}:{m}".encode() for m in client.listed}
        client.sync = self.h.sync(
            client.member_id, client.generation, assignments, instance=client.instance
        )
        self._poll()

    @rule(numbers=st.sets(st.integers(0, CLIENTS - 1), min_size=1))
    def whole_round(self, numbers: set[int]) -> None:
        """Some clients do what clients do: join, wait, sync."""
        for _ in range(2):
            for number in numbers:
                if self.clients[number].join is None:
                    self.join(number, b"1")
        self.time(3_000)
        for number in numbers:
            self.sync(number)

    @rule(number=st.integers(0, CLIENTS - 1))
    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        if client.generation < 0:
            return
        code = self.h.heartbeat(client.member_id, client.generation, instance=client.instance)
        if code in FATAL:
            client.forget()
        elif code is not ErrorCode.ILLEGAL_GENERATION:
            client.last_seen_ms = self.h.clock.monotonic_ms()

    @rule(number=st.integers(0, CLIENTS - 1))
    def leave(self, number: int) -> None:
        client = self.clients[number]
        if client.member_id and "g" in self.h.shard.groups:
            self.h.leave((client.member_id, client.instance))
            self._poll()
            client.forget()

    @rule(number=st.integers(0, CLIENTS - 1))
    def crash(self, number: int) -> None:
        """The process is gone; a new one knows its instance id at most."""
        client = self.clients[number]
        client.join = client.sync = None
        client.forget()

    @rule(ms=st.sampled_from([1, 1_000, 3_000, 9_999, 20_000]))
    def time(self, ms: int) -> None:
        self.h.timer.advance(ms)
        self._poll()

    @rule(code=st.sampled_from([None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def log_fails(self, code: ErrorCode | None) -> None:
        self.h.log.fail_with = code
        self.has_lost_writes |= code is not None

    @rule(hold=st.booleans())
    def log_is_slow(self, hold: bool) -> None:
        self.h.log.hold = hold
        if not hold:
            self.h.log.commit_held()
            self._poll()

    @rule()
    def held_writes_fail(self) -> None:
        self.has_lost_writes |= bool(self.h.log.held)
        self.h.log.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
        self._poll()

    @invariant()
    def group_is_sound(self) -> None:
        group = self.h.shard.group("g", ClassicGroup)
        if group is None:
            return
        assert group.generation >= self.highest_generation
        self.highest_generation = group.generation
        assert group.awaiting_join == sum(m.join_reply is not None for m in group.members.values())
        assert group.pending_sync <= set(group.members)
        assert set(group.static_members.values()) == {
            m.member_id for m in group.members.values() if m.group_instance_id is not None
        }
        assert (group.leader_id is None) == (not group.members)
        assert group.leader_id is None or group.leader_id in group.members
        if group.state is ClassicGroupState.EMPTY:
            assert not group.members
        elif group.state is ClassicGroupState.PREPARING_REBALANCE:
            # Somebody or something will end it.
            assert group.join_timer is not None
            assert all(m.sync_reply is None for m in group.members.values())
        else:
            assert group.members
            assert group.protocol_name in ("range", "other")
            if group.state is ClassicGroupState.STABLE:
                assert all(m.sync_reply is None for m in group.members.values())
        for member in group.members.values():
            # A member without a session timer would stay for ever, unless it is excused.
            assert member.session.pending or member.has_satisfied_heartbeat

    @invariant()
    def one_generation_has_one_leader(self) -> None:
        group = self.h.shard.group("g", ClassicGroup)
        if group is None:
            return
        leaders = {
            c.member_id
            for c in self.clients
            if c.leads and c.generation == group.generation and c.member_id in group.members
        }
        assert len(leaders) <= 1

    @invariant()
    def nobody_is_lost_before_its_time(self) -> None:
        """A synced member of the present generation that was heard of stays, though idle."""
        group = self.h.shard.group("g", ClassicGroup)
        if group is None or group.state is not ClassicGroupState.STABLE:
            return
        now_ms = self.h.clock.monotonic_ms()
        for client in self.clients:
            if (
                client.generation == group.generation
                and client.assignment is not None
                and now_ms - client.last_seen_ms < SESSION_MS - 1
                and (client.instance is None or client.instance in group.static_members)
                and (
                    client.instance is None
                    or group.static_members[client.instance] == client.member_id
                )
            ):
                assert client.member_id in group.members

    @precondition(lambda self: "g" in self.h.shard.groups)
    @rule()
    def silence_ends_every_wait(self) -> None:
        """Everybody falls silent: all that was parked is answered and the group ends empty."""
        self.h.log.fail_with = None
        self.h.log.hold = False
        self.h.log.commit_held()
        self.h.timer.advance(5 * 60_000 + 4 * (REBALANCE_MS + SESSION_MS))
        for client in self.clients:
            assert client.join is None or not client.join.is_parked
            assert client.sync is None or not client.sync.is_parked
            client.join = client.sync = None
            client.forget()
        group = self.h.group()
        assert group.state is ClassicGroupState.EMPTY
        assert not group.pending_members
        assert self.h.timer.pending == 0
        # That a group is empty is only recorded, not insisted on: a lost write leaves the former
        # generation in the log, whose members time out after a restart (as in Kafka).
        reloaded = self.h.reloaded().group("g", ClassicGroup)
        if reloaded is not None and not self.has_lost_writes:
            assert reloaded.state is ClassicGroupState.EMPTY
            assert reloaded.generation == group.generation


RebalanceMachine.TestCase.settings = examples(150, steps=40)
TestRebalance = RebalanceMachine.TestCase
