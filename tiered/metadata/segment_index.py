"""Remote log metadata cache: the remote segments of one partition, by leader epoch and offset.

A segment is listed from COPY_SEGMENT_STARTED until DELETE_SEGMENT_FINISHED, but found for reading
only while it is COPY_SEGMENT_FINISHED and nothing has taken its place:

    state                     find   segments   counts for highest_offset
    COPY_SEGMENT_STARTED       no      yes        no
    COPY_SEGMENT_FINISHED      yes *   yes        yes
    DELETE_SEGMENT_STARTED     no      yes        yes, for good: what was copied is not copied again
    DELETE_SEGMENT_FINISHED    no      no         yes, for good

    * unless replaced: see below

Of each leader epoch that a segment has records of, the cache keeps which finished segment begins
where, and the others as `unreferenced`: under way, being deleted, or replaced. Two leaders may have
copied overlapping segments (KAFKA-15168); of those the one is replaced that lies within the other,
the older one if they are alike:

    finished in this order, of one epoch       find(95)   find(60)   unreferenced
    S0 10..90, S1 5..100                       S1         S1         S0
    S0 0..100, S1 0..200                       S1         S1         S0
    S0 0..100, S1 0..50                        S0         S0         S1       Kafka: nothing found
    S0 0..100, S1 20..50                       S0         S0         S1       Kafka: nothing found

In the last two, Kafka lets S1 hide what only S0 has. So `starts` and `ends` both ascend, and the
last segment that begins at or before an offset holds it if any does.

Source: Kafka, RemoteLogMetadataCache.java, RemoteLogLeaderEpochState.java; KAFKA-15168.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from tiered.errors import InvalidTransitionError
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
    check_segment_step,
)

NOTHING_COPIED = -1
"""`EpochCapture.highest` of an epoch without a finished segment."""


class EpochCapture(NamedTuple):
    """One epoch, as a snapshot keeps it.

    Attributes:
        epoch: Which.
        highest: Last offset ever copied of it, inclusive; `NOTHING_COPIED`.
        referenced: Ids of the segments that are found, ascending by first offset in the epoch.
    """

    epoch: int
    highest: int
    referenced: Sequence[bytes]


class CacheCapture(NamedTuple):
    """All a cache knows at one moment; what it holds does not change any more."""

    segments: Sequence[RemoteLogSegmentMetadata]
    epochs: Sequence[EpochCapture]


CHANGES_MAX = 4096
"""Changes that are remembered for kept sums."""

Change = tuple[RemoteLogSegmentMetadata | None, RemoteLogSegmentMetadata | None]
"""A segment before and after; None: it was, or is, not listed."""


class _EpochState:
    """One leader epoch; `starts`, `ends` (inclusive) and `ids` are parallel; see the module.

    `abort_starts` has those of `starts` whose segments have aborted transactions.
    """

    __slots__ = ("abort_starts", "ends", "highest", "ids", "starts", "unreferenced")

    def __init__(self) -> None:
        self.abort_starts: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.ids: list[bytes] = []
        self.unreferenced: set[bytes] = set()
        self.highest = NOTHING_COPIED

    def finish(self, segment_id: bytes, start: int, end: int, *, has_aborts: bool) -> None:
        """The epoch's records `start` .. `end` are in this segment, which is copied."""
        starts, ends, ids = self.starts, self.ends, self.ids
        before = bisect_right(starts, start) - 1
        if before >= 0 and ends[before] > end:
            # It adds nothing; it stays unreferenced.
            return
        self.unreferenced.discard(segment_id)
        first = last = bisect_left(starts, start)
        while last < len(ends) and ends[last] <= end:
            last += 1
        self.unreferenced.update(ids[first:last])
        if last > first:
            self._drop_aborts(start, starts[last - 1])
        if has_aborts:
            insort(self.abort_starts, start)
        starts[first:last] = (start,)
        ends[first:last] = (end,)
        ids[first:last] = (segment_id,)
        self.highest = max(self.highest, end)

    def begin_delete(self, segment_id: bytes, start: int) -> None:
        """The segment is not found any more, but still listed."""
        place = bisect_left(self.starts, start)
        if place < len(self.starts) and self.ids[place] == segment_id:
            del self.starts[place], self.ends[place], self.ids[place]
            self._drop_aborts(start, start)
        self.unreferenced.add(segment_id)

    def _drop_aborts(self, first: int, last: int) -> None:
        found = self.abort_starts
        del found[bisect_left(found, first) : bisect_right(found, last)]

    def next_with_aborts(self, offset: int) -> bytes | None:
        """The first that ends at or after the offset and has aborted transactions."""
        holds = max(bisect_right(self.starts, offset) - 1, 0)
        if holds == len(self.starts):
            return None
        found = self.abort_starts
        for at in range(bisect_left(found, self.starts[holds]), len(found)):
            place = bisect_left(self.starts, found[at])
            # Only the first may end before it.
            if self.ends[place] >= offset:
                return self.ids[place]
        return None


class RemoteLogMetadataCache:
    """See the module."""

    __slots__ = (
        "_changes",
        "_epochs",
        "_is_shared",
        "_ordered",
        "_segments",
        "_unfinished",
        "finished_bytes",
        "version",
    )

    def __init__(self) -> None:
        # By the 16 bytes of their ids: hashing a UUID is Python code, and events have bytes anyway.
        self._segments: dict[bytes, RemoteLogSegmentMetadata] = {}
        self._epochs: dict[int, _EpochState] = {}
        # All of them, ascending by start offset; copied before a change once it was handed out.
        self._ordered: list[RemoteLogSegmentMetadata] = []
        self._is_shared = False
        self._unfinished: dict[bytes, RemoteLogSegmentMetadata] = {}
        self._changes: deque[Change] = deque(maxlen=CHANGES_MAX)
        self.version = 0
        """Changes so far."""
        self.finished_bytes = 0
        """Bytes of COPY_SEGMENT_FINISHED segments, replaced ones included."""

    def __len__(self) -> int:
        return len(self._segments)

    # -- changing --------------------------------------------------------------------------------

    def check_add(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Raise what `add` would.

        Raises:
            InvalidTransitionError: The state is not COPY_SEGMENT_STARTED, or it is past that.
        """
        if metadata.state is not SegmentState.COPY_SEGMENT_STARTED:
            raise InvalidTransitionError(f"a copy may not begin as {metadata.state.name}")
        before = self._segments.get(metadata.id.bytes)
        check_segment_step(None if before is None else before.state, metadata.state)

    def add(self, metadata: RemoteLogSegmentMetadata) -> None:
        """A copy has begun; the event may be repeated. Raises as `check_add`."""
        self.check_add(metadata)
        segment_id = metadata.id.bytes
        before = self._segments.get(segment_id)
        if before is not None:
            self._forget_epochs(segment_id, before)
        for epoch, _ in metadata.segment_leader_epochs:
            self._epoch(epoch).unreferenced.add(segment_id)
        self._put(segment_id, before, metadata)

    def _put(
        self,
        segment_id: bytes,
        before: RemoteLogSegmentMetadata | None,
        after: RemoteLogSegmentMetadata | None,
    ) -> None:
        """A segment is another one now, or comes, or goes: in the table and in all lists."""
        if self._is_shared:
            self._ordered = self._ordered.copy()
            self._is_shared = False
        ordered = self._ordered
        place = -1
        if before is not None:
            place = bisect_left(ordered, before.start_offset, key=_start_offset)
            while ordered[place] is not before:
                place += 1
        if after is None:
            del ordered[place]
            del self._segments[segment_id]
        else:
            self._segments[segment_id] = after
            if before is not None and before.start_offset == after.start_offset:
                ordered[place] = after
            else:
                if before is not None:
                    del ordered[place]
                ordered.insert(bisect_right(ordered, after.start_offset, key=_start_offset), after)
        if after is None or after.state is SegmentState.COPY_SEGMENT_FINISHED:
            self._unfinished.pop(segment_id, None)
        else:
            self._unfinished[segment_id] = after
        self._changes.append((before, after))
        self.version += 1

    def check_update(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        """Raise what `update` would.

        Raises:
            InvalidTransitionError: The segment is not known (never begun, or deleted), it may not
                go into that state, or the state is COPY_SEGMENT_STARTED: that is `add`'s.
        """
        self._check_step(update.segment_id.id.bytes, update.state)

    def _check_step(self, segment_id: bytes, state: SegmentState) -> RemoteLogSegmentMetadata:
        if state is SegmentState.COPY_SEGMENT_STARTED:
            raise InvalidTransitionError("a copy begins with its metadata, not with an update")
        before = self._segments.get(segment_id)
        if before is None:
            raise InvalidTransitionError(
                f"segment {UUID(bytes=segment_id)} is not known, and cannot become {state.name}"
            )
        check_segment_step(before.state, state)
        return before

    def update(
        self,
        segment_id: bytes,
        state: SegmentState,
        broker_id: int,
        event_timestamp_ms: int,
        custom_metadata: bytes | None,
    ) -> None:
        """A segment is in another state; the event may be repeated. Raises as `check_update`."""
        before = self._check_step(segment_id, state)
        after = before.in_state(state, broker_id, event_timestamp_ms, custom_metadata)
        if state is before.state:
            self._put(segment_id, before, after)
            return
        if before.state is SegmentState.COPY_SEGMENT_FINISHED:
            self.finished_bytes -= before.segment_size_bytes
        if state is SegmentState.COPY_SEGMENT_FINISHED:
            self.finished_bytes += after.segment_size_bytes
            for epoch, start, end in _spans(after):
                self._epoch(epoch).finish(
                    segment_id, start, end, has_aborts=not after.txn_index_empty
                )
            self._put(segment_id, before, after)
        elif state is SegmentState.DELETE_SEGMENT_STARTED:
            for epoch, start, _ in _spans(after):
                self._epoch(epoch).begin_delete(segment_id, start)
            self._put(segment_id, before, after)
        else:
            self._forget_epochs(segment_id, before)
            self._put(segment_id, before, None)

    def _epoch(self, epoch: int) -> _EpochState:
        state = self._epochs.get(epoch)
        if state is None:
            state = self._epochs[epoch] = _EpochState()
        return state

    def _forget_epochs(self, segment_id: bytes, metadata: RemoteLogSegmentMetadata) -> None:
        """An unreferenced segment goes; what was copied of an epoch is remembered for good."""
        for epoch, _ in metadata.segment_leader_epochs:
            self._epoch(epoch).unreferenced.discard(segment_id)

    # -- looking up ------------------------------------------------------------------------------

    def segment(self, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
        """By id, in whatever state."""
        return self._segments.get(segment_id.bytes)

    def find(self, epoch: int, offset: int) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager.find."""
        state = self._epochs.get(epoch)
        if state is None:
            return None
        place = bisect_right(state.starts, offset) - 1
        if place < 0 or state.ends[place] < offset:
            return None
        return self._segments[state.ids[place]]

    def find_at_or_after(self, epoch: int, offset: int) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager.find_at_or_after."""
        state = self._epochs.get(epoch)
        if state is None:
            return None
        # Ends ascend too: the first that reaches the offset holds it, or comes next.
        place = max(bisect_right(state.starts, offset) - 1, bisect_left(state.ends, offset))
        return self._segments[state.ids[place]] if place < len(state.ids) else None

    def find_unfinished(self, epoch: int, offset: int) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager.find_unfinished."""
        state = self._epochs.get(epoch)
        if state is None:
            return None
        found: RemoteLogSegmentMetadata | None = None
        for segment_id in state.unreferenced:
            metadata = self._segments[segment_id]
            if metadata.state is SegmentState.COPY_SEGMENT_FINISHED:
                continue
            start, end = _span(metadata, epoch)
            if start <= offset <= end and (found is None or metadata.state < found.state):
                found = metadata
        return found

    def find_next_with_transactions(
        self, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager.find_next_with_transactions."""
        state = self._epochs.get(epoch)
        found = None if state is None else state.next_with_aborts(offset)
        return None if found is None else self._segments[found]

    def highest_offset(self, epoch: int) -> int | None:
        """See RemoteLogMetadataManager.highest_offset."""
        state = self._epochs.get(epoch)
        return None if state is None or state.highest == NOTHING_COPIED else state.highest

    def segments(self, epoch: int | None = None) -> list[RemoteLogSegmentMetadata]:
        """All that are listed (of one epoch), ascending by start offset; not to be changed."""
        if epoch is None:
            self._is_shared = True
            return self._ordered
        return sorted(self._listed(epoch), key=_start_offset)

    def unfinished(self) -> list[RemoteLogSegmentMetadata]:
        """Those in another state than COPY_SEGMENT_FINISHED, ascending by start offset."""
        return sorted(self._unfinished.values(), key=_start_offset)

    def changes(self, since: int) -> list[Change] | None:
        """What has changed since `version` was `since`, in order; None: no longer known."""
        count = self.version - since
        if not 0 <= count <= len(self._changes):
            return None
        return list(islice(self._changes, len(self._changes) - count, None)) if count else []

    def size(self, epoch: int | None = None) -> int:
        """Bytes of finished segments' logs (of one epoch), replaced ones included."""
        if epoch is None:
            return self.finished_bytes
        return sum(
            metadata.segment_size_bytes
            for metadata in self._listed(epoch)
            if metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        )

    def _listed(self, epoch: int | None) -> Iterable[RemoteLogSegmentMetadata]:
        if epoch is None:
            return self._segments.values()
        state = self._epochs.get(epoch)
        if state is None:
            return ()
        return [self._segments[found] for found in (*state.ids, *state.unreferenced)]

    # -- snapshots -------------------------------------------------------------------------------

    def capture(self) -> CacheCapture:
        """What `restoring` needs; cheap, as segments are never changed, only replaced."""
        return CacheCapture(
            tuple(self._segments.values()),
            tuple(
                EpochCapture(epoch, state.highest, tuple(state.ids))
                for epoch, state in self._epochs.items()
            ),
        )

    def restoring(
        self, segments: Iterable[RemoteLogSegmentMetadata], epochs: Iterable[EpochCapture]
    ) -> Iterator[None]:
        """Fill an empty cache with what was captured; yields after every segment.

        Raises:
            KeyError: An epoch names a segment that is not among them, or that has no such epoch.
        """
        for metadata in segments:
            segment_id = metadata.id.bytes
            self._put(segment_id, None, metadata)
            if metadata.state is SegmentState.COPY_SEGMENT_FINISHED:
                self.finished_bytes += metadata.segment_size_bytes
            for epoch, _ in metadata.segment_leader_epochs:
                self._epoch(epoch).unreferenced.add(segment_id)
            yield
        for epoch, highest, referenced in epochs:
            state = self._epoch(epoch)
            state.highest = highest
            for segment_id in referenced:
                start, end = _span(self._segments[segment_id], epoch)
                state.unreferenced.remove(segment_id)
                state.starts.append(start)
                state.ends.append(end)
                state.ids.append(segment_id)
                if not self._segments[segment_id].txn_index_empty:
                    state.abort_starts.append(start)
                yield


def _start_offset(metadata: RemoteLogSegmentMetadata) -> int:
    return metadata.start_offset


def _spans(metadata: RemoteLogSegmentMetadata) -> Iterator[tuple[int, int, int]]:
    """(epoch, first offset, last offset) of each leader epoch in a segment."""
    epochs = metadata.segment_leader_epochs
    last = len(epochs) - 1
    for place, (epoch, start) in enumerate(epochs):
        yield epoch, start, metadata.end_offset if place == last else epochs[place + 1].offset - 1


def _span(metadata: RemoteLogSegmentMetadata, wanted: int) -> tuple[int, int]:
    for epoch, start, end in _spans(metadata):
        if epoch == wanted:
            return start, end
    raise KeyError(wanted)
