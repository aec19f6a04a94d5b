"""Which segment is found, by Kafka's own examples and against a model that is slow and simple."""

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.effort import examples
from tiered.errors import InvalidTransitionError
from tiered.metadata.segment_index import RemoteLogMetadataCache
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

P0 = TopicIdPartition(UUID(int=1), "t", 0)
STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETING = SegmentState.DELETE_SEGMENT_STARTED
DELETED = SegmentState.DELETE_SEGMENT_FINISHED


def segment(
    number: int,
    start: int,
    end: int,
    *epochs: tuple[int, int],
    size: int = 10,
    txn_index_empty: bool = False,
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(P0, UUID(int=number)),
        start,
        end,
        0,
        1,
        0,
        size,
        tuple(SegmentEpoch(*epoch) for epoch in epochs or ((0, start),)),
        txn_index_empty=txn_index_empty,
    )


def tell(
    cache: RemoteLogMetadataCache, metadata: RemoteLogSegmentMetadata, *states: SegmentState
) -> None:
    for state in states:
        if state is STARTED:
            cache.add(metadata)
        else:
            cache.update(metadata.id.bytes, state, 1, 0, None)


def copied(
    cache: RemoteLogMetadataCache, *segments: RemoteLogSegmentMetadata
) -> RemoteLogMetadataCache:
    for metadata in segments:
        tell(cache, metadata, STARTED, FINISHED)
    return cache


def found(cache: RemoteLogMetadataCache, epoch: int, offset: int) -> int | None:
    metadata = cache.find(epoch, offset)
    return None if metadata is None else metadata.id.int


def listed(cache: RemoteLogMetadataCache, epoch: int | None = None) -> set[int]:
    return {metadata.id.int for metadata in cache.segments(epoch)}


def test_a_segment_of_several_epochs() -> None:
    """Kafka's example: one segment, epochs 0, 1, 3, 2 is missing."""
    cache = copied(RemoteLogMetadataCache(), segment(1, 0, 100, (0, 0), (1, 20), (3, 80)))
    assert [found(cache, 0, offset) for offset in (0, 19, 20)] == [1, 1, None]
    assert [found(cache, 1, offset) for offset in (19, 20, 79, 80)] == [None, 1, 1, None]
    assert [found(cache, 3, offset) for offset in (79, 80, 100, 101)] == [None, 1, 1, None]
    assert found(cache, 2, 50) is None
    assert [cache.highest_offset(epoch) for epoch in range(4)] == [19, 79, None, 100]


def test_a_longer_segment_replaces_a_shorter_one() -> None:
    """Case 1 of KAFKA-15168: the next leader uploads a superset."""
    cache = copied(RemoteLogMetadataCache(), segment(1, 0, 100), segment(2, 0, 200))
    assert found(cache, 0, 50) == 2
    assert listed(cache) == listed(cache, 0) == {1, 2}
    tell(cache, segment(1, 0, 100), DELETING)
    assert found(cache, 0, 50) == 2
    tell(cache, segment(1, 0, 100), DELETED)
    assert listed(cache) == listed(cache, 0) == {2}


def test_overlapping_segments() -> None:
    """Case 2: the consumer that wants 95 gets S1, not S0, which ends at 90."""
    cache = copied(
        RemoteLogMetadataCache(),
        segment(1, 10, 90),
        segment(2, 5, 100),
        segment(3, 101, 200),
    )
    assert [found(cache, 0, offset) for offset in (4, 5, 10, 95, 100, 101, 200, 201)] == [
        None,
        2,
        2,
        2,
        2,
        3,
        3,
        None,
    ]
    assert listed(cache, 0) == {1, 2, 3}


def test_several_are_replaced_at_once() -> None:
    cache = copied(
        RemoteLogMetadataCache(),
        segment(1, 10, 19),
        segment(2, 20, 29),
        segment(3, 30, 39),
        segment(4, 10, 45),
    )
    assert {found(cache, 0, offset) for offset in range(10, 46)} == {4}


def test_a_shorter_segment_does_not_replace_a_longer_one() -> None:
    """Kafka would find nothing for 60 then."""
    cache = copied(RemoteLogMetadataCache(), segment(1, 0, 100), segment(2, 0, 50))
    assert [found(cache, 0, offset) for offset in (0, 60, 100)] == [1, 1, 1]
    assert listed(cache, 0) == {1, 2}
    assert cache.highest_offset(0) == 100


def test_a_segment_within_another_does_not_hide_it() -> None:
    """Nor one that comes late and spans several."""
    cache = copied(RemoteLogMetadataCache(), segment(1, 0, 100), segment(2, 20, 50))
    assert [found(cache, 0, offset) for offset in (10, 30, 60)] == [1, 1, 1]
    assert listed(cache, 0) == {1, 2}
    cache = copied(
        RemoteLogMetadataCache(),
        segment(1, 0, 10),
        segment(2, 20, 30),
        segment(3, 40, 200),
        segment(4, 15, 100),
    )
    assert [found(cache, 0, offset) for offset in (5, 15, 25, 35, 40, 150)] == [1, 4, 4, 4, 3, 3]


def test_replaced_in_one_epoch_only() -> None:
    """A segment may be found for one epoch and be replaced for another."""
    cache = copied(
        RemoteLogMetadataCache(),
        segment(1, 0, 100, (0, 0), (1, 50)),
        segment(2, 0, 49, (0, 0)),
    )
    assert (found(cache, 0, 10), found(cache, 1, 60)) == (2, 1)
    assert listed(cache, 0) == {1, 2}
    tell(cache, segment(2, 0, 49, (0, 0)), DELETING)
    assert (found(cache, 0, 10), found(cache, 1, 60)) == (None, 1)


def test_a_failed_copy_is_listed_until_it_is_deleted() -> None:
    """KAFKA-16511: what is not listed is never cleaned up."""
    cache = RemoteLogMetadataCache()
    tell(cache, segment(1, 0, 9), STARTED)
    assert (listed(cache), listed(cache, 0), found(cache, 0, 5)) == ({1}, {1}, None)
    tell(cache, segment(1, 0, 9), DELETING)
    assert (listed(cache), listed(cache, 0)) == ({1}, {1})
    tell(cache, segment(1, 0, 9), DELETED)
    assert (listed(cache), listed(cache, 0), len(cache)) == (set(), set(), 0)
    assert cache.highest_offset(0) is None


def test_what_was_copied_is_remembered_when_it_is_deleted() -> None:
    cache = copied(RemoteLogMetadataCache(), segment(1, 0, 9))
    tell(cache, segment(1, 0, 9), DELETING, DELETED)
    assert cache.highest_offset(0) == 9


def test_told_again_changes_nothing() -> None:
    cache = copied(RemoteLogMetadataCache(), segment(1, 0, 100), segment(2, 0, 200))
    tell(cache, segment(1, 0, 100), FINISHED)
    assert found(cache, 0, 50) == 2
    tell(cache, segment(1, 0, 100), DELETING, DELETING)
    assert cache.size() == 10
    tell(cache, segment(3, 300, 310, (0, 300), (1, 305)), STARTED)
    tell(cache, segment(3, 300, 310, (0, 300)), STARTED)
    assert listed(cache, 1) == set()


def test_illegal_steps() -> None:
    cache = copied(RemoteLogMetadataCache(), segment(1, 0, 9))
    for number, state in ((1, STARTED), (1, DELETED), (2, FINISHED), (2, DELETED)):
        with pytest.raises(InvalidTransitionError):
            cache.update(UUID(int=number).bytes, state, 1, 0, None)
    with pytest.raises(InvalidTransitionError):
        cache.add(segment(1, 0, 9))
    update = RemoteLogSegmentMetadataUpdate(RemoteLogSegmentId(P0, UUID(int=2)), 0, FINISHED, 1)
    with pytest.raises(InvalidTransitionError):
        cache.check_update(update)
    assert (listed(cache), found(cache, 0, 5)) == ({1}, 1)


def test_the_next_segment_with_transactions() -> None:
    cache = copied(
        RemoteLogMetadataCache(),
        segment(1, 10, 19, txn_index_empty=True),
        segment(2, 20, 29),
        segment(3, 30, 39, txn_index_empty=True),
        segment(4, 50, 59),
    )

    def following(offset: int, epoch: int = 0) -> int | None:
        metadata = cache.find_next_with_transactions(epoch, offset)
        return None if metadata is None else metadata.id.int

    assert [following(offset) for offset in (0, 15, 29, 30, 45, 59, 60)] == [
        2,
        2,
        2,
        4,
        4,
        4,
        None,
    ]
    assert following(0, epoch=1) is None


def test_sizes() -> None:
    cache = copied(
        RemoteLogMetadataCache(),
        segment(1, 0, 9, size=5),
        segment(2, 10, 19, (0, 10), (1, 15), size=7),
    )
    tell(cache, segment(3, 20, 29, (1, 20), size=100), STARTED)
    assert (cache.size(), cache.size(0), cache.size(1), cache.size(2)) == (12, 12, 7, 0)
    tell(cache, segment(1, 0, 9), DELETING)
    assert (cache.size(), cache.size(0)) == (7, 7)


class CacheMachine(RuleBasedStateMachine):
    """The cache beside lists that are searched from end to end; restored now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = RemoteLogMetadataCache()
        self.segments: dict[int, RemoteLogSegmentMetadata] = {}
        # Per epoch: (start, end, segment) of what is found, and what was copied at most.
        self.found: dict[int, list[tuple[int, int, int]]] = {}
        self.highest: dict[int, int] = {}
        self.number = 0

    @rule(start=st.integers(0, 12), size=st.integers(1, 8), cuts=st.sets(st.integers(1, 7)))
    def add(self, start: int, size: int, cuts: set[int]) -> None:
        self.number += 1
        starts = [start, *(start + cut for cut in sorted(cuts) if cut < size)]
        first = start % 3
        epochs = tuple((first + place, offset) for place, offset in enumerate(starts))
        metadata = segment(self.number, start, start + size - 1, *epochs)
        self.segments[self.number] = metadata
        self.cache.add(metadata)

    def spans(self, metadata: RemoteLogSegmentMetadata) -> list[tuple[int, int, int]]:
        epochs = [*metadata.segment_leader_epochs, (None, metadata.end_offset + 1)]
        return [
            (epoch, start, after - 1)
            for (epoch, start), (_, after) in pairwise(epochs)
            if epoch is not None
        ]

    @precondition(lambda self: self.segments)
    @rule(data=st.data(), state=st.sampled_from(SegmentState))
    def update(self, data: st.DataObject, state: SegmentState) -> None:
        number = data.draw(st.sampled_from(sorted(self.segments)))
        metadata = self.segments[number]
        legal = {
            STARTED: {FINISHED, DELETING},
            FINISHED: {FINISHED, DELETING},
            DELETING: {DELETING, DELETED},
        }[metadata.state]
        update = RemoteLogSegmentMetadataUpdate(metadata.segment_id, 0, state, 1)
        if state not in legal:
            with pytest.raises(InvalidTransitionError):
                tell_update(self.cache, update)
            return
        tell_update(self.cache, update)
        if state is metadata.state:
            return
        self.segments[number] = metadata.with_update(update)
        if state is FINISHED:
            for epoch, start, end in self.spans(metadata):
                self.finish(epoch, start, end, number)
        else:
            for entries in self.found.values():
                entries[:] = [entry for entry in entries if entry[2] != number]
            if state is DELETED:
                del self.segments[number]

    def finish(self, epoch: int, start: int, end: int, number: int) -> None:
        entries = self.found.setdefault(epoch, [])
        if not any(first <= start and end < last for first, last, _ in entries):
            entries[:] = [entry for entry in entries if entry[0] < start or entry[1] > end]
            entries.append((start, end, number))
        self.highest[epoch] = max(self.highest.get(epoch, -1), end)

    @rule()
    def restore(self) -> None:
        capture = self.cache.capture()
        self.cache = RemoteLogMetadataCache()
        for _ in self.cache.restoring(capture.segments, capture.epochs):
            pass

    @invariant()
    def agrees(self) -> None:
        cache = self.cache
        assert {m.id.int: m for m in cache.segments()} == self.segments
        starts = [m.start_offset for m in cache.segments()]
        assert starts == sorted(starts)
        assert cache.size() == 10 * sum(m.state is FINISHED for m in self.segments.values())
        for epoch in range(12):
            assert cache.highest_offset(epoch) == self.highest.get(epoch)
            having = {
                number
                for number, metadata in self.segments.items()
                if any(epoch == known for known, _ in metadata.segment_leader_epochs)
            }
            assert listed(cache, epoch) == having
            assert len(cache.segments(epoch)) == len(having)
            for offset in range(22):
                # Nothing that is copied is hidden by something else.
                having_it = [e for e in self.found.get(epoch, []) if e[0] <= offset <= e[1]]
                expected = max(having_it)[2] if having_it else None
                assert found(cache, epoch, offset) == expected
                later = [e for e in self.found.get(epoch, []) if e[0] > offset]
                following = cache.find_at_or_after(epoch, offset)
                assert (None if following is None else following.id.int) == (
                    expected or (min(later)[2] if later else None)
                )
                unfinished = cache.find_unfinished(epoch, offset)
                states = {
                    metadata.state
                    for metadata in self.segments.values()
                    if metadata.state is not FINISHED
                    for known, first, last in self.spans(metadata)
                    if known == epoch and first <= offset <= last
                }
                # A copy under way counts before one that is being removed.
                assert (unfinished and unfinished.state) == (min(states) if states else None)


def tell_update(cache: RemoteLogMetadataCache, update: RemoteLogSegmentMetadataUpdate) -> None:
    cache.update(
        update.segment_id.id.bytes,
        update.state,
        update.broker_id,
        update.event_timestamp_ms,
        update.custom_metadata,
    )


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = examples(60, steps=30)
