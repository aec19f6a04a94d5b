"""The log: what an append answers, what a read finds, what survives, and what is refused."""

import errno

import pytest

from protocol.records.batch import crc_matches, iterate_batches, read_header
from protocol.records.control import build_end_transaction_marker
from storage.append_origin import AppendOrigin
from storage.errors import (
    BatchError,
    DiskError,
    LogDirectoryOfflineError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
)
from storage.log import Log
from storage.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log_model import (
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

COORDINATOR = AppendOrigin.COORDINATOR


def _marker(log: Log, producer_id: int, *, commit: bool) -> None:
    marker = build_end_transaction_marker(
        producer_id=producer_id,
        producer_epoch=0,
        commit=commit,
        coordinator_epoch=1,
        timestamp_ms=NOW_MS,
    )
    append(log, memoryview(marker), origin=COORDINATOR)


def _transactional(log: Log, producer_id: int, sequence: int, *values: bytes) -> None:
    append(
        log,
        make_batch(
            *values,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        ),
    )


def test_offsets_and_epoch_are_set_and_nothing_else() -> None:
    """On disk is what was sent, but for the twelve bytes that are the broker's."""
    log = open_log(FakeFilesystem())
    append(log, make_batch(b"first", b"second"))
    batch = make_batch(b"third")
    sent = bytes(batch)
    info = append(log, batch, leader_epoch=4)
    assert info == (2, 2, -1, 0, False)
    stored = read_batches(log)[1]
    assert stored[16:] == sent[16:]
    assert stored[8:12] == sent[8:12]
    header = read_header(stored)
    assert (header.base_offset, header.leader_epoch) == (2, 4)
    assert log.leader_epochs.entries() == [(0, 0), (4, 2)]
    assert log.end_offset_for_epoch(0) == (0, 2)


def test_several_batches_are_one_write() -> None:
    """They get offsets in order; the disk sees one write for all."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(5000))
    append(log, make_batch(b"x"))
    filesystem.events.clear()
    three = b"".join(bytes(make_batch(value, value)) for value in (b"a", b"b", b"c"))
    info = append(log, memoryview(bytearray(three)))
    assert (info.first_offset, info.last_offset) == (1, 6)
    assert [event.kind for event in filesystem.events] == ["write"]
    assert [record.offset for record in read_records(log)] == list(range(7))


def test_a_refused_batch_leaves_no_trace() -> None:
    """Neither bytes nor an offset."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    append(log, make_batch(b"x"))
    before = filesystem.changes
    bad = make_batch(b"y")
    bad[-1] ^= 1
    with pytest.raises(BatchError):
        log.append_as_leader(bad, leader_epoch=0, now_ms=NOW_MS)
    assert (log.log_end_offset, filesystem.changes) == (1, before)


def test_log_append_time_is_answered() -> None:
    """With the time that all its records now have."""
    log = open_log(FakeFilesystem(), small_segments(message_timestamp_type="LogAppendTime"))
    info = append(log, make_batch(b"x", timestamp_ms=1), now_ms=NOW_MS + 5)
    assert info.log_append_time_ms == NOW_MS + 5
    found = log.max_timestamp_offset()
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW_MS + 5, 0)


def test_a_retry_gets_the_first_answer() -> None:
    """One of the last five; a gap is refused; state survives a restart."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)

    def produce(sequence: int) -> tuple[int, int, bool]:
        batch = make_batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=sequence)
        info = append(log, batch)
        return info.first_offset, info.last_offset, info.duplicate

    assert [produce(sequence) for sequence in (0, 2, 4)] == [
        (0, 1, False), (2, 3, False), (4, 5, False),
    ]  # fmt: skip
    assert produce(2) == (2, 3, True)
    with pytest.raises(OutOfOrderSequenceError):
        produce(8)
    log = open_log(filesystem)
    assert produce(4) == (4, 5, True)
    assert produce(6) == (6, 7, False)
    log.close()
    log = open_log(filesystem, opened=Opened(8, clean_shutdown=True))
    assert produce(6) == (6, 7, True)


def test_two_idempotent_batches_in_one_call() -> None:
    """The second follows on the first."""
    log = open_log(FakeFilesystem(), small_segments(message_timestamp_type="LogAppendTime"))
    both = b"".join(
        bytes(make_batch(b"a", producer_id=7, producer_epoch=0, base_sequence=sequence))
        for sequence in (0, 1)
    )
    assert append(log, memoryview(bytearray(both)))[:2] == (0, 1)
    assert append(log, memoryview(bytearray(both))).duplicate
    assert log.log_end_offset == 2


def test_an_open_transaction_holds_back_the_last_stable_offset() -> None:
    """Until its marker; an aborted one is listed for those who read committed records."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(300))
    append(log, make_batch(b"plain"))
    _transactional(log, 5, 0, b"a", b"b")
    append(log, make_batch(b"between"))
    assert (log.last_stable_offset, log.high_watermark) == (1, 4)
    _marker(log, 5, commit=False)
    assert log.last_stable_offset == log.log_end_offset == 5
    for number in range(3):
        _transactional(log, 6, number, b"c" * 40)
    _marker(log, 6, commit=True)
    _transactional(log, 5, 2, b"d" * 40)
    _marker(log, 5, commit=False)
    assert log.last_stable_offset == log.log_end_offset
    first = [(5, 1)]
    second = [(5, 9)]
    assert log.aborted_transactions(0, log.log_end_offset) == first + second
    assert log.aborted_transactions(0, 3) == first
    assert log.aborted_transactions(5, 9) == []
    assert log.aborted_transactions(9, 11) == second
    found = log.read(0, max_bytes=1, end_offset=11, min_one_batch=True)
    assert found is not None
    assert log.aborted_transactions(0, found)[:1] == first
    for opened in (Opened(), Opened(log.log_end_offset)):
        assert open_log(filesystem, opened=opened).aborted_transactions(0, 99) == first + second


def test_reads_end_with_whole_batches() -> None:
    """However small the limit; nothing without `min_one_batch` when the first does not fit."""
    log = open_log(FakeFilesystem(), small_segments(100_000))
    for number in range(60):
        append(log, make_batch(b"v" * (number * 7 % 90)))
    total = log.size()
    for limit in range(0, total + 50, 37):
        found = log.read(3, max_bytes=limit, end_offset=60, min_one_batch=True)
        assert found is not None
        data = memoryview(found.file.read_at(found.length, found.position))
        headers = [header for _, header in iterate_batches(data)]
        assert headers[0].base_offset == 3
        assert len(headers) == 1 or found.length <= limit
        nothing = log.read(3, max_bytes=limit, end_offset=60, min_one_batch=False)
        assert nothing is not None
        assert nothing.length in (0, found.length)
        assert nothing.length <= limit
    found = log.read(3, max_bytes=total, end_offset=20, min_one_batch=True)
    assert found is not None
    data = memoryview(found.file.read_at(found.length, found.position))
    assert [header.base_offset for _, header in iterate_batches(data)] == list(range(3, 20))


def test_reading_along_needs_no_index() -> None:
    """A reader that goes on where it stopped, at the tail or behind, costs no read of its own."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(100_000))
    for _ in range(3):
        append(log, make_batch(b"x" * 40))
    assert log.read(3, max_bytes=999, end_offset=3, min_one_batch=True) is None
    for offset in range(3, 20):
        append(log, make_batch(b"x" * 40))
        reads = filesystem.reads
        found = log.read(offset, max_bytes=999, end_offset=offset + 1, min_one_batch=True)
        assert found is not None
        assert filesystem.reads == reads


def test_offsets_outside_are_refused() -> None:
    """At the end there is nothing yet; beyond it is an error."""
    log = open_log(FakeFilesystem())
    append(log, make_batch(b"x"))
    assert log.read(1, max_bytes=9, end_offset=1, min_one_batch=True) is None
    assert log.read(0, max_bytes=9, end_offset=0, min_one_batch=True) is None
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, max_bytes=9, end_offset=1, min_one_batch=True)


@pytest.mark.parametrize(
    ("config", "timestamps"),
    [
        ({"segment_bytes": 150}, [0, 0, 0, 0]),
        ({"segment_ms": 100, "segment_bytes": 9999}, [0, 101, 202, 303]),
        ({"segment_index_bytes": 8, "segment_bytes": 9999, "index_interval_bytes": 1}, [0] * 5),
    ],
)
def test_a_segment_is_rolled(config: dict[str, int], timestamps: list[int]) -> None:
    """By size, by the records' own time, by a full index."""
    log = open_log(FakeFilesystem(), small_segments(**config))
    for timestamp in timestamps:
        append(log, make_batch(b"x" * 40, timestamp_ms=NOW_MS + timestamp))
    assert len(log.segment_facts()) >= 3
    assert [record.offset for record in read_records(log)] == list(range(len(timestamps)))


def test_without_timestamps_the_segments_age_counts() -> None:
    """`segment.ms` since it was made."""
    clock = ManualClock(NOW_MS)
    log = open_log(FakeFilesystem(), small_segments(9999, segment_ms=100), clock=clock)
    append(log, make_batch(b"x", timestamp_ms=-1))
    clock.advance(99)
    append(log, make_batch(b"x", timestamp_ms=-1))
    assert len(log.segment_facts()) == 1
    clock.advance(2)
    append(log, make_batch(b"x", timestamp_ms=-1))
    assert len(log.segment_facts()) == 2


def test_jitter_comes_off_the_age() -> None:
    """So that partitions do not roll together; the seed repeats it."""
    config = small_segments(9999, segment_ms=1000, segment_jitter_ms=500)
    found = set()
    for seed in range(20):
        log = Log.open(
            DIRECTORY,
            TOPIC_PARTITION,
            topic_id=TOPIC_ID,
            config=config,
            filesystem=FakeFilesystem(),
            clock=ManualClock(NOW_MS),
            randomness=SeededRandomness(seed),
        )
        found.add(log.segment_facts()[0].roll_jitter_ms)
    assert len(found) > 10
    assert all(0 <= jitter < 500 for jitter in found)


def test_an_offset_too_far_from_the_base_rolls() -> None:
    """An index entry holds 31 bits of distance."""
    log = open_log(FakeFilesystem())
    append(log, make_batch(b"x"))
    far = make_batch(b"y")
    far[0:8] = (2**31).to_bytes(8, "big")
    log.append_as_follower(far)
    assert [segment.base_offset for segment in log.segment_facts()] == [0, 2**31]
    assert log.log_end_offset == 2**31 + 1


def test_a_follower_takes_what_the_leader_gave() -> None:
    """Offsets, epochs and producers; what lies below its end is refused."""
    leader, follower = open_log(FakeFilesystem()), open_log(FakeFilesystem())
    for number in range(4):
        batch = make_batch(b"v", producer_id=2, producer_epoch=0, base_sequence=number)
        append(leader, batch, leader_epoch=number // 2)
    for stored in read_batches(leader):
        follower.append_as_follower(memoryview(bytearray(stored)))
    follower.update_high_watermark(4)
    assert read_batches(follower) == read_batches(leader)
    assert follower.leader_epochs.entries() == leader.leader_epochs.entries() == [(0, 0), (1, 2)]
    entry = follower.producer_state.last_entry(2)
    assert entry is not None
    assert entry.last_sequence == 3
    with pytest.raises(OffsetOutOfRangeError):
        follower.append_as_follower(memoryview(bytearray(read_batches(leader)[0])))


def test_retention_takes_the_oldest_and_never_the_active_segment() -> None:
    """By time here: the active segment is rolled first, then all old ones go."""
    clock = ManualClock(NOW_MS)
    filesystem = FakeFilesystem(clock)
    log = open_log(filesystem, small_segments(150, retention_ms=1000), clock=clock)
    for _ in range(5):
        append(log, make_batch(b"x" * 40))
    assert log.delete_old_segments() == 0
    clock.advance(1001)
    count = len(log.segment_facts())
    assert log.delete_old_segments() == count
    assert (log.log_start_offset, log.log_end_offset, log.size()) == (5, 5, 0)
    names = [entry.name for entry in filesystem.list_directory(DIRECTORY)]
    assert sum(name.endswith(".log.deleted") for name in names) == count
    assert log.remove_deleted_files() == 0
    clock.advance(1000)
    assert log.remove_deleted_files() == count
    assert append(log, make_batch(b"y")).first_offset == 5
    assert read_records(open_log(filesystem, opened=Opened(0, 5)))[0].offset == 5


def test_delete_records_moves_the_start() -> None:
    """Up to the high watermark; whole segments below go at the next pass."""
    log = open_log(FakeFilesystem(), small_segments(150))
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records(7)
    assert log.delete_records(4) == 4
    assert log.delete_records(2) == 4
    with pytest.raises(OffsetOutOfRangeError):
        log.read(3, max_bytes=9, end_offset=6, min_one_batch=True)
    assert log.delete_old_segments() > 0
    assert [record.offset for record in read_records(log)] == [4, 5]


def test_a_flush_moves_the_recovery_point() -> None:
    """What was appended since it began is not covered."""
    log = open_log(FakeFilesystem(), small_segments(9999, flush_messages=2))
    append(log, make_batch(b"x"))
    assert not log.needs_flush
    append(log, make_batch(b"x"))
    assert log.needs_flush
    assert log.flush_target() == 2
    ticket = log.begin_flush()
    assert ticket is not None
    append(log, make_batch(b"x"))
    ticket.run()
    assert log.recovery_point == 0
    log.finish_flush(ticket)
    assert (log.recovery_point, log.unflushed_messages) == (2, 1)
    assert log.begin_flush(2) is None


def test_a_flush_that_a_truncation_overtook_counts_for_nothing() -> None:
    """What it synced is not what is there now."""
    log = open_log(FakeFilesystem(), small_segments(9999))
    for _ in range(3):
        append(log, make_batch(b"x"))
    ticket = log.begin_flush()
    assert ticket is not None
    log.truncate_to(1)
    append(log, make_batch(b"y"))
    append(log, make_batch(b"y"))
    ticket.run()
    log.finish_flush(ticket)
    assert log.recovery_point <= 1


def test_rolled_segments_are_due_for_a_flush() -> None:
    """So are all records after `flush.ms`."""
    clock = ManualClock(NOW_MS)
    log = open_log(FakeFilesystem(), small_segments(150, flush_ms=500), clock=clock)
    append(log, make_batch(b"x" * 40))
    assert not log.flush_if_due(clock.now_ms())
    append(log, make_batch(b"x" * 40))
    assert log.flush_if_due(clock.now_ms())
    assert log.recovery_point == log.active_base_offset == 1
    clock.advance(500)
    assert log.flush_if_due(clock.now_ms())
    assert log.recovery_point == 2


def test_a_failed_sync_takes_the_log_out_of_service() -> None:
    """The kernel may have dropped the pages: nothing after it can be believed."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    append(log, make_batch(b"x"))
    filesystem.fail("sync", errno.EIO)
    with pytest.raises(DiskError):
        log.flush()
    assert log.recovery_point == 0
    with pytest.raises(LogDirectoryOfflineError):
        append(log, make_batch(b"y"))
    with pytest.raises(LogDirectoryOfflineError):
        log.read(0, max_bytes=9, end_offset=1, min_one_batch=True)


@pytest.mark.parametrize("count", [1, 3])
def test_a_full_disk_refuses_and_forgets_the_half(count: int) -> None:
    """What a failed write left is cut off; the next one takes its place."""
    filesystem = FakeFilesystem()
    filesystem.tear_failed_writes = True
    log = open_log(filesystem, small_segments(9999))
    append(log, make_batch(b"x"))
    size = filesystem.file_size(log.segment_facts()[0].path)
    batches = bytearray(b"".join(bytes(make_batch(b"y" * 30)) for _ in range(count)))
    filesystem.fail("write", errno.ENOSPC, path=".log")
    with pytest.raises(DiskError) as caught:
        log.append_as_leader(memoryview(batches), leader_epoch=0, now_ms=NOW_MS)
    assert caught.value.errno == errno.ENOSPC
    assert (log.log_end_offset, log.failure) == (1, None)
    assert filesystem.file_size(log.segment_facts()[0].path) == size
    assert append(log, make_batch(b"z")).first_offset == 1
    assert [record.value for record in read_records(log)] == [b"x", b"z"]


def test_a_slice_outlives_its_segment() -> None:
    """Retention, truncation and the pool of open files leave readers alone."""
    filesystem = FakeFilesystem(open_files_max=1)
    log = open_log(filesystem, small_segments(150))
    for number in range(4):
        append(log, make_batch(bytes([65 + number]) * 40))
    found = log.read(0, max_bytes=999, end_offset=4, min_one_batch=True)
    assert found is not None
    log.truncate_fully_and_start_at(100)
    data = found.file.read_at(found.length, found.position)
    assert b"A" * 40 in data
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (100, 100, 100)
    assert append(log, make_batch(b"n")).first_offset == 100


def test_few_files_are_open_at_once() -> None:
    """However many logs there are; all of them go on working."""
    filesystem = FakeFilesystem(open_files_max=4)
    logs = [open_log(filesystem, directory=f"/data/t-{number}") for number in range(20)]
    assert filesystem.descriptors == 0
    for _ in range(3):
        for log in logs:
            append(log, make_batch(b"x"))
    assert filesystem.descriptors <= 4
    assert filesystem.open_files.evicted > 0
    assert all(len(read_records(log)) == 3 for log in logs)


def test_preallocated_space_is_no_log() -> None:
    """It is cut off when the segment is closed, and after a kill."""
    filesystem = FakeFilesystem()
    config = small_segments(300, preallocate=True)
    log = open_log(filesystem, config)
    append(log, make_batch(b"x"))
    assert filesystem.file_size(log.segment_facts()[0].path) == 300
    killed = open_log(filesystem, config)
    assert (killed.log_end_offset, killed.size()) == (1, log.size())
    killed.roll()
    assert filesystem.file_size(killed.segment_facts()[0].path) == log.size()


def test_a_renamed_folder_keeps_serving() -> None:
    """Deleting a topic begins with a new name."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(150))
    for _ in range(4):
        append(log, make_batch(b"x" * 40))
    log.rename_directory(f"{DIRECTORY}.0-delete")
    assert len(read_records(log)) == 4
    for segment in log.segment_facts():
        segment.close()
    assert len(read_records(log)) == 4
    log.delete()
    assert not filesystem.exists(f"{DIRECTORY}.0-delete")


def test_stored_sums_are_right_for_every_codec() -> None:
    """After a rewrite to the topic's codec as well."""
    for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        log = open_log(FakeFilesystem(), small_segments(9999, compression_type=codec))
        append(log, make_batch(b"x" * 100, b"y" * 100, codec=2))
        [batch] = read_batches(log)
        assert crc_matches(memoryview(batch), 0, read_header(batch))
        assert [record.value for record in read_records(log)] == [b"x" * 100, b"y" * 100]
