"""A share-partition against a model that keeps every record by itself."""

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.coordinator.persister import (
    ShareState,
)
from broker.share.delivery.acknowledgement_batches import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
)
from broker.share.delivery.in_flight import RecordState
from broker.share.state.batches import combine
from protocol.error_codes import ErrorCode as E
from protocol.internal.share_state import StateBatch
from tests.effort import examples
from tests.unit.broker.share.delivery.test_share_partition import LOCK_MS, Share, batches_of

MAX_DELIVERIES = 4
MAX_RECORDS = 100

MEMBERS = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from([GAP, ACCEPT, RELEASE, REJECT, RENEW])

AVAILABLE, ACQUIRED, DONE = "available", "acquired", "done"


class Record:
    """One record as the model has it."""

    def __init__(self) -> None:
        self.state = AVAILABLE
        self.count = 0
        self.member = ""
        self.until_ms = 0.0

    def give_back(self) -> None:
        self.state = DONE if self.count >= MAX_DELIVERIES else AVAILABLE
        self.member = ""


class SharePartitionMachine(RuleBasedStateMachine):
    """The log is endless, in batches of four records; the state is kept as it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[int, Record] = {}
        self.written: dict[int, tuple[int, int]] = {}
        self.log_start = 0
        self.now_ms = 0.0
        self.share = Share(max_deliveries=MAX_DELIVERIES, max_records=MAX_RECORDS).begin()
        self.seen_writes = 0

    @property
    def start(self) -> int:
        return self.share.partition.start_offset

    # -- what is done ----------------------------------------------------------------------------

    @rule(member=MEMBERS, count=st.integers(1, 12), exact=st.booleans(), size=st.integers(1, 9))
    def acquire(self, member: str, count: int, exact: bool, size: int) -> None:
        p = self.share.partition
        if not p.can_acquire():
            assert p.in_flight >= MAX_RECORDS
            return
        offset = p.next_fetch_offset()
        base = max(offset // 4 * 4, self.log_start)
        sizes = [4 - base % 4, *[4] * 5]
        acquired = self.share.acquire(
            batches_of(*sizes, base=base),
            member,
            max_records=count,
            batch_size=size,
            is_exact=exact,
        )
        taken = 0
        for first, last, deliveries in acquired:
            for at in range(first, last + 1):
                record = self.records.setdefault(at, Record())
                assert record.state == AVAILABLE, at
                record.state, record.member = ACQUIRED, member
                record.count += 1
                record.until_ms = self.now_ms + LOCK_MS
                assert record.count == deliveries
                taken += 1
        assert acquired, "something was available"
        assert acquired[0].first <= offset <= acquired[-1].last or exact
        if exact:
            assert taken <= count

    @precondition(lambda self: self.records)
    @rule(data=st.data(), member=MEMBERS, kind=KINDS, fails=st.booleans())
    def acknowledge(self, data: Any, member: str, kind: int, fails: bool) -> None:
        highest = max(self.records)
        lowest = max(self.start - 3, 0)
        first = data.draw(st.integers(min(lowest, highest), highest))
        last = data.draw(st.integers(first, min(first + 6, highest + 2)))
        mine = sorted(
            at for at, r in self.records.items() if r.state == ACQUIRED and at >= self.start
        )
        if mine and data.draw(st.integers(0, 3)):
            # Else members would nearly always be told that it is not theirs.
            first = last = data.draw(st.sampled_from(mine))
            member = self.records[first].member
            for at in range(first + 1, first + data.draw(st.integers(1, 5))):
                if at in mine and self.records[at].member == member:
                    last = at
                else:
                    break
        mixed = data.draw(st.booleans())
        types = (
            [kind]
            if not mixed
            else data.draw(st.lists(KINDS, min_size=last - first + 1, max_size=last - first + 1))
        )
        self.share.persister.write_code = E.COORDINATOR_NOT_AVAILABLE if fails else E.NONE
        start = self.start
        code = self.share.outcome(
            self.share.partition.acknowledge, member, [Acknowledgement(first, last, types)]
        )
        self.share.persister.write_code = E.NONE
        concerned = range(max(first, start), last + 1)
        known = [self.records.get(at) for at in concerned]
        if last < start:
            assert code is E.NONE
            return
        if any(r is None or r.state != ACQUIRED or r.member != member for r in known):
            assert code in (E.INVALID_RECORD_STATE, E.INVALID_REQUEST)
            return
        kinds = types * len(concerned) if len(types) == 1 else types[concerned[0] - first :]
        for record, said in zip(known, kinds, strict=False):
            assert record is not None
            if said == RENEW:
                record.until_ms = self.now_ms + LOCK_MS
        if set(kinds) == {RENEW}:
            assert code is E.NONE
            return
        if fails:
            assert code is E.COORDINATOR_NOT_AVAILABLE
            return
        assert code is E.NONE
        for record, said in zip(known, kinds, strict=False):
            assert record is not None
            if said == RELEASE:
                record.give_back()
            elif said != RENEW:
                record.state, record.member = DONE, ""

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        start = self.start
        assert self.share.outcome(self.share.partition.release, member) is E.NONE
        for at, record in self.records.items():
            if at >= start and record.state == ACQUIRED and record.member == member:
                record.give_back()

    @rule(ms=st.sampled_from([1, LOCK_MS // 3, LOCK_MS]))
    def wait(self, ms: int) -> None:
        self.share.timer.advance(ms)
        self.now_ms += ms
        for record in self.records.values():
            if record.state == ACQUIRED and record.until_ms <= self.now_ms:
                record.give_back()

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def delete_records(self, data: Any) -> None:
        offset = data.draw(st.integers(self.log_start, max(self.records) + 2))
        self.log_start = max(offset, self.log_start)
        self.share.partition.raise_log_start(offset)

    @rule()
    def crash(self) -> None:
        """Only what was written is known; the rest is as new."""
        start = max([0, *(write[0] for write in self.share.persister.writes)])
        self._take_writes()
        batches = combine(
            [], [StateBatch(at, at, *self.written[at]) for at in sorted(self.written)], start
        )
        before = self.share
        self.share = Share(max_deliveries=MAX_DELIVERIES, max_records=MAX_RECORDS)
        self.share.timer.clock.advance(before.timer.clock.monotonic_ms())
        self.share.persister.writes = [(start, 0, [])]
        self.share.begin(ShareState(0, start, batches))
        self.seen_writes = 1
        self.share.partition.raise_log_start(self.log_start)
        for at in list(self.records):
            state, count = self.written.get(at, (0, 0))
            record = self.records[at] = Record()
            record.count = count
            record.state = AVAILABLE if state == RecordState.AVAILABLE else DONE
            if at >= self.share.partition.end_offset:
                del self.records[at]

    def _take_writes(self) -> None:
        """As the coordinator does: of two the later delivery is right, and of equals the end."""
        for _, _, batches in self.share.persister.writes[self.seen_writes :]:
            for batch in batches:
                for at in range(batch.first_offset, batch.last_offset + 1):
                    new = batch.delivery_count, batch.delivery_state
                    old = self.written.get(at, (0, 0))
                    count, state = max(new, (old[1], old[0]))
                    self.written[at] = (state, count)
        self.seen_writes = len(self.share.persister.writes)

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def states_are_the_models(self) -> None:
        shown = {}
        for run in self.share.partition.runs:
            for at in range(run.first, run.last + 1):
                shown[at] = run
        for at, run in shown.items():
            record = self.records.get(at) or Record()
            state = DONE if run.state.is_terminal else run.state.name.lower()
            assert (state, run.member_id) == (record.state, record.member), at
            assert run.delivery_count == record.count or state == DONE, at
        for at, record in self.records.items():
            if at < self.start:
                assert record.state == DONE or at < self.log_start, at
            elif at not in shown:
                assert record.state == DONE, at

    @invariant()
    def start_is_the_first_that_is_not_done(self) -> None:
        runs = self.share.partition.runs
        if runs:
            assert not runs[0].state.is_terminal
            assert runs[0].first == self.start
        assert self.start <= self.share.partition.end_offset

    @invariant()
    def runs_are_sorted_and_apart(self) -> None:
        runs = self.share.partition.runs
        assert all(run.first <= run.last for run in runs)
        assert all(a.last < b.first for a, b in pairwise(runs))

    @invariant()
    def no_lock_outlives_its_records(self) -> None:
        locks = {id(run.lock) for run in self.share.partition.runs if run.lock is not None}
        assert self.share.timer.pending == len(locks)
        for run in self.share.partition.runs:
            assert (run.lock is not None) == (run.state is RecordState.ACQUIRED)


SharePartitionMachine.TestCase.settings = examples(60, steps=40)
TestSharePartition = SharePartitionMachine.TestCase
