"""Who may work on which record: acquired, acknowledged, released, given up."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from broker.coordinator.persister import (
    SharePartitionKey,
    ShareState,
)
from broker.runtime.watchers import Waker
from broker.share.delivery.acknowledgement_batches import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
)
from broker.share.delivery.delayed_share_fetch import DelayedShareFetch
from broker.share.delivery.fetched_batches import FetchedBatch
from broker.share.delivery.in_flight import RecordState
from broker.share.delivery.share_partition import (
    Acquired,
    DeliveryLimits,
    SharePartition,
    SharePartitionState,
)
from protocol.error_codes import ErrorCode as E
from protocol.internal.share_state import StateBatch
from tests.fakes.broker.partition_persister import FakePersister
from tests.fakes.timer import ManualTimer

KEY = SharePartitionKey("group", UUID(int=1), 0)
LOCK_MS = 30_000


def batches_of(*sizes: int, base: int = 0) -> list[FetchedBatch]:
    """Batches of so many records, one after the other."""
    found = []
    for size in sizes:
        found.append(FetchedBatch(base, base + size - 1, 0, 100, -1, False, False))
        base += size
    return found


class Share:
    """A share-partition with its surroundings."""

    def __init__(self, **more: Any) -> None:
        self.timer = ManualTimer()
        self.persister = FakePersister()
        self.partition = SharePartition(
            KEY,
            leader_epoch=3,
            limits=DeliveryLimits(more.get("max_deliveries", 5), more.get("max_records", 2000)),
            lock_ms=lambda: LOCK_MS,
            choose_offset=more.get("choose_offset", lambda done: done(E.NONE, 7)),
            persister=self.persister,
            timer=self.timer,
            waker=Waker(lambda _callback: None, self.timer.clock),
        )

    def begin(self, state: ShareState | None = None) -> "Share":
        if state is not None:
            self.persister.state = state
        assert self.outcome(self.partition.initialize) is E.NONE
        return self

    @staticmethod
    def outcome(call: Callable[..., None], *args: Any) -> E | None:
        codes: list[E] = []
        call(*args, codes.append)
        assert len(codes) <= 1
        return codes[0] if codes else None

    def acquire(
        self,
        batches: Sequence[FetchedBatch],
        member: str = "a",
        *,
        max_records: int = 500,
        batch_size: int = 500,
        **more: Any,
    ) -> list[Acquired]:
        return self.partition.acquire(
            member,
            batches,
            fetch_offset=self.partition.next_fetch_offset(),
            max_records=max_records,
            batch_size=batch_size,
            **more,
        )

    def say(self, kind: int | Sequence[int], first: int, last: int, member: str = "a") -> E | None:
        types = [kind] if isinstance(kind, int) else kind
        return self.outcome(
            self.partition.acknowledge, member, [Acknowledgement(first, last, types)]
        )

    def shown(self) -> list[tuple[int, int, str, int]]:
        """What is in flight."""
        return [(r.first, r.last, r.state.name, r.delivery_count) for r in self.partition.runs]

    @property
    def offsets(self) -> tuple[int, int, int]:
        p = self.partition
        return p.start_offset, p.end_offset, p.next_fetch_offset()


@pytest.fixture
def share() -> Share:
    return Share().begin()


# -- life ------------------------------------------------------------------------------------------


def test_state_is_read_before_anything_is_given_out() -> None:
    share = Share()
    assert share.partition.state is SharePartitionState.EMPTY
    assert not share.partition.can_acquire()
    assert share.acquire(batches_of(3)) == []
    share.begin()
    assert share.partition.is_active
    assert share.partition.can_acquire()


def test_start_offset_that_nobody_has_chosen() -> None:
    share = Share().begin(ShareState(0, -1, ()))
    assert share.offsets == (7, 7, 7)


def test_a_chosen_start_offset_is_written_before_anything_is_delivered() -> None:
    """The next leader would choose the end of then, behind what was acquired and not finished."""
    share = Share()
    share.persister.state = ShareState(4, -1, ())
    share.persister.hold = True
    assert share.outcome(share.partition.initialize) is None
    assert share.persister.writes == [(7, 0, [])]
    assert share.acquire(batches_of(3, base=7)) == []
    share.persister.answer()
    assert share.partition.is_active
    assert len(share.acquire(batches_of(3, base=7))) == 1
    assert share.persister.writes == [(7, 0, [])]


def test_a_known_start_offset_is_not_written_again() -> None:
    assert Share().begin(ShareState(4, 3, ())).persister.writes == []


def test_a_chosen_start_offset_that_is_not_written_is_none() -> None:
    share = Share()
    share.persister.state = ShareState(4, -1, ())
    share.persister.write_code = E.NOT_COORDINATOR
    assert share.outcome(share.partition.initialize) is E.COORDINATOR_NOT_AVAILABLE
    assert share.partition.state is SharePartitionState.FAILED
    assert share.acquire(batches_of(3, base=7)) == []


def test_a_share_partition_fenced_while_its_start_offset_is_written() -> None:
    share = Share()
    share.persister.state = ShareState(4, -1, ())
    share.persister.hold = True
    assert share.outcome(share.partition.initialize) is None
    share.partition.fence()
    share.persister.answer()
    assert share.partition.state is SharePartitionState.FENCED
    assert share.acquire(batches_of(3, base=7)) == []


def test_start_offset_that_cannot_be_chosen() -> None:
    share = Share(choose_offset=lambda done: done(E.NOT_LEADER_OR_FOLLOWER, -1))
    share.persister.state = ShareState(0, -1, ())
    assert share.outcome(share.partition.initialize) is E.NOT_LEADER_OR_FOLLOWER
    assert share.partition.state is SharePartitionState.FAILED


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE),
        (E.FENCED_LEADER_EPOCH, E.NOT_LEADER_OR_FOLLOWER),
        (E.INVALID_REQUEST, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_state_that_cannot_be_read(code: E, told: E) -> None:
    share = Share()
    share.persister.read_code = code
    assert share.outcome(share.partition.initialize) is told
    assert share.partition.state is SharePartitionState.FAILED
    assert not share.partition.can_acquire()


def test_state_with_holes_gives_out_what_was_in_work() -> None:
    share = Share().begin(
        ShareState(
            0, 10, (StateBatch(10, 11, 2, 1), StateBatch(15, 16, 4, 5), StateBatch(18, 18, 0, 2))
        )
    )
    assert share.shown() == [
        (12, 14, "AVAILABLE", 0),
        (15, 16, "ARCHIVED", 5),
        (17, 17, "AVAILABLE", 0),
        (18, 18, "AVAILABLE", 2),
    ]
    assert share.offsets == (12, 19, 12)
    assert share.acquire(batches_of(20)) == [
        Acquired(12, 14, 1),
        Acquired(17, 17, 1),
        Acquired(18, 18, 3),
        Acquired(19, 19, 1),
    ]


def test_a_fenced_one_gives_out_nothing(share: Share) -> None:
    share.acquire(batches_of(3))
    share.partition.fence()
    assert share.acquire(batches_of(3, base=3)) == []
    assert share.timer.pending == 0


# -- acquire ---------------------------------------------------------------------------------------


def test_new_records(share: Share) -> None:
    assert share.acquire(batches_of(3, 2)) == [Acquired(0, 4, 1)]
    assert share.shown() == [(0, 4, "ACQUIRED", 1)]
    assert share.offsets == (0, 5, 5)
    assert share.persister.writes == []


def test_whole_batches_even_above_what_was_asked_for(share: Share) -> None:
    assert share.acquire(batches_of(3, 4, 4), max_records=5) == [Acquired(0, 6, 1)]


def test_parts_of_a_batch_go_out_together_whatever_was_asked_for(share: Share) -> None:
    """All that is there of a batch that was delivered before; the next batch waits."""
    share.acquire(batches_of(10))
    share.acquire(batches_of(10, base=10))
    for first, last in ((1, 2), (5, 7), (12, 13)):
        assert share.say(RELEASE, first, last) is E.NONE
    acquired = share.acquire(batches_of(10, 10), max_records=3)
    assert acquired == [(1, 2, 2), (5, 7, 2)]
    assert share.acquire(batches_of(10, base=10), max_records=3) == [(12, 13, 2)]


def test_company_is_counted_over_the_batch(share: Share) -> None:
    for _ in range(2):
        share.acquire(batches_of(8))
        share.say(RELEASE, 0, 7)
    share.acquire(batches_of(8))
    share.say([ACCEPT, RELEASE, RELEASE, ACCEPT, RELEASE, RELEASE, RELEASE, RELEASE], 0, 7)
    # Half of the batch, though an accepted record lies between.
    assert share.acquire(batches_of(8)) == [(1, 2, 4), (4, 5, 4)]
    assert share.acquire(batches_of(8)) == [(6, 7, 4)]


def test_exactly_what_was_asked_for(share: Share) -> None:
    assert share.acquire(batches_of(3, 4, 4), max_records=5, is_exact=True) == [Acquired(0, 4, 1)]
    assert share.offsets == (0, 5, 5)
    assert share.acquire(batches_of(4, 4, base=3), "b", max_records=3, is_exact=True) == [
        Acquired(5, 7, 1)
    ]


def test_acquired_in_parts_of_batch_size(share: Share) -> None:
    assert share.acquire(batches_of(3, 3, 3, 3), batch_size=5) == [
        Acquired(0, 5, 1),
        Acquired(6, 11, 1),
    ]


def test_nobody_gets_what_another_has(share: Share) -> None:
    share.acquire(batches_of(3))
    assert share.acquire(batches_of(3, 2), "b") == [Acquired(3, 4, 1)]


def test_records_in_flight_are_limited() -> None:
    share = Share(max_records=10).begin()
    assert share.acquire(batches_of(8)) == [Acquired(0, 7, 1)]
    assert share.acquire(batches_of(4, base=8)) == [Acquired(8, 11, 1)]
    assert not share.partition.can_acquire()
    assert share.acquire(batches_of(4, base=12)) == []
    assert share.say(RELEASE, 2, 3) is E.NONE
    assert share.partition.can_acquire()
    assert share.acquire(batches_of(8, 4, 4), "b") == [Acquired(2, 3, 2)]


def test_what_compaction_removed_is_done(share: Share) -> None:
    share.acquire(batches_of(6))
    share.say(RELEASE, 0, 5)
    assert share.acquire(batches_of(2, base=4)) == [Acquired(4, 5, 2)]
    assert share.partition.start_offset == 4


def test_records_of_aborted_transactions_are_done(share: Share) -> None:
    assert share.acquire(batches_of(2, 3, 2), aborted=[(0, 1), (5, 6)]) == [Acquired(2, 4, 1)]
    assert share.offsets == (2, 7, 7)
    assert share.acquire(batches_of(2, base=7), aborted=[(7, 8)]) == []
    assert share.say(ACCEPT, 2, 4) is E.NONE
    assert share.offsets == (9, 9, 9)


# -- acknowledge -----------------------------------------------------------------------------------


def test_accepted_records_move_the_start(share: Share) -> None:
    share.acquire(batches_of(5))
    assert share.say(ACCEPT, 0, 2) is E.NONE
    assert share.offsets == (3, 5, 5)
    assert share.say(ACCEPT, 3, 4) is E.NONE
    assert share.shown() == []
    assert share.offsets == (5, 5, 5)
    assert share.timer.pending == 0


def test_what_is_written(share: Share) -> None:
    share.acquire(batches_of(6))
    share.say([ACCEPT, RELEASE, RELEASE, REJECT, GAP, ACCEPT], 0, 5)
    share.acquire(batches_of(6))
    share.say(ACCEPT, 1, 2)
    assert share.persister.writes == [
        (
            0,
            4,
            [
                StateBatch(0, 0, 2, 1),
                StateBatch(1, 2, 0, 1),
                StateBatch(3, 4, 4, 1),
                StateBatch(5, 5, 2, 1),
            ],
        ),
        (1, 5, [StateBatch(1, 2, 2, 2)]),
    ]
    assert share.offsets == (6, 6, 6)


def test_released_records_go_to_others(share: Share) -> None:
    share.acquire(batches_of(5))
    assert share.say(RELEASE, 1, 3) is E.NONE
    assert share.partition.next_fetch_offset() == 1
    assert share.acquire(batches_of(5), "b") == [Acquired(1, 3, 2)]
    assert share.say(ACCEPT, 1, 3, "b") is E.NONE


def test_nothing_is_told_before_it_is_written(share: Share) -> None:
    share.acquire(batches_of(5))
    share.persister.hold = True
    codes: list[E] = []
    share.partition.acknowledge("a", [Acknowledgement(0, 4, [ACCEPT])], codes.append)
    assert codes == []
    assert share.partition.start_offset == 0
    assert share.say(ACCEPT, 0, 4) is E.INVALID_RECORD_STATE
    share.persister.answer()
    assert codes == [E.NONE]
    assert share.partition.start_offset == 5


def test_what_cannot_be_written_has_not_happened(share: Share) -> None:
    share.acquire(batches_of(5))
    share.persister.write_code = E.COORDINATOR_NOT_AVAILABLE
    assert share.say(ACCEPT, 0, 4) is E.COORDINATOR_NOT_AVAILABLE
    assert share.shown() == [(0, 4, "ACQUIRED", 1)]
    share.persister.write_code = E.NONE
    assert share.say(ACCEPT, 0, 4) is E.NONE


def test_lock_that_runs_out_while_a_write_fails(share: Share) -> None:
    share.acquire(batches_of(5))
    share.persister.hold = True
    assert share.say(ACCEPT, 0, 2) is None
    share.timer.advance(LOCK_MS)
    assert share.shown() == [(0, 2, "ACKNOWLEDGED", 1), (3, 4, "AVAILABLE", 1)]
    share.persister.answer(E.COORDINATOR_NOT_AVAILABLE)
    assert share.partition.next_fetch_offset() == 0
    assert {run.state for run in share.partition.runs} == {RecordState.AVAILABLE}


@pytest.mark.parametrize(
    ("first", "last", "member", "code"),
    [
        (0, 4, "b", E.INVALID_RECORD_STATE),
        (4, 6, "a", E.INVALID_REQUEST),
        (5, 9, "a", E.INVALID_REQUEST),
        (0, 1, "a", E.NONE),
    ],
)
def test_who_may_say_what(share: Share, first: int, last: int, member: str, code: E) -> None:
    share.acquire(batches_of(5))
    assert share.say(ACCEPT, first, last, member) is code


def test_acknowledged_twice(share: Share) -> None:
    share.acquire(batches_of(5))
    share.say(ACCEPT, 1, 2)
    assert share.say(ACCEPT, 1, 2) is E.INVALID_RECORD_STATE
    assert share.say(ACCEPT, 0, 0) is E.NONE
    assert share.say(ACCEPT, 0, 2) is E.NONE, "below the start nothing is checked"


def test_all_or_nothing(share: Share) -> None:
    share.acquire(batches_of(5))
    share.say(RELEASE, 4, 4)
    batches = [Acknowledgement(0, 1, [ACCEPT]), Acknowledgement(4, 4, [ACCEPT])]
    assert share.outcome(share.partition.acknowledge, "a", batches) is E.INVALID_RECORD_STATE
    assert share.shown() == [(0, 3, "ACQUIRED", 1), (4, 4, "AVAILABLE", 1)]


def test_nobody_has_anything(share: Share) -> None:
    assert share.say(ACCEPT, 0, 1) is E.INVALID_RECORD_STATE


# -- locks -----------------------------------------------------------------------------------------


def test_lock_runs_out(share: Share) -> None:
    woken: list[bool] = []

    def look(force: bool) -> bool:
        woken.append(force)
        return False

    share.partition.watchers.add(DelayedShareFetch(look))
    share.acquire(batches_of(5))
    share.timer.advance(LOCK_MS - 1)
    assert share.partition.next_fetch_offset() == 5
    share.timer.advance(1)
    assert woken == [False]
    assert share.shown() == [(0, 4, "AVAILABLE", 1)]
    assert share.persister.writes == [(0, 0, [StateBatch(0, 4, 0, 1)])]
    assert share.say(ACCEPT, 0, 4) is E.INVALID_RECORD_STATE
    assert share.acquire(batches_of(5), "b") == [Acquired(0, 4, 2)]


def test_renewed_lock(share: Share) -> None:
    share.acquire(batches_of(5))
    share.timer.advance(LOCK_MS - 10)
    assert share.say(RENEW, 2, 3) is E.NONE
    share.timer.advance(20)
    assert [(run.first, run.state.name) for run in share.partition.runs] == [
        (0, "AVAILABLE"),
        (2, "ACQUIRED"),
        (4, "AVAILABLE"),
    ]
    share.timer.advance(LOCK_MS)
    assert {run.state for run in share.partition.runs} == {RecordState.AVAILABLE}
    assert share.timer.pending == 0


# -- deliveries that fail --------------------------------------------------------------------------


def test_delivered_too_often() -> None:
    share = Share(max_deliveries=2).begin()
    for count in (1, 2):
        assert share.acquire(batches_of(3)) == [Acquired(0, 2, count)]
        share.timer.advance(LOCK_MS)
    assert share.shown() == []
    assert share.offsets == (3, 3, 3)
    assert share.persister.writes[-1] == (0, 3, [StateBatch(0, 2, 4, 2)])


def test_released_too_often() -> None:
    share = Share(max_deliveries=2).begin()
    for _ in range(2):
        share.acquire(batches_of(3))
        share.say(RELEASE, 0, 2)
    assert share.offsets == (3, 3, 3)


def test_what_fails_again_and_again_goes_out_in_smaller_company(share: Share) -> None:
    """Four deliveries of eight records: all, all, half, and then alone."""
    for _ in range(3):
        assert share.acquire(batches_of(8))
        share.say(RELEASE, share.partition.runs[0].first, share.partition.runs[0].last)
    assert share.shown()[0] == (0, 7, "AVAILABLE", 3)
    assert share.acquire(batches_of(8)) == [Acquired(0, 3, 4)]
    share.say(RELEASE, 0, 3)
    assert share.acquire(batches_of(8)) == [Acquired(0, 0, 5)]
    assert share.acquire(batches_of(8)) == [Acquired(1, 1, 5)]
    share.say(RELEASE, 0, 1)
    assert share.partition.start_offset == 2


# -- members that go -------------------------------------------------------------------------------


def test_member_that_goes_releases_its_records(share: Share) -> None:
    share.acquire(batches_of(3))
    share.acquire(batches_of(3, base=3), "b")
    assert share.outcome(share.partition.release, "a") is E.NONE
    assert share.shown() == [(0, 2, "AVAILABLE", 1), (3, 5, "ACQUIRED", 1)]
    assert share.acquire(batches_of(3, 3), "b") == [Acquired(0, 2, 2)]
    assert share.outcome(share.partition.release, "nobody") is E.NONE


def test_member_that_goes_with_what_was_delivered_often_enough() -> None:
    share = Share(max_deliveries=2).begin()
    for _ in range(2):
        share.acquire(batches_of(3))
        share.outcome(share.partition.release, "a")
    assert share.offsets == (3, 3, 3)


# -- log start -------------------------------------------------------------------------------------


def test_log_start_moves_into_what_is_in_flight(share: Share) -> None:
    share.acquire(batches_of(5, 5))
    share.partition.raise_log_start(3)
    assert share.offsets == (3, 10, 10)
    assert share.say(ACCEPT, 0, 4) is E.NONE
    assert share.offsets == (5, 10, 10)
    share.partition.raise_log_start(2)
    assert share.partition.start_offset == 5


def test_log_start_moves_beyond_everything(share: Share) -> None:
    share.acquire(batches_of(5))
    share.persister.hold = True
    share.say(ACCEPT, 0, 4)
    share.partition.raise_log_start(20)
    share.persister.answer()
    assert share.offsets == (20, 20, 20)
    assert share.timer.pending == 0


def test_log_start_of_a_new_group() -> None:
    share = Share().begin()
    share.partition.raise_log_start(4)
    assert share.offsets == (4, 4, 4)
