"""How far a segment is of our history."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints.leader_epochs import LeaderEpochCache
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.tiered.metadata.lookup_metadata import LookupMetadata
from tiered.metadata.epoch_bounds import find_segment, valid_end
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    TopicIdPartition,
)

PARTITION = TopicIdPartition(UUID(int=7), "t", 0)


def _epochs(*entries: tuple[int, int]) -> LeaderEpochCache:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    epochs = LeaderEpochCache("/d/leader-epoch-checkpoint", filesystem)
    epochs.replace(entries)
    return epochs


def _segment(start: int, end: int, *epochs: tuple[int, int]) -> RemoteLogSegmentMetadata:
    entries = tuple(SegmentEpoch(*entry) for entry in epochs)
    id_ = RemoteLogSegmentId(PARTITION, UUID(int=start + 1))
    return RemoteLogSegmentMetadata(id_, start, end, 0, 1, 0, 1000, entries)


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        (_segment(0, 90, (0, 0)), 91),
        (_segment(91, 150, (0, 91), (2, 100)), 151),
        (_segment(151, 220, (2, 151)), 180),
        (_segment(91, 120, (0, 91), (1, 100)), 100),
        (_segment(91, 120, (1, 91)), 91),
        (_segment(180, 260, (3, 180)), 261),
    ],
)
def test_where_the_lineage_leaves_the_segment(
    segment: RemoteLogSegmentMetadata, expected: int
) -> None:
    assert valid_end(segment, _epochs((0, 0), (2, 100), (3, 180))) == expected


def test_epochs_that_are_forgotten_with_the_log_start_do_no_harm() -> None:
    epochs = _epochs((0, 0), (2, 100))
    epochs.truncate_from_start(95)
    assert valid_end(_segment(0, 120, (0, 0), (2, 100)), epochs) == 121


def test_a_segment_is_found_by_the_epoch_that_wrote_the_offset() -> None:
    metadata = LookupMetadata()
    segment = _segment(0, 120, (0, 0), (1, 100))
    metadata.add_finished(segment)
    epochs = _epochs((0, 0), (2, 100))
    found = find_segment(metadata, PARTITION, epochs, 99)
    assert found is not None
    assert found.id == segment.id
    assert find_segment(metadata, PARTITION, epochs, 100) is None
    assert find_segment(metadata, PARTITION, _epochs((3, 50)), 10) is None


_HISTORY = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@given(_HISTORY, _HISTORY, st.integers(0, 4))
def test_below_the_end_both_have_the_same_epochs(
    ours: list[int], theirs: list[int], common: int
) -> None:
    """Two histories that part after `common` epochs, as no two leaders share an epoch."""
    common = min(common, len(ours), len(theirs))
    theirs[:common] = ours[:common]

    def written(sizes: list[int], own: int) -> list[int]:
        of_offset = []
        for number, size in enumerate(sizes):
            of_offset += [number if number < common else own + number] * size
        return of_offset

    mine, other = written(ours, 10), written(theirs, 100)
    entries = [(e, mine.index(e)) for e in dict.fromkeys(mine)]
    their_entries = [(e, other.index(e)) for e in dict.fromkeys(other)]
    segment = _segment(0, len(other) - 1, *their_entries)
    same = 0
    while same < min(len(mine), len(other)) and mine[same] == other[same]:
        same += 1
    end = valid_end(segment, _epochs(*entries))
    # What lies above the end of our log cannot be asked for.
    assert min(end, len(mine)) == same
