"""A share-partition: the delivery state of one partition in one share group.

    EMPTY ──> INITIALIZING ──state read──> ACTIVE ──> FENCED     leader changed, state was reset,
                    └──────────────> FAILED                      topic deleted

A start offset that was not chosen yet is chosen, and written before anything is delivered.

Records from the start offset to the end offset (exclusive) are in flight:
`broker.share.delivery.in_flight`. Below it all are done; above it none was delivered.

    start                                        end
      │ ack │ acquired │ available │ ack │ acquired │  never delivered ...
      └─ moves up over records that are done

Acknowledgements are written to the share coordinator before they are answered. Acquisitions are
not: after a crash acquired records are delivered again.

Source: Kafka, SharePartition.java; KIP-932, KIP-1206, KIP-1222.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from broker.coordinator.persister import (
    UNINITIALIZED_OFFSET,
    Done,
    SharePartitionKey,
    SharePersister,
    ShareState,
)
from broker.runtime.timer import Timer
from broker.runtime.watchers import Waker, Watchers
from broker.share.delivery.acknowledgement_batches import (
    ACCEPT as ACCEPT,  # also for tests that have records forgotten
)
from broker.share.delivery.acknowledgement_batches import (
    GAP,
    REJECT,
    RENEW,
    Acknowledgement,
    matched,
    validate_acknowledgements,
)
from broker.share.delivery.acknowledgement_batches import (
    RELEASE as RELEASE,
)
from broker.share.delivery.fetched_batches import FetchedBatch
from broker.share.delivery.in_flight import InFlight, Lock, RecordState, Run, Transition
from broker.share.delivery.redelivery import Redelivery
from protocol.error_codes import ErrorCode
from protocol.internal.share_state import StateBatch

_OUTCOMES = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    REJECT: RecordState.ARCHIVED,
}
"""New state of acknowledged records; that of released ones depends on the delivery count."""

ChooseOffset = Callable[[Callable[[ErrorCode, int], None]], None]
"""Finds the start offset of a group by `share.auto.offset.reset`."""


class SharePartitionState(Enum):
    """State of a share-partition."""

    EMPTY = auto()
    INITIALIZING = auto()
    ACTIVE = auto()
    FAILED = auto()
    FENCED = auto()


class Acquired(NamedTuple):
    """Records that a member has acquired; `last` is inclusive."""

    first: int
    last: int
    delivery_count: int


class DeliveryLimits(NamedTuple):
    """Limits of the broker."""

    max_deliveries: int
    max_records: int


class SharePartition:
    """See the module. Touched on the loop's thread only."""

    __slots__ = (
        "_choose_offset",
        "_in_flight",
        "_limits",
        "_lock_ms",
        "_may_be_available",
        "_persister",
        "_redelivery",
        "_timer",
        "end_offset",
        "key",
        "leader_epoch",
        "start_offset",
        "state",
        "state_epoch",
        "watchers",
    )

    def __init__(
        self,
        key: SharePartitionKey,
        *,
        leader_epoch: int,
        limits: DeliveryLimits,
        lock_ms: Callable[[], int],
        choose_offset: ChooseOffset,
        persister: SharePersister,
        timer: Timer,
        waker: Waker,
    ) -> None:
        """A share-partition in state EMPTY.

        Args:
            key: Whose.
            leader_epoch: Of the partition, as we lead it.
            limits: Of the broker.
            lock_ms: How long a lock lasts, called for each.
            choose_offset: See `ChooseOffset`.
            persister: Stores the state.
            timer: For the locks.
            waker: Of the requests that wait here.
        """
        self.key = key
        self.leader_epoch = leader_epoch
        self.state = SharePartitionState.EMPTY
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.watchers = Watchers(waker)
        self._limits = limits
        self._lock_ms = lock_ms
        self._choose_offset = choose_offset
        self._persister = persister
        self._timer = timer
        self._in_flight = InFlight()
        self._redelivery = Redelivery(self._in_flight, limits.max_deliveries)
        # False once none was found available, until records are released.
        self._may_be_available = False

    # -- life ------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether records may be acquired."""
        return self.state is SharePartitionState.ACTIVE

    def initialize(self, done: Done) -> None:
        """Read the state; after an error, which `done` gets, the share-partition is unusable."""
        assert self.state is SharePartitionState.EMPTY
        self.state = SharePartitionState.INITIALIZING
        self._persister.read(self.key, self.leader_epoch, partial(self._read, done))

    def _read(self, done: Done, code: ErrorCode, state: ShareState | None) -> None:
        if self.state is not SharePartitionState.INITIALIZING:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif state is None:
            self._fail(done, code_of_persister(code))
        elif state.start_offset == UNINITIALIZED_OFFSET:
            self._choose_offset(
                lambda code, offset: (
                    self._fail(done, code)
                    if code is not ErrorCode.NONE
                    else self._begin_at(offset, state, done)
                )
            )
        else:
            self._begin(state, done)

    def _begin_at(self, offset: int, state: ShareState, done: Done) -> None:
        """Begin at a chosen offset once it is written.

        Kafka writes it with the first acknowledgement. What was delivered before that would not be
        delivered again if this broker failed: the next leader would choose a later end.
        """

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._begin(state._replace(start_offset=offset), done)
            else:
                self._fail(done, code_of_persister(code))

        self._persister.write(
            self.key,
            state_epoch=state.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=offset,
            delivery_complete_count=0,
            batches=(),
            done=written,
        )

    def _fail(self, done: Done, code: ErrorCode) -> None:
        if self.state is SharePartitionState.INITIALIZING:
            self.state = SharePartitionState.FAILED
        done(code)

    def _begin(self, state: ShareState, done: Done) -> None:
        if self.state is not SharePartitionState.INITIALIZING:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        self.state_epoch = state.state_epoch
        self.start_offset = self.end_offset = state.start_offset
        for batch in state.batches:
            if batch.last_offset < self.end_offset:
                continue
            first = max(batch.first_offset, self.end_offset)
            if first > self.end_offset:
                # These have no state: they were acquired, or skipped.
                self._in_flight.append(Run(self.end_offset, first - 1, RecordState.AVAILABLE, 0))
            self._in_flight.append(
                Run(
                    first,
                    batch.last_offset,
                    RecordState(batch.delivery_state),
                    batch.delivery_count,
                )
            )
            self.end_offset = batch.last_offset + 1
        self._may_be_available = len(self._in_flight) > 0
        self.state = SharePartitionState.ACTIVE
        self._advance_start()
        done(ErrorCode.NONE)

    def fence(self) -> None:
        """Stop delivery and drop all locks: another leader has taken over."""
        self.state = SharePartitionState.FENCED
        for run in self._in_flight:
            run.hold(None)
        self._in_flight.clear()
        self.watchers.check()

    # -- what may be fetched ---------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Records between the start and the end, done or not."""
        return self.end_offset - self.start_offset if len(self._in_flight) else 0

    @property
    def runs(self) -> Sequence[Run]:
        """The runs in flight, for tests and metrics."""
        return tuple(self._in_flight)

    @property
    def delivery_complete_count(self) -> int:
        """Records at and above the start offset that are done."""
        return sum(len(run) for run in self._in_flight if run.state.is_terminal)

    def next_fetch_offset(self) -> int:
        """The lowest record that may be acquired: a released one, else a new one."""
        if self._may_be_available:
            for run in self._in_flight:
                if run.is_available:
                    return run.first
            self._may_be_available = False
        return self.end_offset

    def can_acquire(self) -> bool:
        """Whether it is worth reading the log."""
        if self.state is not SharePartitionState.ACTIVE:
            return False
        return (
            self.next_fetch_offset() != self.end_offset or self.in_flight < self._limits.max_records
        )

    # -- acquire ---------------------------------------------------------------------------------

    def acquire(
        self,
        member_id: str,
        batches: Sequence[FetchedBatch],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        is_exact: bool = False,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> list[Acquired]:
        """Acquire the available records of the batches for a member.

        Args:
            member_id: The member.
            batches: As they lie in the log from `fetch_offset` on.
            fetch_offset: Result of `next_fetch_offset`.
            max_records: Most records; whole batches, so there may be more.
            batch_size: Records that are acquired together at least, if there are so many.
            is_exact: Not one record more than `max_records` (KIP-1206).
            aborted: First and last offsets, inclusive, of aborted transactions' records: done.
        """
        if self.state is not SharePartitionState.ACTIVE or max_records <= 0 or not batches:
            return []
        last = batches[-1].last_offset
        limit = min(max_records, self._limits.max_records - self.in_flight)
        if limit <= 0:
            # The limit of records in flight; released ones may still be acquired.
            if fetch_offset >= self.end_offset:
                return []
            limit = min(max_records, self.end_offset - fetch_offset)
            last = min(last, self.end_offset - 1)
        first = batches[0].base_offset
        self._archive_available(fetch_offset, first - 1)
        first = max(first, self.start_offset)
        align = partial(_end_of_batch, batches) if not is_exact else _same
        taken: list[Run] = []
        left, is_throttled = self._redelivery.take(taken, first, last, limit, align, is_exact)
        if left > 0 and not is_throttled and last >= self.end_offset:
            self._take_new(
                taken, max(first, self.end_offset), last, left, batches, batch_size, is_exact
            )
        if not taken:
            self._advance_start()
            return []
        lock = self._lock(taken[0].first, taken[-1].last)
        for run in taken:
            if not run.delivery_count:
                run.batch_first, run.batch_size = run.first, len(run)
            run.change(RecordState.ACQUIRED, member_id)
            run.delivery_count += 1
            run.hold(lock)
        for aborted_first, aborted_last in aborted:
            for run in self._in_flight.cut(aborted_first, aborted_last):
                if run.lock is lock:
                    run.change(RecordState.ARCHIVED)
                    run.hold(None)
        acquired = _ranges(
            run for run in self._in_flight.between(taken[0].first, last) if run.lock is lock
        )
        self._advance_start()
        self._in_flight.tidy()
        return acquired

    def _take_new(
        self,
        taken: list[Run],
        first: int,
        last: int,
        limit: int,
        batches: Sequence[FetchedBatch],
        batch_size: int,
        is_exact: bool,
    ) -> None:
        """Acquire new records, in runs of whole batches with `batch_size` records at least."""
        if last - first + 1 > limit:
            last = first + limit - 1
            if not is_exact:
                last = _end_of_batch(batches, last)
        borders = [first]
        if not is_exact and last - first + 1 > batch_size:
            for batch in batches:
                begin = batch.base_offset
                if first < begin <= last and begin - borders[-1] >= batch_size:
                    borders.append(begin)
        if not len(self._in_flight):
            self.start_offset = first
        for at, end in zip(borders, [*borders[1:], last + 1], strict=True):
            run = Run(at, end - 1, RecordState.AVAILABLE, 0)
            self._in_flight.append(run)
            taken.append(run)
        self.end_offset = last + 1

    def _lock(self, first: int, last: int) -> Lock:
        lock = Lock(first, last)
        lock.handle = self._timer.call_later_ms(self._lock_ms(), partial(self._expire, lock))
        return lock

    def _expire(self, lock: Lock) -> None:
        """Release the records of an expired lock, or archive them at the delivery limit."""
        lock.is_expired = True
        lock.handle = None
        given_back = []
        for run in self._in_flight.between(lock.first, lock.last):
            if run.lock is lock and run.transition is None:
                run.give_back(self._limits.max_deliveries)
                given_back.append(run)
        if not given_back:
            return
        self._may_be_available = True
        # If the write fails, a crash loses the count of a delivery or two.
        self._write(_written(given_back), self._written_on_expiry)
        self.watchers.check()

    def _written_on_expiry(self, _code: ErrorCode) -> None:
        if self._advance_start():
            self.watchers.check()

    # -- acknowledge -----------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], done: Done
    ) -> None:
        """Apply a member's acknowledgements: all of them, or none and an error.

        INVALID_RECORD_STATE: it does not have the records, or no longer. INVALID_REQUEST: they
        were never delivered.
        """
        code, pieces = validate_acknowledgements(
            self._in_flight, self.start_offset, member_id, acknowledgements
        )
        if code is not ErrorCode.NONE:
            done(code)
            return
        transition = Transition()
        renewed: list[Run] = []
        for kind, run in matched(self._in_flight, pieces):
            self._acknowledge_run(kind, run, renewed, transition)
        if renewed:
            lock = self._lock(renewed[0].first, renewed[-1].last)
            for run in renewed:
                run.hold(lock)
        self._persist(transition, done)

    def _acknowledge_run(
        self, kind: int, run: Run, renewed: list[Run], transition: Transition
    ) -> None:
        if kind == RENEW:
            renewed.append(run)
        elif kind == RELEASE:
            run.begin(transition, self._released_state(run))
        else:
            run.begin(transition, _OUTCOMES[kind])

    def release(self, member_id: str, done: Done) -> None:
        """Release all records of a member that has left."""
        transition = Transition()
        for run in self._in_flight:
            if (
                run.state is RecordState.ACQUIRED
                and run.transition is None
                and run.member_id == member_id
            ):
                run.begin(transition, self._released_state(run))
        self._persist(transition, done)

    def _released_state(self, run: Run) -> RecordState:
        is_enough = run.delivery_count >= self._limits.max_deliveries
        return RecordState.ARCHIVED if is_enough else RecordState.AVAILABLE

    # -- writing ---------------------------------------------------------------------------------

    def _persist(self, transition: Transition, done: Done) -> None:
        if not transition.runs:
            done(ErrorCode.NONE)
            return
        self._write(_written(transition.runs), partial(self._persisted, transition, done))

    def _write(self, batches: Sequence[StateBatch], done: Done) -> None:
        self._persister.write(
            self.key,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            batches=batches,
            done=done,
        )

    def _persisted(self, transition: Transition, done: Done, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            self._roll_back(transition)
            done(code_of_persister(code))
            self.watchers.check()
            return
        for run in transition.runs:
            run.commit()
            if run.state is RecordState.AVAILABLE:
                self._may_be_available = True
        self._advance_start()
        self._in_flight.tidy()
        done(ErrorCode.NONE)
        self.watchers.check()

    def _roll_back(self, transition: Transition) -> None:
        for run in transition.runs:
            run.roll_back(self._limits.max_deliveries)
            if run.state is RecordState.AVAILABLE:
                self._may_be_available = True

    # -- the start offset ------------------------------------------------------------------------

    def raise_log_start(self, offset: int) -> None:
        """Archive all records below `offset`, the new log start offset."""
        if offset <= self.start_offset:
            return
        for run in self._in_flight.drop_below(offset):
            run.hold(None)
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        if not len(self._in_flight):
            self.start_offset = self.end_offset
        else:
            self._advance_start()

    def _archive_available(self, first: int, last: int) -> None:
        """Archive available records that are no longer in the log (compacted)."""
        for run in self._in_flight.between(first, last) if first <= last else ():
            if run.is_available:
                for part in self._in_flight.cut(max(run.first, first), min(run.last, last)):
                    part.change(RecordState.ARCHIVED)

    def _advance_start(self) -> bool:
        if not self._in_flight.drop_done():
            return False
        remaining = len(self._in_flight)
        self.start_offset = self._in_flight.first.first if remaining else self.end_offset
        return True


def code_of_persister(code: ErrorCode) -> ErrorCode:
    """Error code for a consumer when the share coordinator returns one."""
    return _CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


_CODES = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


def _end_of_batch(batches: Sequence[FetchedBatch], offset: int) -> int:
    """The end of the batch that holds `offset`, inclusive."""
    for batch in batches:
        if batch.last_offset >= offset:
            return batch.last_offset if batch.base_offset <= offset else offset
    return offset


def _ranges(runs: Iterable[Run]) -> list[Acquired]:
    """Acquired ranges; neighbours of one batch with equal delivery counts are merged."""
    ranges: list[Acquired] = []
    before: Run | None = None
    for run in runs:
        if (
            before is not None
            and before.last + 1 == run.first
            and before.batch_first == run.batch_first
            and before.delivery_count == run.delivery_count
        ):
            ranges[-1] = ranges[-1]._replace(last=run.last)
        else:
            ranges.append(Acquired(run.first, run.last, run.delivery_count))
        before = run
    return ranges


def _same(offset: int) -> int:
    return offset


def _written(runs: Sequence[Run]) -> list[StateBatch]:
    """State batches of runs; equal neighbours are merged."""
    batches: list[StateBatch] = []
    if not runs:
        return batches
    first = last = -1
    state, count = RecordState.AVAILABLE, -1
    for run in sorted(runs, key=attrgetter("first")):
        if run.first == last + 1 and run.state is state and run.delivery_count == count:
            last = run.last
            continue
        if count >= 0:
            batches.append(StateBatch(first, last, state, count))
        first, last, state, count = run.first, run.last, run.state, run.delivery_count
    batches.append(StateBatch(first, last, state, count))
    return batches
