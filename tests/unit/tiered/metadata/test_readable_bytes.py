"""Sums that are kept equal sums that are made, and nobody walks over 50,000 segments."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar, cast, overload
from uuid import UUID

import pytest

from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.log.log import Log
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.tiered.metadata.segment_builder import PARTITION, STARTED, segment
from tests.unit.tiered.tasks.task_world import World
from tiered.maintenance.verified_position import Position
from tiered.maintenance.verifier import _first_finished
from tiered.metadata.lineage import Lineage
from tiered.metadata.readable_bytes import ReadableBytes
from tiered.metadata.segment_index import CHANGES_MAX, RemoteLogMetadataCache
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState
from tiered.tasks import expirer
from tiered.tasks.expiry_plan import RetentionLimits, plan_expiry

T = TypeVar("T")

MANY = 50_000


class _Log:
    """What `ReadableBytes` looks at."""

    def __init__(self, entries: Sequence[tuple[int, int]], end: int) -> None:
        self.leader_epochs = LeaderEpochCache("/epochs", FakeFilesystem())
        self.leader_epochs.replace(entries)
        self.log_end_offset = end


def _tell(
    cache: RemoteLogMetadataCache, found: RemoteLogSegmentMetadata, *states: SegmentState
) -> None:
    for state in states:
        if state is SegmentState.COPY_SEGMENT_STARTED:
            cache.add(found)
        else:
            cache.update(found.id.bytes, state, 1, 0, None)


def _expected(cache: RemoteLogMetadataCache, log: _Log) -> tuple[int, set[UUID]]:
    lineage = Lineage(log.leader_epochs.entries(), log.log_end_offset)
    finished = [s for s in cache.segments() if s.state is SegmentState.COPY_SEGMENT_FINISHED]
    inside = [s for s in finished if lineage.contains(s)]
    return sum(s.segment_size_bytes for s in inside), {s.id for s in finished} - {
        s.id for s in inside
    }


def _up_to_date(sums: ReadableBytes, cache: RemoteLogMetadataCache, log: _Log) -> int:
    turns = 1
    while not sums.advance(cache, cast("Log", log), 7):
        turns += 1
    return turns


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_equals_what_is_there(seed: int) -> None:
    random = Random(seed)
    cache = RemoteLogMetadataCache()
    log = _Log([(0, 0), (2, 300), (5, 600)], 1000)
    sums = ReadableBytes()
    known: list[RemoteLogSegmentMetadata] = []
    for step in range(300):
        action = random.random()
        if action < 0.5 or not known:
            start = random.randrange(0, 990)
            epoch = random.choice([0, 1, 2, 5])
            end = start + random.randrange(1, 30)
            found = segment(start, end, {epoch: start}, number=step + 1, state=STARTED)
            _tell(cache, found, SegmentState.COPY_SEGMENT_STARTED)
            known.append(found)
        elif action < 0.9:
            present = cache.segment(random.choice(known).id)
            if present is not None:
                _tell(cache, present, SegmentState(present.state + 1))
        elif action < 0.93:
            log.log_end_offset += 10
            log.leader_epochs.assign(6 + step, log.log_end_offset - 10)
        if random.random() < 0.3:
            _up_to_date(sums, cache, log)
            assert (sums.bytes, set(sums.outside)) == _expected(cache, log)
        elif random.random() < 0.2:
            # Left off in the middle of it.
            sums.advance(cache, cast("Log", log), 3)


def test_only_changes_are_looked_at_again() -> None:
    cache = RemoteLogMetadataCache()
    log = _Log([(0, 0), (1, 30), (2, 90)], 10_000)
    for at in range(100):
        _tell(cache, segment(at * 10, at * 10 + 9, state=STARTED), STARTED)
    sums = ReadableBytes()
    assert _up_to_date(sums, cache, log) == 15
    before = sums.examined
    _up_to_date(sums, cache, log)
    log.leader_epochs.truncate_from_start(40)
    log.log_end_offset += 5
    _up_to_date(sums, cache, log)
    assert sums.examined == before, "the oldest epoch has gone, with what it had"
    log.leader_epochs.assign(7, 10_005)
    _up_to_date(sums, cache, log)
    assert sums.examined == 2 * before
    found = cache.segments()[0]
    for _ in range(CHANGES_MAX + 1):
        _tell(cache, found, SegmentState.COPY_SEGMENT_STARTED)
    _up_to_date(sums, cache, log)
    assert (sums.bytes, set(sums.outside)) == _expected(cache, log)


class _Counted(Sequence[T]):
    """Counts what is taken out of a sequence."""

    def __init__(self, items: Sequence[T]) -> None:
        self._items = items
        self.taken = 0

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: Any) -> Any:
        self.taken += 1
        return self._items[at]

    def __iter__(self) -> Iterator[T]:
        for item in self._items:
            self.taken += 1
            yield item


@pytest.fixture(scope="module")
def many() -> RemoteLogMetadataCache:
    cache = RemoteLogMetadataCache()
    for at in range(MANY):
        found = segment(at * 10, at * 10 + 9, timestamp_ms=at, state=STARTED)
        found = replace(found, txn_index_empty=at != MANY - 2)
        _tell(
            cache,
            found,
            SegmentState.COPY_SEGMENT_STARTED,
            SegmentState.COPY_SEGMENT_FINISHED,
        )
    return cache


def test_a_look_at_a_partition_with_very_many_segments_takes_the_oldest_only(
    many: RemoteLogMetadataCache,
) -> None:
    log = _Log([(0, 0)], MANY * 10)
    sums = ReadableBytes()
    while not sums.advance(many, cast("Log", log), 1000):
        pass
    before = sums.examined
    for start, limits, removed in (
        (0, RetentionLimits(None, None), 0),
        (0, RetentionLimits(2, None), 3),
        (0, RetentionLimits(None, sums.bytes - 250), 2),
        (50, RetentionLimits(None, None), 5),
    ):
        assert sums.advance(many, cast("Log", log), 1000)
        segments = _Counted(many.segments())
        plan = plan_expiry(
            segments,
            many.unfinished(),
            Lineage([(0, 0)], MANY * 10),
            limits,
            sums,
            log_start_offset=start,
            leader_epoch=0,
            only_local_bytes=0,
            in_flight=(),
        )
        assert len(plan.removals) == removed
        assert segments.taken < 20
    assert sums.examined == before


def test_the_next_to_be_verified_is_found_without_a_walk(many: RemoteLogMetadataCache) -> None:
    everything = many.segments()
    for at in (0, 20_000, MANY - 2):
        segments = _Counted(everything)
        assert _first_finished(segments, Position.of(everything[at])) is everything[at + 1]
        assert segments.taken < 30
    assert _first_finished(everything, Position.of(everything[-1])) is None
    assert _first_finished(everything, None) is everything[0]


def test_the_next_with_aborts_is_found_without_a_walk(many: RemoteLogMetadataCache) -> None:
    state = many._epochs[0]
    state.starts = cast("list[int]", starts := _Counted(state.starts))
    try:
        found = many.find_next_with_transactions(0, 5)
        assert found is not None
        assert found.start_offset == (MANY - 2) * 10
        assert many.find_next_with_transactions(0, MANY * 10 - 5) is None
        assert starts.taken < 100
    finally:
        state.starts = list(starts)


async def test_the_sums_of_a_new_leadership_are_made_in_turns() -> None:
    """Others have their turn in between; what has expired goes all the same."""
    world = World()
    world.write(30)
    await world.start()
    await world.interval(30)
    assert len(world.finished()) == 30
    await world.crash()
    world.set_config(retention_bytes=0)
    before, expirer.STEPS_PER_SLICE = expirer.STEPS_PER_SLICE, 4  # type: ignore[misc]  # many, then
    try:
        await world.start()
        await world.interval(2)
    finally:
        expirer.STEPS_PER_SLICE = before  # type: ignore[misc]  # as it was
    assert world.finished() == []
    assert world.metadata.known_of(PARTITION).unfinished() == []
