"""Members of both protocols in any order, while their group goes from one to the other and back.

- No partition is owned by two members that the group knows in their present epoch or generation.
- What a member of a consumer group owns, the books give it.
- The log says what the memory says, and after a crash the group goes on from there.
- When everybody has gone on for long enough, every partition has an owner.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.consumer.consumer_group import ConsumerGroup
from protocol.error_codes import ErrorCode
from tests.effort import examples
from tests.harness.consumer_groups import comparable
from tests.harness.coordinator import run_without_loop
from tests.harness.groups import Parked, read_back
from tests.harness.migration import (
    PARTITIONS,
    Answered,
    MigrationHarness,
    Numbers,
    T,
    of_topic,
    partitions_of,
    wants,
)

NUMBERS = st.integers(0, 1)
REBALANCE_MS = 60_000


@dataclass
class Old:
    """A consumer of the classic protocol; a cooperative one keeps what it has while it joins."""

    instance: str | None
    is_cooperative: bool
    member_id: str = ""
    generation: int = -1
    owned: Numbers = ()
    leads: bool = False
    listed: tuple[str, ...] = ()
    join: Parked | None = None
    sync: Parked | None = None

    def forget(self) -> None:
        self.member_id, self.generation, self.owned = "", -1, ()
        self.join = self.sync = None


@dataclass
class New:
    """A consumer of the new protocol."""

    member_id: str
    instance: str | None
    epoch: int = 0
    owned: Numbers = ()
    told: Numbers = ()
    is_full: bool = False
    reply: Answered | None = None


class MigrationMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.h = MigrationHarness()
        self.old: dict[int, Old] = {}
        self.new: dict[int, New] = {}
        self.lives = 0

    # -- clients of the classic protocol --

    @rule(number=NUMBERS, is_static=st.booleans(), is_cooperative=st.booleans())
    def old_joins(self, number: int, is_static: bool, is_cooperative: bool) -> None:
        if number not in self.old:
            instance = f"i{number}" if is_static else None
            self._replace(self.new, instance)
            self.old[number] = Old(instance, is_cooperative)
        self._join(self.old[number])

    @staticmethod
    def _replace(clients: dict[int, Old] | dict[int, New], instance: str | None) -> None:
        """The process that had the instance id is gone when its successor starts."""
        for number in list(clients):
            if instance is not None and clients[number].instance == instance:
                del clients[number]

    def _join(self, client: Old) -> None:
        if client.join is not None or client.sync is not None:
            return
        if not client.is_cooperative:
            client.owned = ()
        client.join = self.h.join(
            client.member_id,
            instance=client.instance,
            protocols=wants(owned=client.owned),
            rebalance_ms=REBALANCE_MS,
        )
        self._hear()

    @rule(number=NUMBERS)
    def old_beats(self, number: int) -> None:
        client = self.old.get(number)
        if client is None or client.generation < 0 or client.join or client.sync:
            return
        code = self.h.heartbeat(client.member_id, client.generation, instance=client.instance)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join(client)
        elif code is ErrorCode.ILLEGAL_GENERATION:
            client.owned = ()
            self._join(client)
        elif code is not ErrorCode.NONE:
            client.forget()

    @rule(number=NUMBERS, is_polite=st.booleans())
    def old_goes(self, number: int, is_polite: bool) -> None:
        client = self.old.pop(number, None)
        if client is not None and is_polite and client.member_id and "g" in self.h.shard.groups:
            self.h.leave((client.member_id, client.instance))

    def _old_joined(self, client: Old, join: Parked) -> None:
        client.join = None
        if join.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = join.response.member_id
            self._join(client)
        elif join.error is ErrorCode.NONE:
            client.member_id = join.response.member_id
            client.generation = join.response.generation_id
            client.leads = join.response.leader == client.member_id
            client.listed = tuple(m.member_id for m in join.response.members)
            assignments = {}
            if client.leads:
                share = -(-PARTITIONS // max(len(client.listed), 1))
                assignments = {
                    m: of_topic(*range(PARTITIONS)[place * share : (place + 1) * share])
                    for place, m in enumerate(client.listed)
                }
            if join.response.skip_assignment:
                assignments = {}
            # Whoever leads gives what was somebody else's only to those who reported nothing.
            client.sync = self.h.sync(
                client.member_id, client.generation, assignments, instance=client.instance
            )
        elif join.error is not ErrorCode.REBALANCE_IN_PROGRESS:
            client.forget()

    def _old_synced(self, client: Old, sync: Parked) -> None:
        client.sync = None
        if sync.error is ErrorCode.NONE:
            client.owned = partitions_of(sync.response.assignment)
        elif sync.error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join(client)
        else:
            client.forget()

    # -- clients of the new protocol --

    @rule(number=NUMBERS, is_static=st.booleans())
    def new_joins(self, number: int, is_static: bool) -> None:
        if number not in self.new:
            self.lives += 1
            instance = f"i{number}" if is_static else None
            self._replace(self.old, instance)
            self.new[number] = New(f"new-{self.lives}", instance)
            self._beat(self.new[number])

    @rule(number=NUMBERS)
    def new_beats(self, number: int) -> None:
        if number in self.new:
            self._beat(self.new[number])

    @rule(number=NUMBERS)
    def new_misses_its_answer(self, number: int) -> None:
        client = self.new.get(number)
        if client is not None:
            self._beat(client, is_heard=False)

    def _beat(self, client: New, *, is_heard: bool = True) -> None:
        if client.reply is not None:
            if not is_heard:
                client.reply, client.is_full = None, True
            return
        fields: dict[str, Any] = {}
        if client.instance is not None:
            fields["instance_id"] = client.instance
        if client.is_full and client.epoch > 0:
            fields |= {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": ["t"]}
        client.reply = self.h.beat(client.member_id, client.epoch, owned=client.owned, **fields)
        client.is_full = False
        if not is_heard:
            client.reply, client.is_full = None, True
        self._hear()

    @rule(number=NUMBERS, epoch=st.sampled_from((-1, -2, 0)))
    def new_goes(self, number: int, epoch: int) -> None:
        """For good, for a while, or without a word."""
        client = self.new.pop(number, None)
        if client is not None and epoch and client.epoch > 0 and client.reply is None:
            if client.instance is None:
                self.h.beat(client.member_id, -1)
            else:
                self.h.beat(client.member_id, epoch, instance_id=client.instance)

    def _new_heard(self, client: New, reply: Answered) -> None:
        client.reply = None
        if reply.error is ErrorCode.NONE:
            client.epoch = reply.response.member_epoch
            if reply.partitions is not None:
                client.told = client.owned = reply.partitions
        elif reply.error is ErrorCode.NOT_COORDINATOR:
            client.is_full = True
        else:
            client.epoch, client.owned, client.told = 0, (), ()
            if reply.error is not ErrorCode.FENCED_MEMBER_EPOCH:
                self.lives += 1
                client.member_id = f"new-{self.lives}"

    # -- the world --

    @rule(ms=st.sampled_from((60, 1_100, 3_000, 9_000, 61_000)))
    def time_passes(self, ms: int) -> None:
        self.h.timer.advance(ms)
        self._hear()

    @rule()
    def crash(self) -> None:
        h = self.h
        h.shard.log.close()
        h.protocol.close()
        h.consumers.close()
        self._hear()
        h.shard, h.protocol, h.offsets = h.new_shard()
        run_without_loop(read_back(h.shard, h.protocol, h.log, h.clock))
        for group in h.shard.groups_of(ConsumerGroup):
            h.consumers.start_timers(group)
        for classic in h.shard.groups_of(ClassicGroup):
            for member in classic.members.values():
                member.session.set(member.session_timeout_ms)

    def _hear(self) -> None:
        for _ in range(10):
            for old in list(self.old.values()):
                if old.join is not None and not old.join.is_parked:
                    self._old_joined(old, old.join)
                if old.sync is not None and not old.sync.is_parked:
                    self._old_synced(old, old.sync)
            for new in list(self.new.values()):
                if new.reply is not None and not new.reply.is_parked:
                    self._new_heard(new, new.reply)

    @invariant()
    def promises_are_kept(self) -> None:
        self._hear()
        group = self.h.shard.groups.get("g")
        owners: list[int] = []
        if isinstance(group, ConsumerGroup):
            there = self.h.reloaded().group("g", ConsumerGroup)
            assert there is not None
            assert comparable(there) == comparable(group)
            for member_id, owned in self._owners(group):
                member = group.members[member_id]
                books = {*member.assigned.get(T, ()), *member.pending_revocation.get(T, ())}
                assert set(owned) <= books
                owners += owned
        elif isinstance(group, ClassicGroup) and group.state is ClassicGroupState.STABLE:
            found = self.h.reloaded().group("g", ClassicGroup)
            assert found is not None
            assert found.generation == group.generation
            assert {m.member_id: m.assignment for m in found.members.values()} == {
                m.member_id: m.assignment for m in group.members.values()
            }
            owners = [p for _, owned in self._owners(group) for p in owned]
        assert len(set(owners)) == len(owners)

    def _owners(self, group: ConsumerGroup | ClassicGroup) -> list[tuple[str, Numbers]]:
        """What clients own that the group knows, in the epoch that they are in."""
        found: list[tuple[str, Numbers]] = []
        for old in self.old.values():
            if old.member_id not in group.members or old.join or old.sync:
                continue
            if isinstance(group, ClassicGroup):
                is_current = old.generation == group.generation
            else:
                is_current = old.generation == group.members[old.member_id].member_epoch
            if is_current:
                found.append((old.member_id, old.owned))
        if isinstance(group, ConsumerGroup):
            found += [
                (new.member_id, new.owned)
                for new in self.new.values()
                if new.member_id in group.members
            ]
        return found

    def teardown(self) -> None:
        """Everybody goes on for long enough."""
        if not self.old and not self.new:
            return
        for _ in range(40):
            for number, old in list(self.old.items()):
                if old.generation < 0:
                    self._join(old)
                else:
                    self.old_beats(number)
            for number in list(self.new):
                self.new_beats(number)
            self.time_passes(3_000)
        self.promises_are_kept()
        owned = [p for o in self.old.values() for p in o.owned]
        owned += [p for n in self.new.values() for p in n.owned]
        assert sorted(owned) == list(range(PARTITIONS))


MigrationMachine.TestCase.settings = examples(40, steps=30)
TestMigrationMachine = MigrationMachine.TestCase
