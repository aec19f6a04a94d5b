"""In-flight records of a share-partition, as runs of consecutive records in one state.

    AVAILABLE ──acquire──> ACQUIRED ──accept──> ACKNOWLEDGED
        ^  │                │  │  │
        │  │  release, lock │  │  └─reject, gap, delivered too often─> ARCHIVED
        └──│──── over ──────┘  │                                          ^
           └── not in the log any more, or of an aborted transaction ─────┘

A run is split where records change state separately, and merged again with equal neighbours, so a
batch that is acknowledged as a whole costs one run, however many records it has.

A change that has to be written first is a *transition*: the run shows the new state at once, so
that no other member acquires its records, and rolls back if the write fails.

Source of the states: Kafka, RecordState.java, InFlightState.java; runs are Varve's.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import IntEnum
from operator import attrgetter

from broker.runtime.timer import TimerHandle

EMPTY_MEMBER_ID = ""
"""Member id of records that no member has acquired."""

_TIDY_MIN = 64


class RecordState(IntEnum):
    """Delivery state of a record; the numbers are those of the log."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is done."""
        return self in _TERMINAL


_TERMINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})

LEGAL = frozenset(
    {
        (RecordState.AVAILABLE, RecordState.ACQUIRED),
        (RecordState.AVAILABLE, RecordState.ARCHIVED),
        (RecordState.ACQUIRED, RecordState.AVAILABLE),
        (RecordState.ACQUIRED, RecordState.ACKNOWLEDGED),
        (RecordState.ACQUIRED, RecordState.ARCHIVED),
    }
)


class IllegalStateError(Exception):
    """A transition that the state machine does not allow: a bug of the broker."""


class Lock:
    """An acquisition lock: of a member, on the records it acquired with one fetch.

    It covers the runs between `first` and `last` that refer to it; without any, its timer stops.
    """

    __slots__ = ("first", "handle", "is_expired", "last", "runs")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.is_expired = False
        self.handle: TimerHandle | None = None
        self.runs = 0

    def cancel(self) -> None:
        """Stop the timer."""
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None


class Transition:
    """Runs whose new state is being written."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[Run] = []


class Run:
    """Records first to last (inclusive), all in one state.

    Attributes:
        first: Offset.
        last: Offset, inclusive.
        state: Of each record.
        delivery_count: How often each has been delivered.
        member_id: The member that has acquired them.
        batch_first: First offset of the batch they were first acquired with: records are
            redelivered batch by batch.
        batch_size: Records of that batch; repeated redeliveries are ever smaller parts of it.
        lock: Of the member, or None.
        transition: The change being written, or None.
        before: State and member before the transition.
    """

    __slots__ = (
        "batch_first",
        "batch_size",
        "before",
        "delivery_count",
        "first",
        "last",
        "lock",
        "member_id",
        "state",
        "transition",
    )

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        *,
        member_id: str = EMPTY_MEMBER_ID,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.batch_first = first
        self.batch_size = last - first + 1
        self.lock: Lock | None = None
        self.transition: Transition | None = None
        self.before: tuple[RecordState, str] | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        """Whether it may be acquired now."""
        return self.state is RecordState.AVAILABLE and self.transition is None

    def change(self, state: RecordState, member_id: str = EMPTY_MEMBER_ID) -> None:
        """Change the state.

        Raises:
            IllegalStateError: There is no such transition, or the run waits for a write.
        """
        if self.transition is not None or (self.state, state) not in LEGAL:
            raise IllegalStateError(f"{self.state.name} to {state.name}")
        self.state = state
        self.member_id = member_id

    def begin(self, transition: Transition, state: RecordState) -> None:
        """Begin a transition, which `commit` or `roll_back` ends after the write."""
        before = (self.state, self.member_id)
        self.change(state)
        self.before = before
        self.transition = transition
        transition.runs.append(self)

    def commit(self) -> None:
        """Complete the transition, and drop the lock: it is written."""
        self.transition = None
        self.before = None
        self.hold(None)

    def roll_back(self, max_deliveries: int) -> None:
        """Restore the previous state, or the one after its lock's expiry: the write failed."""
        assert self.before is not None
        self.state, self.member_id = self.before
        self.transition = None
        self.before = None
        if self.lock is not None and self.lock.is_expired:
            self.give_back(max_deliveries)

    def give_back(self, max_deliveries: int) -> None:
        """Release the records: available again, or archived at the delivery limit."""
        is_enough = self.delivery_count >= max_deliveries
        self.change(RecordState.ARCHIVED if is_enough else RecordState.AVAILABLE)
        self.hold(None)

    def hold(self, lock: Lock | None) -> None:
        """Replace the lock; None: none covers it."""
        before, self.lock = self.lock, lock
        if lock is not None:
            lock.runs += 1
        if before is not None:
            before.runs -= 1
            if not before.runs:
                before.cancel()

    def split(self, offset: int) -> "Run":
        """Split at `offset`: keep the lower part, return the rest."""
        rest = Run(offset, self.last, self.state, self.delivery_count, member_id=self.member_id)
        rest.batch_first = self.batch_first
        rest.batch_size = self.batch_size
        self.last = offset - 1
        if self.transition is not None:
            rest.before = self.before
            rest.transition = self.transition
            self.transition.runs.append(rest)
        rest.lock = self.lock
        if self.lock is not None:
            self.lock.runs += 1
        return rest

    def is_like(self, following: "Run") -> bool:
        """Whether the following run is equal but for its offsets, and may be merged."""
        return (
            self.last + 1 == following.first
            and self.state is following.state
            and self.delivery_count == following.delivery_count
            and self.batch_first == following.batch_first
            and self.lock is following.lock
            and self.member_id == following.member_id
            and self.transition is None
            and following.transition is None
        )


class InFlight:
    """The runs of a share-partition, sorted, not overlapping; there may be holes between them."""

    __slots__ = ("_runs", "_tidy_at")

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._tidy_at = _TIDY_MIN

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @property
    def first(self) -> Run:
        """The lowest run."""
        return self._runs[0]

    @property
    def last(self) -> Run:
        """The highest run."""
        return self._runs[-1]

    def append(self, run: Run) -> None:
        """Add a run above all others."""
        self._runs.append(run)

    def between(self, first: int, last: int) -> list[Run]:
        """The runs that overlap first to last."""
        return self._runs[self._index(first) : self._end(last)]

    def cut(self, first: int, last: int) -> list[Run]:
        """The runs between first and last, split at both ends so that each lies within."""
        if first > last:
            return []
        runs = self._runs
        at = self._index(first)
        if at < len(runs) and runs[at].first <= first and runs[at].last >= last:
            # The common case: all of it in one run.
            run = runs[at]
            if run.first < first:
                run = run.split(first)
                at += 1
                runs.insert(at, run)
            if run.last > last:
                runs.insert(at + 1, run.split(last + 1))
            return [run]
        self._cut_at(first)
        self._cut_at(last + 1)
        return self.between(first, last)

    def cut_each(self, borders: Sequence[int]) -> list[Run]:
        """Split at ascending offsets; return the runs from the first to below the last one.

        One step for each piece, where `cut` takes a search and a shift for each.
        """
        runs = self._runs
        begin, end = self._index(borders[0]), self._end(borders[-1] - 1)
        pieces: list[Run] = []
        following = iter(borders)
        border = next(following, None)
        for whole in runs[begin:end]:
            run = whole
            while border is not None and border <= run.last:
                if border > run.first:
                    pieces.append(run)
                    run = run.split(border)
                border = next(following, None)
            pieces.append(run)
        runs[begin:end] = pieces
        return self.between(borders[0], borders[-1] - 1)

    def drop_below(self, offset: int) -> list[Run]:
        """Remove and return the runs below `offset`."""
        self._cut_at(offset)
        end = self._end(offset - 1)
        dropped = self._runs[:end]
        del self._runs[:end]
        return dropped

    def drop_done(self) -> bool:
        """Remove the lowest runs, as long as they are done; return whether there were any."""
        end = 0
        for run in self._runs:
            if run.transition is not None or not run.state.is_terminal:
                break
            end += 1
        del self._runs[:end]
        return end > 0

    def clear(self) -> None:
        """Remove all runs."""
        self._runs.clear()

    def tidy(self) -> None:
        """Merge equal neighbours, when the runs have doubled since the last time."""
        if len(self._runs) < self._tidy_at:
            return
        joined = self._runs[:1]
        for run in self._runs[1:]:
            if joined[-1].is_like(run):
                joined[-1].last = run.last
                run.hold(None)
            else:
                joined.append(run)
        self._runs = joined
        self._tidy_at = max(_TIDY_MIN, 2 * len(joined))

    def _index(self, offset: int) -> int:
        """Index of the run that contains `offset`, or of the first one above it."""
        at = bisect_right(self._runs, offset, key=attrgetter("first"))
        return at - 1 if at and self._runs[at - 1].last >= offset else at

    def _end(self, offset: int) -> int:
        """One past the last run that begins at or below `offset`."""
        return bisect_right(self._runs, offset, key=attrgetter("first"))

    def _cut_at(self, offset: int) -> None:
        at = self._index(offset)
        if at < len(self._runs) and self._runs[at].first < offset:
            self._runs.insert(at + 1, self._runs[at].split(offset))
