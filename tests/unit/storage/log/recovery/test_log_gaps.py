"""Logs whose offsets have gaps, and segments that no longer belong to their log, after any stop.

A gap is what compaction leaves, whatever `cleanup.policy` says by now. A segment with sound batches
that an earlier damage cuts off is kept beside the log.
"""

import pytest

from config.topic import TopicConfig
from protocol.records.batch import read_header
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    NOW_MS,
    TOPIC_ID,
    TOPIC_PARTITION,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    read_records,
    small_segments,
)

WIDE = small_segments(10_000)


def put_segment(filesystem: FakeFilesystem, base_offset: int, *batches: memoryview) -> None:
    """A `.log` file as compaction, or a hand, has left it; its indexes are made by recovery."""
    filesystem.poke(f"{DIRECTORY}/{base_offset:020d}.log", b"".join(batches))


def batch_at(
    offset: int, *values: bytes, producer_id: int = -1, base_sequence: int = -1
) -> memoryview:
    batch = make_batch(
        *(values or (b"%d" % offset,)),
        timestamp_ms=NOW_MS + offset,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=base_sequence,
    )
    batch[0:8] = offset.to_bytes(8, "big")
    return batch


def empty_partition() -> FakeFilesystem:
    filesystem = FakeFilesystem()
    filesystem.mkdir(DIRECTORY)
    filesystem.sync_directory("/data")
    filesystem.sync_directory("/")
    return filesystem


def offsets_of(log: Log) -> list[int]:
    return [record.offset for record in read_records(log)]


@pytest.mark.parametrize("recovery_point", [0, 1, 8, 20, 41, 60])
def test_a_formerly_compacted_log_keeps_every_record(recovery_point: int) -> None:
    """Gaps in segments, between them, before a segment's first batch, and segments left empty."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, batch_at(3), batch_at(7, b"a", b"b"))
    put_segment(filesystem, 20, batch_at(20), batch_at(33))
    put_segment(filesystem, 40)
    put_segment(filesystem, 50, batch_at(58), batch_at(59))
    put_segment(filesystem, 60, batch_at(60), batch_at(61))
    log = open_log(filesystem, WIDE, opened=Opened(recovery_point))
    assert offsets_of(log) == [3, 7, 8, 20, 33, 58, 59, 60, 61]
    assert log.log_end_offset == 62
    assert log.set_aside == ()
    for offset in range(62):
        found = log.reader.read(offset, max_bytes=1, end_offset=62, min_one_batch=True)
        assert found is not None, offset
        header = read_header(found.file.read_at(found.length, found.position))
        assert header.next_offset > offset
    assert append(log, make_batch(b"next")).first_offset == 62
    again = open_log(filesystem.after_crash(), WIDE)
    assert offsets_of(again)[:9] == [3, 7, 8, 20, 33, 58, 59, 60, 61]


BORDER_GAPS = {0: 10, 20: 10, 40: 0, 50: 3}
"""Base offset of a segment to its records: only between segments is something missing."""


@pytest.mark.parametrize(
    ("opened", "config", "end"),
    [
        (Opened(None), WIDE, 53),
        (Opened(0), WIDE, 10),
        (Opened(10), WIDE, 10),
        (Opened(11), WIDE, 53),
        (Opened(41), WIDE, 53),
        (Opened(53, clean_shutdown=True), WIDE, 53),
        (Opened(0), small_segments(10_000, cleanup_policy=("compact",)), 53),
    ],
)
def test_what_a_power_cut_may_have_taken_is_told_from_gaps(
    opened: Opened, config: TopicConfig, end: int
) -> None:
    """Below the recovery point, or where none is known, all was on disk: a gap is no loss."""
    filesystem = empty_partition()
    for base, count in BORDER_GAPS.items():
        put_segment(filesystem, base, *(batch_at(base + n) for n in range(count)))
    log = open_log(filesystem, config, opened=opened)
    assert log.log_end_offset == end
    kept = sorted(name for name in set_aside_files(filesystem) if name.endswith(".log"))
    assert [int(name[-24:-4]) for name in kept] == [base for base in BORDER_GAPS if base >= end]


def test_a_log_that_the_cleaner_knows_may_have_gaps() -> None:
    """Its checkpoint outlives a change of `cleanup.policy`."""
    filesystem = empty_partition()
    for base, count in BORDER_GAPS.items():
        put_segment(filesystem, base, *(batch_at(base + n) for n in range(count)))
    log = Log.open(
        DIRECTORY,
        TOPIC_PARTITION,
        topic_id=TOPIC_ID,
        config=WIDE,
        environment=FakeEnvironment(filesystem=filesystem, clock=ManualClock(NOW_MS)),
        checkpointed=CheckpointedLog(was_compacted=True),
    )
    assert log.log_end_offset == 53


@pytest.mark.parametrize("policy", [("delete",), ("compact",)])
@pytest.mark.parametrize(
    ("recovery_point", "end"), [(0, 10), (10, 10), (11, 30), (41, 53), (None, 53)]
)
def test_where_nobody_leaves_gaps_above_the_recovery_point_they_are_losses(
    policy: tuple[str, ...], recovery_point: int | None, end: int
) -> None:
    """Whatever else the log shows: gaps within segments, and the cleaner's checkpoint."""
    filesystem = empty_partition()
    for base, count in BORDER_GAPS.items():
        # The first batch behind the first is missing everywhere.
        offsets = [base + n for n in range(count) if n != 1]
        put_segment(filesystem, base, *map(batch_at, offsets))
    log = Log.open(
        DIRECTORY,
        TOPIC_PARTITION,
        topic_id=TOPIC_ID,
        config=small_segments(10_000, cleanup_policy=policy),
        environment=FakeEnvironment(filesystem=filesystem, clock=ManualClock(NOW_MS)),
        checkpointed=CheckpointedLog(recovery_point, was_compacted=True, no_gaps_above=True),
    )
    assert log.log_end_offset == end
    assert bool(log.set_aside) == (end < 53)


def test_empty_segments_at_the_beginning_are_as_if_retention_had_come_by() -> None:
    """Compaction has taken all there was; or the power, but then no order is lost."""
    filesystem = empty_partition()
    put_segment(filesystem, 0)
    put_segment(filesystem, 10)
    put_segment(filesystem, 20, batch_at(20), batch_at(21))
    log = open_log(filesystem, WIDE)
    assert (offsets_of(log), log.log_end_offset) == ([20, 21], 22)


@pytest.mark.parametrize(
    ("config", "opened", "end"),
    [
        (WIDE, Opened(0), 0),
        (WIDE, Opened(0, log_start_offset=12), 12),
        (WIDE, Opened(20), 20),
        (WIDE, Opened(None), 20),
        (WIDE, Opened(20, clean_shutdown=True), 20),
        (small_segments(10_000, cleanup_policy=("compact",)), Opened(0), 20),
    ],
)
def test_a_log_that_has_lost_all_its_records_is_an_empty_one(
    config: TopicConfig, opened: Opened, end: int
) -> None:
    """A power cut has left the names of its segments.

    Ended where the last of them begins, a replica would never be given what it had below, and be
    elected in the end.
    """
    filesystem = empty_partition()
    for base_offset in (0, 10, 20):
        put_segment(filesystem, base_offset)
    log = open_log(filesystem, config, opened=opened)
    assert log.log_end_offset == end
    assert set_aside_files(filesystem) == {}
    assert append(log, make_batch(b"next")).first_offset == end
    again = open_log(filesystem.after_crash(KEEP_ALL), config, opened=opened)
    assert again.log_end_offset == end + 1


@pytest.mark.parametrize("has_other_replicas", [False, True])
def test_a_replica_that_has_lost_its_first_records_fetches_them_again(
    has_other_replicas: bool,
) -> None:
    """Else it would be elected in the end without them. Of a log that is alone the rest is kept."""
    filesystem = empty_partition()
    put_segment(filesystem, 0)
    put_segment(filesystem, 10)
    put_segment(filesystem, 20, batch_at(20), batch_at(21))
    log = Log.open(
        DIRECTORY,
        TOPIC_PARTITION,
        topic_id=TOPIC_ID,
        config=WIDE,
        environment=FakeEnvironment(filesystem=filesystem, clock=ManualClock(NOW_MS)),
        checkpointed=CheckpointedLog(has_other_replicas=has_other_replicas),
    )
    assert log.log_end_offset == (0 if has_other_replicas else 22)
    kept = [name for name in set_aside_files(filesystem) if name.endswith("20.log")]
    assert len(kept) == has_other_replicas


@pytest.mark.parametrize(("recovery_point", "end"), [(0, 20), (9, 20), (10, 35)])
def test_a_first_segment_that_lost_all_its_records_is_no_sign_of_compaction(
    recovery_point: int, end: int
) -> None:
    """Its name came back after a power cut, its records did not; nor did some of the next one."""
    filesystem = empty_partition()
    put_segment(filesystem, 5)
    put_segment(filesystem, 10, *(batch_at(at) for at in range(10, 20)))
    put_segment(filesystem, 30, *(batch_at(at) for at in range(30, 35)))
    log = open_log(filesystem, WIDE, opened=Opened(recovery_point, log_start_offset=5))
    assert log.log_end_offset == end
    assert offsets_of(log) == [*range(10, 20), *(range(30, 35) if end > 20 else ())]


def test_a_last_batch_that_one_wrong_bit_may_have_moved_is_kept_aside() -> None:
    """It does not count; should it be right all the same, it is not lost."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, batch_at(0), batch_at(1), batch_at(2 ^ 64))
    log = open_log(filesystem, WIDE)
    assert log.log_end_offset == 2
    assert set_aside_files(filesystem) == {
        f"set-aside-1/{2 ^ 64:020d}.log": bytes(batch_at(2 ^ 64))
    }
    put_segment(filesystem, 0, batch_at(0), batch_at(1), batch_at(29))
    assert open_log(filesystem, WIDE).log_end_offset == 30


def test_producers_are_known_over_gaps() -> None:
    """The last sequence counts, wherever compaction has taken batches away."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, batch_at(4, producer_id=9, base_sequence=4))
    put_segment(filesystem, 10, batch_at(12, producer_id=9, base_sequence=12))
    put_segment(filesystem, 30)
    put_segment(filesystem, 40, batch_at(44, b"a", b"b", producer_id=9, base_sequence=30))
    for _ in range(2):
        log = open_log(filesystem, WIDE)
        entry = log.producer_state.last_entry(9)
        assert entry is not None
        assert entry.last_sequence == 31
        assert log.producer_state.map_end_offset == log.log_end_offset == 46
    retry = batch_at(0, b"a", b"b", producer_id=9, base_sequence=30)
    assert append(log, retry).duplicate
    following = batch_at(0, b"c", producer_id=9, base_sequence=32)
    assert append(log, following).first_offset == 46


def set_aside_files(filesystem: FakeFilesystem) -> dict[str, bytes]:
    """Path below the partition to content, of what lies in folders of it."""
    found = {}
    for folder in filesystem.list_directory(DIRECTORY):
        if folder.is_directory:
            for entry in filesystem.list_directory(f"{DIRECTORY}/{folder.name}"):
                name = f"{folder.name}/{entry.name}"
                found[name] = filesystem.peek(f"{DIRECTORY}/{name}")
    return found


def five_segments(filesystem: FakeFilesystem) -> list[memoryview]:
    batches = [batch_at(10 * n, *[b"%d" % n] * 10) for n in range(5)]
    for n, batch in enumerate(batches):
        put_segment(filesystem, 10 * n, batch)
    return batches


@pytest.mark.parametrize("damaged", range(5))
def test_sound_segments_after_a_damage_are_set_aside(damaged: int) -> None:
    """Byte by byte as they were, and not looked at by the next starts nor by appends."""
    filesystem = empty_partition()
    batches = five_segments(filesystem)
    path = f"{DIRECTORY}/{10 * damaged:020d}.log"
    data = bytearray(filesystem.peek(path))
    data[-1] ^= 1
    filesystem.poke(path, bytes(data))
    log = open_log(filesystem, WIDE)
    assert log.log_end_offset == 10 * damaged
    expected = {f"set-aside-1/{10 * n:020d}.log": bytes(batches[n]) for n in range(damaged + 1, 5)}
    disk = filesystem.after_crash()
    for each in (filesystem, disk):
        assert set_aside_files(each) == expected
    assert log.set_aside == ((f"{DIRECTORY}/set-aside-1",) if expected else ())
    for _ in range(30):
        append(log, make_batch(b"new"))
    log.flusher.flush()
    disk = filesystem.after_crash()
    again = open_log(disk, WIDE)
    assert offsets_of(again) == list(range(10 * damaged + 30))
    assert set_aside_files(disk) == expected
    assert again.set_aside == log.set_aside


def test_what_is_set_aside_twice_overwrites_nothing() -> None:
    """A later damage finds a folder of its own."""
    filesystem = empty_partition()
    batches = five_segments(filesystem)
    for _ in range(2):
        data = bytearray(filesystem.peek(f"{DIRECTORY}/{30:020d}.log"))
        filesystem.poke(f"{DIRECTORY}/{30:020d}.log", bytes(data[:-1]))
        open_log(filesystem, WIDE)
        put_segment(filesystem, 30, batches[3])
        put_segment(filesystem, 40, batch_at(40, b"other"))
    log = open_log(filesystem, WIDE)
    assert set_aside_files(filesystem) == {
        f"set-aside-1/{40:020d}.log": bytes(batches[4]),
        f"set-aside-2/{40:020d}.log": bytes(batch_at(40, b"other")),
    }
    assert log.set_aside == (f"{DIRECTORY}/set-aside-1", f"{DIRECTORY}/set-aside-2")


def test_a_crash_at_every_step_of_setting_aside_loses_nothing() -> None:
    """Each segment is in the log or beside it, and the next start comes to the same log."""
    filesystem = empty_partition()
    batches = five_segments(filesystem)
    data = bytearray(filesystem.peek(f"{DIRECTORY}/{10:020d}.log"))
    filesystem.poke(f"{DIRECTORY}/{10:020d}.log", bytes(data[:-1]))
    disks: list[FakeFilesystem] = []
    filesystem.observer = lambda _event: disks.extend(
        (filesystem.after_crash(), filesystem.after_crash(KEEP_ALL))
    )
    open_log(filesystem, WIDE)
    assert len(disks) > 10
    for disk in disks:
        log = open_log(disk, WIDE)
        assert log.log_end_offset == 10
        kept = {
            name.rpartition("/")[2]: data
            for name, data in set_aside_files(disk).items()
            if name.endswith(".log")
        }
        assert kept == {f"{10 * n:020d}.log": bytes(batches[n]) for n in (2, 3, 4)}


def test_a_segment_whose_name_lies_above_its_first_batch_is_set_aside_whole() -> None:
    """Somebody has renamed it: its batches are sound, but have no place under this name."""
    filesystem = empty_partition()
    batches = five_segments(filesystem)
    filesystem.rename(f"{DIRECTORY}/{20:020d}.log", f"{DIRECTORY}/{25:020d}.log")
    log = open_log(filesystem, WIDE)
    assert log.log_end_offset == 20
    assert set_aside_files(filesystem) == {
        f"set-aside-1/{25:020d}.log": bytes(batches[2]),
        f"set-aside-1/{30:020d}.log": bytes(batches[3]),
        f"set-aside-1/{40:020d}.log": bytes(batches[4]),
    }
    assert append(log, make_batch(b"x")).first_offset == 20


def test_a_segment_too_far_below_its_first_batch_is_set_aside_whole() -> None:
    """An index entry holds the distance in 32 bits."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, batch_at(1 << 32))
    log = open_log(filesystem, WIDE)
    assert log.log_end_offset == 0
    assert list(set_aside_files(filesystem)) == [f"set-aside-1/{0:020d}.log"]
    assert append(log, make_batch(b"x")).first_offset == 0


def test_segments_that_overlap_are_set_aside() -> None:
    """Of two that hold the same offsets the first is the log's."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, *(batch_at(offset) for offset in range(12)))
    put_segment(filesystem, 10, *(batch_at(offset, b"other") for offset in range(10, 14)))
    log = open_log(filesystem, WIDE)
    assert offsets_of(log) == list(range(12))
    assert list(set_aside_files(filesystem)) == [f"set-aside-1/{10:020d}.log"]


def test_preallocated_space_of_a_closed_segment_cuts_nothing_off() -> None:
    """The power went before the file was trimmed: all its records are there."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, batch_at(0), batch_at(1), memoryview(bytearray(100)))
    put_segment(filesystem, 2, batch_at(2))
    log = open_log(filesystem, WIDE)
    assert offsets_of(log) == [0, 1, 2]
    assert log.set_aside == ()


def test_space_of_a_segment_closed_before_a_kill_is_no_log_after_a_power_cut() -> None:
    """All its records were flushed before it was closed, and the file was trimmed after that."""
    filesystem = empty_partition()
    config = small_segments(1000, preallocate=True)
    log = open_log(filesystem, config)
    for value in (b"a", b"b"):
        append(log, make_batch(value))
    log.flusher.flush()
    log.writer.roll()
    append(log, make_batch(b"c"))
    filesystem.crash(KEEP_ALL)
    log = open_log(filesystem, config, opened=Opened(recovery_point=2))
    log.close()
    filesystem.crash()
    log = open_log(filesystem, config, opened=Opened(recovery_point=3, clean_shutdown=True))
    assert offsets_of(log) == [0, 1, 2]
    first = log.segment_facts()[0]
    assert first.size == filesystem.file_size(first.path) < 1000


@pytest.mark.parametrize("digits", [str(2**63), "9" * 20, str(2**63 - 1).zfill(20)])
def test_a_file_named_beyond_all_offsets_is_no_segment(
    digits: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left alone: taken for the active segment it would let no batch in."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, batch_at(0), batch_at(1))
    path = f"{DIRECTORY}/{digits:0>20}.log"
    filesystem.poke(path, b"")
    for opened in (Opened(), Opened(2, clean_shutdown=True)):
        log = open_log(filesystem, WIDE, opened=opened)
        assert log.log_end_offset == 2
        assert append(log, make_batch(b"x")).first_offset == 2
        log.truncation.truncate_to(2)
        assert filesystem.exists(path)
    assert digits in caplog.text


def test_batches_that_are_damaged_in_the_middle_still_cut() -> None:
    """What follows a bad sum within a segment cannot be told from what was never written whole."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, *(batch_at(offset) for offset in range(4)))
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(filesystem.peek(path))
    data[2 * len(batch_at(0)) - 1] ^= 1
    filesystem.poke(path, bytes(data))
    log = open_log(filesystem, WIDE)
    assert offsets_of(log) == [0]
    assert [header.base_offset for header in map(read_header, read_batches(log))] == [0]


@pytest.mark.parametrize("base_offset", [3, 5, 9, 50])
@pytest.mark.parametrize("has_indexes", [False, True])
@pytest.mark.parametrize("opened", [Opened(10, clean_shutdown=True), Opened(5), Opened(10)])
def test_an_empty_file_with_a_segments_name_does_not_move_the_end(
    opened: Opened, has_indexes: bool, base_offset: int
) -> None:
    """Offsets that were acknowledged would be given out again, and their records be unreadable."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, *(batch_at(n) for n in range(10)))
    put_segment(filesystem, base_offset)
    if has_indexes:
        filesystem.poke(f"{DIRECTORY}/{base_offset:020d}.index", bytes(8))
        filesystem.poke(f"{DIRECTORY}/{base_offset:020d}.timeindex", bytes(12))
    log = open_log(filesystem, WIDE, opened=opened)
    assert log.log_end_offset == 10
    assert offsets_of(log) == list(range(10))
    assert f"set-aside-1/{base_offset:020d}.log" in set_aside_files(filesystem)
    assert append(log, make_batch(b"next")).first_offset == 10
    again = open_log(filesystem.after_crash(KEEP_ALL), WIDE)
    assert offsets_of(again) == list(range(11))


@pytest.mark.parametrize("opened", [Opened(20, clean_shutdown=True), Opened(0), Opened(20)])
def test_an_empty_file_between_segments_takes_no_other_with_it(opened: Opened) -> None:
    """What lies after it goes on where the segment before it ends."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, *(batch_at(n) for n in range(10)))
    put_segment(filesystem, 4)
    put_segment(filesystem, 10, *(batch_at(n) for n in range(10, 20)))
    log = open_log(filesystem, WIDE, opened=opened)
    assert offsets_of(log) == list(range(20))
    assert list(set_aside_files(filesystem)) == [f"set-aside-1/{4:020d}.log"]


@pytest.mark.parametrize("opened", [Opened(50, clean_shutdown=True), Opened(None), Opened(50)])
def test_an_empty_active_segment_after_a_gap_stays(opened: Opened) -> None:
    """Compaction may have taken the last records before it: the log ends where it begins."""
    filesystem = empty_partition()
    put_segment(filesystem, 0, *(batch_at(n) for n in range(10)))
    put_segment(filesystem, 50)
    compacted = small_segments(10_000, cleanup_policy=("compact",))
    log = open_log(filesystem, compacted, opened=opened)
    assert (log.log_end_offset, log.set_aside) == (50, ())
