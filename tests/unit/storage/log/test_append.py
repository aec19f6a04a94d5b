"""What an append answers, what it refuses, and when a segment is rolled."""

import contextlib
import errno

import pytest

from protocol.records.batch import crc_matches, read_header
from storage.errors import (
    BatchError,
    BatchTooLargeError,
    DiskError,
    InvalidTimestampError,
    OutOfOrderSequenceError,
)
from storage.types.append_origin import AppendOrigin
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    read_records,
    small_segments,
)


def test_offsets_and_epoch_are_set_and_nothing_else() -> None:
    """On disk is what was sent, but for the twelve bytes that are the broker's."""
    log = open_log(FakeFilesystem())
    append(log, make_batch(b"first", b"second"))
    batch = make_batch(b"third")
    sent = bytes(batch)
    info = append(log, batch, leader_epoch=4)
    assert (info.first_offset, info.last_offset, info.log_append_time_ms) == (2, 2, -1)
    assert (info.log_start_offset, info.duplicate) == (0, False)
    stored = read_batches(log)[1]
    assert stored[16:] == sent[16:]
    assert stored[8:12] == sent[8:12]
    header = read_header(stored)
    assert (header.base_offset, header.leader_epoch) == (2, 4)
    assert log.leader_epochs.entries() == [(0, 0), (4, 2)]
    assert log.reader.end_offset_for_epoch(0) == (0, 2)


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
        log.writer.append_as_leader(bad, leader_epoch=0, now_ms=NOW_MS)
    assert (log.log_end_offset, filesystem.changes) == (1, before)


def test_log_append_time_is_answered() -> None:
    """With the time that all its records now have."""
    log = open_log(FakeFilesystem(), small_segments(message_timestamp_type="LogAppendTime"))
    info = append(log, make_batch(b"x", timestamp_ms=1), now_ms=NOW_MS + 5)
    assert info.log_append_time_ms == NOW_MS + 5
    found = log.reader.max_timestamp_offset()
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
    info = append(log, memoryview(bytearray(both)))
    assert (info.first_offset, info.last_offset) == (0, 1)
    assert append(log, memoryview(bytearray(both))).duplicate
    assert log.log_end_offset == 2


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


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_time_index_bounds_the_batches_of_a_segment(batches: int, reopened: bool) -> None:
    """With an entry per batch; its last place is kept for the end, as Kafka does."""
    settings = small_segments(9999, segment_index_bytes=12 * batches, index_interval_bytes=1)
    filesystem = FakeFilesystem()
    log = open_log(filesystem, settings)
    for timestamp in range(7):
        if reopened and timestamp:
            log.close()
            log = open_log(filesystem, settings, opened=Opened(clean_shutdown=True))
        append(log, make_batch(b"x", timestamp_ms=NOW_MS + timestamp))
    bases = [segment.base_offset for segment in log.segment_facts()]
    if not reopened or batches == 1:
        assert bases == list(range(0, 7, batches))
    else:
        # Closing gives the last batch an entry of its own.
        assert len(bases) >= 3
    assert [record.offset for record in read_records(log)] == list(range(7))


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
        log.writer.append_as_leader(memoryview(batches), leader_epoch=0, now_ms=NOW_MS)
    assert caught.value.errno == errno.ENOSPC
    assert (log.log_end_offset, log.failure) == (1, None)
    assert filesystem.file_size(log.segment_facts()[0].path) == size
    assert append(log, make_batch(b"z")).first_offset == 1
    assert [record.value for record in read_records(log)] == [b"x", b"z"]


def test_stored_sums_are_right_for_every_codec() -> None:
    """After a rewrite to the topic's codec as well."""
    for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        log = open_log(FakeFilesystem(), small_segments(9999, compression_type=codec))
        append(log, make_batch(b"x" * 100, b"y" * 100, codec=2))
        [batch] = read_batches(log)
        assert crc_matches(memoryview(batch), 0, read_header(batch))
        assert [record.value for record in read_records(log)] == [b"x" * 100, b"y" * 100]


def test_coordinators_batch_is_judged_by_the_topics_settings() -> None:
    """It was built in this process, which leaves its size, and its time."""
    log = open_log(FakeFilesystem(), small_segments(5000, max_message_bytes=500))
    coordinator = AppendOrigin.COORDINATOR
    append(log, make_batch(b"x"), origin=coordinator)
    with pytest.raises(BatchTooLargeError):
        append(log, make_batch(b"x" * 600), origin=coordinator)
    with pytest.raises(InvalidTimestampError):
        append(log, make_batch(b"x", timestamp_ms=NOW_MS + 86_400_000), origin=coordinator)
    damaged = make_batch(b"x")
    with pytest.raises(BatchError):
        append(log, damaged[:-1], origin=coordinator)
    info = append(log, make_batch(b"y"), origin=coordinator)
    assert (info.first_offset, info.last_offset) == (1, 1)


def test_coordinators_batch_gets_the_time_of_its_append() -> None:
    """A setting that an administrator may give any topic."""
    log = open_log(FakeFilesystem(), small_segments(5000, message_timestamp_type="LogAppendTime"))
    append(log, make_batch(b"x", timestamp_ms=5), origin=AppendOrigin.COORDINATOR)
    header = read_header(read_batches(log)[0])
    assert header.is_log_append_time
    assert header.max_timestamp == NOW_MS


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("path", [".log", "leader-epoch-checkpoint", "index"])
def test_without_a_descriptor_nothing_is_written_and_the_next_attempt_works(
    code: int, path: str
) -> None:
    """Whatever file it was that could not be opened: says nothing of the disk."""
    filesystem = FakeFilesystem(open_files_max=1)
    log = open_log(filesystem, small_segments(150))
    append(log, make_batch(b"x" * 40))
    before = read_batches(log)
    for epoch in range(1, 6):
        for segment in log.segment_facts():
            segment.close()
        filesystem.fail("open", code, path=path)
        with contextlib.suppress(DiskError):
            append(log, make_batch(b"y" * 40), leader_epoch=epoch)
        filesystem.heal()
        assert log.failure is None
        if read_batches(log) == before:
            append(log, make_batch(b"y" * 40), leader_epoch=epoch)
        before = read_batches(log)
        assert len(before) == epoch + 1
    assert log.leader_epochs.entries() == [(epoch, epoch) for epoch in range(6)]
    assert read_batches(open_log(filesystem.after_crash("all"))) == before
