"""Opening a log: leftovers of interrupted work, stops of both kinds, checkpoints that are off."""

from random import Random

import pytest

from protocol.records.batch import read_header
from storage.cleaner.cleaned_segment import CleanedSegment
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, Event, FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    read_records,
    small_segments,
)

COMPACT = small_segments(150, cleanup_policy=("compact",))


def _filled(filesystem: FakeFilesystem, count: int = 6) -> Log:
    log = open_log(filesystem, small_segments(150))
    for number in range(count):
        append(log, make_batch(bytes([65 + number]) * 40, timestamp_ms=NOW_MS + number))
    return log


def _names(filesystem: FakeFilesystem) -> set[str]:
    return {entry.name for entry in filesystem.list_directory(DIRECTORY)}


def test_a_clean_stop_is_not_scanned() -> None:
    """Only the end of the active segment is read."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    log.close()
    filesystem.reads = 0
    log = open_log(filesystem, opened=Opened(0, clean_shutdown=True))
    assert (log.log_end_offset, log.recovery_point) == (6, 6)
    assert filesystem.reads <= 3


def test_producers_that_a_start_has_read_outlive_a_clean_stop_and_a_power_cut() -> None:
    """Their snapshot was the start's, which no stop had synced; and without any they are none."""
    filesystem = FakeFilesystem()
    filesystem.mkdir(DIRECTORY)
    filesystem.sync_directory("/data")
    filesystem.sync_directory("/")
    log = open_log(filesystem)
    append(log, make_batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    log.flusher.flush()
    for is_clean in (False, True, True):
        filesystem.crash(KEEP_ALL)
        log = open_log(filesystem, opened=Opened(1, clean_shutdown=is_clean))
        log.close()
        filesystem.crash()
        for seed in range(20):
            found = open_log(filesystem.after_crash(Random(seed)), opened=Opened(1, 0, True))
            assert found.producer_state.last_entry(7) is not None, (is_clean, seed)
        snapshot = f"{DIRECTORY}/{1:020d}.snapshot"
        assert filesystem.peek(snapshot)


def test_an_idle_log_is_closed_without_touching_the_disk() -> None:
    """Thousands of partitions stop quickly."""
    filesystem = FakeFilesystem()
    _filled(filesystem).close()
    log = open_log(filesystem, opened=Opened(6, clean_shutdown=True))
    before = filesystem.changes
    log.close()
    assert filesystem.changes == before


def test_only_what_lies_above_the_recovery_point_is_scanned() -> None:
    """Damage below it is not looked for; the progress counts the bytes."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    log.flusher.flush(log.active_base_offset)
    seen: list[tuple[int, int]] = []
    log2 = Log.open(
        DIRECTORY,
        log.topic_partition,
        topic_id=log.topic_id,
        config=log.config,
        environment=FakeEnvironment(filesystem=filesystem),
        checkpointed=CheckpointedLog(recovery_point=log.recovery_point),
        on_progress=lambda done, total: seen.append((done, total)),
    )
    size = log.segment_facts()[-1].size
    assert seen[-1] == (size, size)
    assert log2.recovery_point == log.recovery_point
    assert read_batches(log2) == read_batches(log)


def test_a_clean_stop_that_was_none_is_noticed() -> None:
    """A log that does not end with a whole batch is scanned, marker or not."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    log.close()
    path = log.segment_facts()[-1].path
    filesystem.poke(path, filesystem.peek(path)[:-1])
    log = open_log(filesystem, opened=Opened(6, clean_shutdown=True))
    assert log.log_end_offset == 5
    assert log.recovery_point == 5
    assert append(log, make_batch(b"x")).first_offset == 5


def test_what_follows_a_gap_is_dropped() -> None:
    """A later segment may have reached the disk while the end of this one did not."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    first, second = log.segment_facts()[:2]
    # Empty, as if its only write had been lost: no bad byte gives it away.
    filesystem.poke(second.path, b"")
    log = open_log(filesystem, small_segments(150))
    assert log.log_end_offset == second.base_offset
    assert read_batches(log)[-1] == filesystem.peek(first.path)


def test_a_base_offset_that_jumps_is_found_in_a_compacted_log_too() -> None:
    """Gaps are allowed there, but the next batch must lie beyond."""
    filesystem = FakeFilesystem()
    wide = small_segments(9999, cleanup_policy=("compact",))
    log = open_log(filesystem, wide)
    for _ in range(4):
        append(log, make_batch(b"x"))
    batches = read_batches(log)
    path = log.segment_facts()[0].path
    data = bytearray(filesystem.peek(path))
    data[len(batches[0]) * 2 + 6] ^= 1
    filesystem.poke(path, bytes(data))
    log = open_log(filesystem, wide)
    assert read_batches(log) == batches[:2]
    assert append(log, make_batch(b"y")).first_offset == 2


def test_gaps_of_compaction_are_kept() -> None:
    """Offsets go on after them."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, COMPACT)
    for offset in (0, 7, 9):
        batch = make_batch(b"x")
        batch[0:8] = offset.to_bytes(8, "big")
        log.follower.append(batch)
    log = open_log(filesystem, COMPACT)
    assert [record.offset for record in read_records(log)] == [0, 7, 9]
    assert log.log_end_offset == 10


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned"])
def test_leftovers_are_removed(suffix: str) -> None:
    """What was being deleted or written when the power went."""
    filesystem = FakeFilesystem()
    expected = read_batches(_filled(filesystem))
    for kind in (".log", ".index", ".timeindex"):
        filesystem.poke(f"{DIRECTORY}/{0:020d}{kind}{suffix}", b"whatever")
    filesystem.poke(f"{DIRECTORY}/leader-epoch-checkpoint.tmp", b"0\n")
    filesystem.poke(f"{DIRECTORY}/{77:020d}.index", bytes(8))
    log = open_log(filesystem)
    assert read_batches(log) == expected
    assert not any(name.endswith((suffix, ".tmp")) for name in _names(filesystem))
    assert f"{77:020d}.index" not in _names(filesystem)


def _cleaned(filesystem: FakeFilesystem, log: Log, keep: list[int]) -> list[bytes]:
    """Write a .cleaned segment of the batches at `keep`, for the first two segments."""
    batches = read_batches(log)
    cleaned = CleanedSegment(DIRECTORY, 0, filesystem, 90)
    for at in keep:
        cleaned.append(read_header(batches[at]), batches[at])
    cleaned.finish()
    return [batches[at] for at in keep]


def test_compaction_survives_a_crash_at_every_step() -> None:
    """Before the swap the old segments are there, after it the new one; never both, never none."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, COMPACT)
    for number in range(6):
        append(log, make_batch(bytes([65 + number]) * 40, timestamp_ms=NOW_MS + number))
    log.flusher.flush()
    filesystem.sync_directory("/")
    before = read_batches(log)
    old = [segment.base_offset for segment in log.segment_facts()[:2]]
    boundary = log.segment_facts()[2].base_offset
    after = _cleaned(filesystem, log, [boundary - 1]) + before[boundary:]
    filesystem.sync_directory(DIRECTORY)
    disks: list[FakeFilesystem] = []

    def observe(event: Event) -> None:
        disks.extend(
            filesystem.after_crash(keep) for keep in (None, KEEP_ALL, Random(event.number))
        )

    filesystem.observer = observe
    log.replacement.replace(0, old)
    assert read_batches(log) == after
    found = []
    for disk in disks:
        restarted = open_log(disk, COMPACT, opened=Opened(log.recovery_point))
        assert restarted.log_end_offset == 6
        found.append(read_batches(restarted))
    assert len(found) > 30
    assert all(batches in (before, after) for batches in found)
    assert before in found
    assert after in found


def test_replaced_segments_go_after_the_delay() -> None:
    """The new one is read at once; reads under way keep the old file."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    kept = _cleaned(filesystem, log, [1])
    boundary = log.segment_facts()[2].base_offset
    old = [segment.base_offset for segment in log.segment_facts()[:2]]
    rest = read_batches(log)[boundary:]
    log.replacement.replace(0, old)
    assert read_batches(log) == kept + rest
    assert log.deletion.remove_deleted_files(now=True) == 2
    assert not any(".deleted" in name or ".swap" in name for name in _names(filesystem))
    assert read_batches(log) == kept + rest


def test_a_log_that_ends_before_its_start_begins_again() -> None:
    """Files were taken away by hand: the start offset is what was promised."""
    filesystem = FakeFilesystem()
    _filled(filesystem, 3)
    log = open_log(filesystem, opened=Opened(0, log_start_offset=50))
    assert (log.log_start_offset, log.log_end_offset, log.size()) == (50, 50, 0)
    assert append(log, make_batch(b"x")).first_offset == 50
    assert open_log(filesystem, opened=Opened(0, 50)).log_end_offset == 51


def test_checkpoints_are_brought_into_range() -> None:
    """A recovery point beyond the end, a start before the first segment."""
    filesystem = FakeFilesystem()
    _filled(filesystem)
    log = open_log(filesystem, opened=Opened(recovery_point=999))
    assert log.recovery_point == log.log_end_offset == 6
    log.update_high_watermark(999)
    assert log.high_watermark == 6
    log.update_high_watermark(-5)
    assert log.high_watermark == 0


def test_a_second_start_finds_the_same() -> None:
    """Recovering twice changes nothing."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    path = log.segment_facts()[-1].path
    filesystem.poke(path, filesystem.peek(path)[:-3])
    first = read_batches(open_log(filesystem))
    names = _names(filesystem)
    assert read_batches(open_log(filesystem)) == first
    assert _names(filesystem) == names


def test_an_emptied_log_still_knows_its_epoch() -> None:
    """Or a consumer that has read it all would be told that its offset is unknown."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    log.delete_records(6)
    for _ in range(2):
        log = open_log(filesystem, opened=Opened(0, log_start_offset=6))
        assert log.reader.end_offset_for_epoch(0) == (0, 6)
