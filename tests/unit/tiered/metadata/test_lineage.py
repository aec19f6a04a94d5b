"""What belongs to a log, how far it was copied, and where it starts."""

from dataclasses import replace

import pytest

from storage.log.log import Log
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.remote_metadata import FakeRemoteMetadata, MetadataEvents
from tests.unit.storage.log.log_model import append, make_batch, open_log
from tests.unit.tiered.metadata.segment_builder import PARTITION, STARTED, segment, set_epochs
from tests.unit.tiered.tasks.task_world import tiered_config
from tiered.metadata.lineage import (
    Lineage,
    find_highest_remote_offset,
    find_local_hole,
    find_log_start_offset,
    without_empty_epochs,
)
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
)

ENTRIES = [(0, 0), (2, 100), (3, 180)]


def test_epochs_without_records_are_left_out() -> None:
    """The example of Kafka's buildFilteredLeaderEpochMap."""
    entries = [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40), (5, 60), (6, 60), (7, 70)]
    kept = without_empty_epochs(entries)
    assert [epoch for epoch, _ in kept] == [0, 1, 2, 3, 4, 6, 7]


@pytest.mark.parametrize(
    ("start", "end", "epochs", "belongs"),
    [
        (0, 90, {0: 0}, True),
        (91, 150, {0: 91, 2: 100}, True),
        (151, 179, {2: 151}, True),
        (151, 185, {2: 151}, False),
        (91, 120, {0: 91, 1: 100}, False),
        (91, 150, {0: 91, 2: 101}, False),
        (180, 199, {3: 180}, True),
        (180, 200, {3: 180}, False),
        (180, 190, {4: 180}, False),
        (91, 150, {0: 91, 1: 100, 2: 100}, True),
        (90, 190, {0: 90, 3: 180}, False),
        (95, 150, {2: 95}, False),
    ],
)
def test_belongs(start: int, end: int, epochs: dict[int, int], belongs: bool) -> None:
    lineage = Lineage(ENTRIES, 200)
    assert lineage.contains(segment(start, end, epochs)) is belongs


def test_overlapping_segments_belong_after_the_start_has_moved() -> None:
    """Kafka's example: epochs below the first one known are not looked at."""
    lineage = Lineage([(7, 51), (9, 100)], 151)
    assert lineage.contains(segment(14, 150, {5: 14, 7: 15, 9: 100}))
    assert not lineage.contains(segment(5, 50, {4: 5, 5: 10}))
    assert not Lineage([], 100).contains(segment(0, 9))
    assert (lineage.first_epoch, lineage.last_epoch) == (7, 9)
    assert Lineage([], 1).first_epoch is None


def _world(  # type: ignore[no-untyped-def]  # a log and its metadata
    epochs: dict[int, int], *segments: RemoteLogSegmentMetadata, end: int = 10, rolls: bool = False
):
    log = open_log(FakeFilesystem(), tiered_config())
    for _ in range(end):
        append(log, make_batch(b"x" * 40))
        if rolls:
            log.writer.roll()
    set_epochs(log, epochs)
    events = MetadataEvents()
    for found in segments:
        finished = found.state is SegmentState.COPY_SEGMENT_FINISHED
        events.events.append(replace(found, state=STARTED))
        if finished:
            events.events.append(
                RemoteLogSegmentMetadataUpdate(found.segment_id, 0, found.state, 1)
            )
    metadata = FakeRemoteMetadata(events)
    metadata.assign([PARTITION])
    return log, metadata


def test_copying_goes_on_after_the_newest_epoch_that_was_copied() -> None:
    """The seed's example: broker A copied epoch 0 to offset 4 and died; B resumes at 5."""
    log, metadata = _world({0: 0, 1: 7}, segment(0, 2), segment(3, 4))
    assert find_highest_remote_offset(metadata, PARTITION, log) == 4
    log, metadata = _world({0: 0, 1: 7}, segment(0, 4), segment(5, 8, {0: 5, 1: 7}))
    assert find_highest_remote_offset(metadata, PARTITION, log) == 8


def test_what_a_past_leader_copied_beyond_its_end_here_does_not_count() -> None:
    log, metadata = _world({0: 0, 1: 7}, segment(0, 8))
    assert find_highest_remote_offset(metadata, PARTITION, log) == 6


def test_nothing_copied() -> None:
    log, metadata = _world({0: 0})
    assert find_highest_remote_offset(metadata, PARTITION, log) == -1
    assert find_log_start_offset(metadata, PARTITION, log) == log.local_log_start_offset


async def test_a_copy_that_was_removed_again_does_not_count() -> None:
    """Its end was told late: the metadata remembers the offset for good, but nobody has it."""
    log, metadata = _world({0: 0}, segment(0, 2), segment(3, 5))
    gone = segment(3, 5)
    for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        await metadata.update(RemoteLogSegmentMetadataUpdate(gone.segment_id, 0, state, 1))
    assert metadata.highest_offset(PARTITION, 0) == 5
    assert find_highest_remote_offset(metadata, PARTITION, log) == 2
    # Below the log start it is what expiry does every day.
    log.delete_records(6)
    assert find_highest_remote_offset(metadata, PARTITION, log) == 5


def _keep_from(log: Log, offset: int) -> None:
    """Local retention has taken what lies before; the log start has not moved."""
    log.update_high_watermark(log.log_end_offset)
    log.highest_remote_offset = log.durable_remote_offset = offset - 1
    log.update_config(tiered_config(local_retention_bytes=0))
    log.retention.delete_old_segments()
    assert (log.log_start_offset, log.local_log_start_offset) == (0, offset)


@pytest.mark.parametrize("local_from", [0, 3])
@pytest.mark.parametrize(
    ("copied", "first_missing"),
    [
        ([(0, 2), (3, 5), (6, 8)], None),
        ([(0, 2), (6, 8)], 3),
        ([(0, 3), (2, 5), (8, 8)], 6),
        ([(0, 2), (3, 3), (5, 8)], 4),
    ],
)
def test_copied_is_what_has_no_hole_that_the_local_log_could_fill(
    copied: list[tuple[int, int]], first_missing: int | None, local_from: int
) -> None:
    log, metadata = _world({0: 0}, *(segment(*one) for one in copied), rolls=True)
    if local_from:
        _keep_from(log, local_from)
    assert find_local_hole(metadata, PARTITION, log, 8) == first_missing
    assert find_local_hole(metadata, PARTITION, log, 2) is None
    highest = 8 if first_missing is None else first_missing - 1
    assert find_highest_remote_offset(metadata, PARTITION, log) == highest
    assert find_log_start_offset(metadata, PARTITION, log) == 0


def test_a_hole_below_the_local_log_holds_nothing_up() -> None:
    """Nobody can fill it."""
    log, metadata = _world({0: 0}, segment(0, 0), segment(2, 8), rolls=True)
    _keep_from(log, 2)
    assert find_highest_remote_offset(metadata, PARTITION, log) == 8


def test_the_log_starts_with_the_first_finished_segment() -> None:
    """Also when a crash has made the log forget that it starts there."""
    log, metadata = _world({0: 0}, segment(3, 5), segment(6, 7), rolls=True)
    _keep_from(log, 4)
    assert (log.log_start_offset, find_log_start_offset(metadata, PARTITION, log)) == (0, 3)


def test_no_local_record_is_given_up_for_a_segment_that_is_missing() -> None:
    log, metadata = _world({0: 0}, segment(3, 5), segment(6, 7), rolls=True)
    assert find_log_start_offset(metadata, PARTITION, log) == 0
    assert find_highest_remote_offset(metadata, PARTITION, log) == -1
    _keep_from(log, 1)
    assert find_log_start_offset(metadata, PARTITION, log) == 1
    assert find_highest_remote_offset(metadata, PARTITION, log) == 0
    log.delete_records(2)
    assert find_log_start_offset(metadata, PARTITION, log) == 2


def test_a_segment_that_is_overwritten_only_at_its_end_still_counts() -> None:
    """Nobody may take its first records away."""
    log, metadata = _world({0: 0, 3: 6}, segment(3, 8), segment(6, 9, {3: 6}))
    log.delete_records(3)
    assert find_log_start_offset(metadata, PARTITION, log) == 3


def test_a_begun_copy_may_be_the_only_one() -> None:
    log, metadata = _world({0: 0}, segment(0, 2, state=STARTED), segment(3, 5))
    assert find_log_start_offset(metadata, PARTITION, log) == 0
