import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import CONTROL_BIT, HEADER, LOG_OVERHEAD, crc32c
from protocol.records.control import build_end_transaction_marker
from storage.checkpoints.checkpoint_files import encode_epochs
from storage.environment.filesystem import Filesystem
from storage.types.append_origin import AppendOrigin
from tests.effort import examples
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.producer_snapshots import encode_snapshot
from tests.unit.storage.log.log_model import NOW_MS, Opened, append, make_batch, open_log
from tests.unit.tiered.format.closed_segments import Segment, batch, make_segment
from tiered.errors import CorruptSegmentError
from tiered.format.segment_check import SegmentCheck
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentEpoch
from tiered.tier import SegmentFiles, SideFile

FILES = SegmentFiles("x.log", "x.index", "x.timeindex", "x.snapshot", "x.txnindex", b"")


def check_segment(
    metadata: RemoteLogSegmentMetadata,
    files: SegmentFiles,
    parts: Mapping[SideFile, bytes],
    filesystem: Filesystem,
    buffer: memoryview,
) -> None:
    """A whole segment, in pieces of the buffer's size."""
    check = SegmentCheck(metadata, files, parts)
    file = filesystem.open(files.log, readonly=True)
    position = 0
    while count := file.read_into(buffer, position):
        check.feed(buffer[:count])
        position += count
    check.finish()


def a_segment() -> Segment:
    return make_segment(
        [bytes([number]) * (number * 17 % 301) for number in range(40)],
        abort_at=30,
        second_epoch_at=20,
    )


def run(segment: Segment, piece: int = 1000) -> SegmentCheck:
    parts = {kind: bytes(data) for kind, data in segment.parts.items()}
    check = SegmentCheck(segment.metadata, FILES, parts)
    view = memoryview(segment.log)
    for at in range(0, len(view), piece):
        check.feed(view[at : at + piece])
    check.finish()
    return check


@given(piece=st.integers(1, 400), count=st.integers(1, 12), size=st.integers(0, 200))
def test_a_whole_segment_passes_in_pieces_of_any_length(piece: int, count: int, size: int) -> None:
    """A piece may end anywhere, also within a header."""
    run(make_segment([b"x" * (size + number) for number in range(count)]), piece)


@given(piece=st.integers(1, 400))
def test_records_are_counted_without_markers_wherever_a_piece_ends(piece: int) -> None:
    segment = a_segment()
    counts, at = [], 0
    while at < len(segment.log):
        header = HEADER.unpack_from(segment.log, at)
        counts.append((bool(header[5] & CONTROL_BIT), header[12]))
        at += header[1] + LOG_OVERHEAD
    assert any(is_control for is_control, _ in counts)
    assert run(segment, piece).records == sum(count for control, count in counts if not control)


def test_every_feature_passes() -> None:
    """Two epochs, an abort, times that go back."""
    run(a_segment())


@given(at=st.integers(0), bit=st.integers(0, 7), piece=st.sampled_from([61, 100, 5000, 100_000]))
def test_every_flipped_bit_of_the_log_is_found(at: int, bit: int, piece: int) -> None:
    """At the batch that it is in. Base offset and epoch are not under the CRC."""
    segment = a_segment()
    at %= len(segment.log)
    segment.log[at] ^= 1 << bit
    holder = max(position for position, _ in segment.batches if position <= at)
    with pytest.raises(CorruptSegmentError) as caught:
        run(segment, piece)
    if caught.value.rebuildable:
        # A batch that moved up keeps its place among the others, and its index entry does not fit.
        assert caught.value.path in (FILES.offset_index, FILES.time_index)
    else:
        assert caught.value.path in (FILES.log, FILES.transaction_index)
        if caught.value.path == FILES.log:
            after = [position for position, _ in segment.batches if position > holder]
            assert caught.value.position in (holder, *after[:1])


@pytest.mark.parametrize(
    "kind",
    [
        SideFile.OFFSET,
        SideFile.TIMESTAMP,
        SideFile.PRODUCER_SNAPSHOT,
    ],
)
@given(at=st.integers(0), bit=st.integers(0, 7))
def test_every_flipped_bit_of_a_side_file_is_found(kind: SideFile, at: int, bit: int) -> None:
    """The sparse indexes have no sums of their own: the log tells."""
    segment = a_segment()
    data = segment.parts[kind]
    data[at % len(data)] ^= 1 << bit
    path = {
        SideFile.OFFSET: FILES.offset_index,
        SideFile.TIMESTAMP: FILES.time_index,
        SideFile.PRODUCER_SNAPSHOT: FILES.producer_snapshot,
    }[kind]
    with pytest.raises(CorruptSegmentError) as caught:
        run(segment)
    assert caught.value.path == path
    assert caught.value.rebuildable == (kind is not SideFile.PRODUCER_SNAPSHOT)
    if caught.value.rebuildable:
        size = 8 if kind is SideFile.OFFSET else 12
        assert abs(caught.value.position - at % len(data) // size * size) <= size


def cut_log(segment: Segment) -> None:
    del segment.log[-1:]


def lengthen_log(segment: Segment) -> None:
    segment.log += bytes(70)


def cut_at_a_batch(segment: Segment) -> None:
    del segment.log[segment.batches[-1][0] :]


def empty_log(segment: Segment) -> None:
    segment.log.clear()


def repeat_a_batch(segment: Segment) -> None:
    segment.log[:] = segment.log[: segment.batches[1][0]] + segment.log
    segment.metadata = replace(segment.metadata, segment_size_bytes=len(segment.log))


def wrong_epoch(segment: Segment) -> None:
    # Not under the CRC.
    struct.pack_into(">i", segment.log, 12, 3)


def offset_before_the_segment(segment: Segment) -> None:
    struct.pack_into(">q", segment.log, 0, segment.metadata.start_offset - 1)


def offset_after_the_segment(segment: Segment) -> None:
    position = segment.batches[-1][0]
    struct.pack_into(">q", segment.log, position, segment.metadata.end_offset)


def magic_one(segment: Segment) -> None:
    segment.log[16] = 1


def negative_delta(segment: Segment) -> None:
    size = segment.batches[1][0]
    fields = list(HEADER.unpack_from(segment.log, 0))
    fields[6] = -1
    HEADER.pack_into(segment.log, 0, *fields)
    struct.pack_into(">I", segment.log, 17, crc32c(bytes(segment.log[21:size])))


def short_length(segment: Segment) -> None:
    struct.pack_into(">i", segment.log, 8, 10)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (cut_log, "bytes in a log of|ends at"),
        (lengthen_log, "bytes in a log of|magic|ends at"),
        (cut_at_a_batch, "ends at"),
        (empty_log, "ends at"),
        (repeat_a_batch, "offsets"),
        (wrong_epoch, "leader epoch 3"),
        (offset_before_the_segment, "offsets 999"),
        (offset_after_the_segment, "offsets"),
        (magic_one, "magic 1"),
        (negative_delta, "offsets"),
        (short_length, "batch of 22 bytes"),
    ],
)
def test_a_wrong_log_is_refused(spoil: Callable[[Segment], None], problem: str) -> None:
    """And nothing of it can be made again from something else."""
    segment = a_segment()
    spoil(segment)
    with pytest.raises(CorruptSegmentError, match=problem) as caught:
        run(segment)
    assert caught.value.path == FILES.log
    assert not caught.value.rebuildable


def test_an_entry_beyond_the_log_is_refused() -> None:
    """An index of a longer segment."""
    segment = a_segment()
    segment.parts[SideFile.OFFSET] += struct.pack(">ii", 100_000, 1_000_000)
    with pytest.raises(CorruptSegmentError, match="beyond the log") as caught:
        run(segment)
    assert caught.value.position == len(segment.parts[SideFile.OFFSET]) - 8
    segment = a_segment()
    segment.parts[SideFile.TIMESTAMP] += struct.pack(">qi", 1 << 50, 1_000_000)
    with pytest.raises(CorruptSegmentError, match="beyond the log") as caught:
        run(segment)
    assert caught.value.rebuildable


def test_a_wrong_greatest_timestamp_blames_the_time_index() -> None:
    """The log has it from there; building the index again puts both right."""
    segment = a_segment()
    segment.metadata = replace(segment.metadata, max_timestamp_ms=5)
    with pytest.raises(CorruptSegmentError, match="greatest timestamp") as caught:
        run(segment)
    assert caught.value.path == FILES.time_index
    assert caught.value.rebuildable


def test_a_marker_that_is_not_in_the_log_is_refused() -> None:
    """A reader would be told of an abort that never was, and skip committed records."""
    segment = a_segment()
    marker = segment.batches[30][1]
    for change in (
        struct.pack(">hqqqq", 0, 7, 995, marker - 1, marker),
        struct.pack(">hqqqq", 0, 8, 995, marker, marker),
    ):
        segment.parts[SideFile.TRANSACTION][:] = change
        with pytest.raises(CorruptSegmentError, match="marker of producer") as caught:
            run(segment)
        assert caught.value.path == FILES.transaction_index
        assert not caught.value.rebuildable
    segment.parts[SideFile.TRANSACTION][:] = struct.pack(
        ">hqqqq", 0, 7, 995, segment.metadata.end_offset, marker
    )
    with pytest.raises(CorruptSegmentError, match="marker of producer 7 at"):
        run(segment)


@pytest.mark.parametrize("told_from", [0, 250])
def test_records_that_were_deleted_may_have_forgotten_epochs(told_from: int) -> None:
    """DeleteRecords into the segment: the leader's epochs begin at the new log start."""
    segment = a_segment()
    start = segment.metadata.start_offset
    segment.metadata = replace(
        segment.metadata, segment_leader_epochs=(SegmentEpoch(4, start + told_from),)
    )
    segment.parts[SideFile.LEADER_EPOCH][:] = encode_epochs([(4, start + 250)])
    run(segment)
    # What is still known must fit all the same.
    segment.parts[SideFile.LEADER_EPOCH][:] = encode_epochs([(4, start + 150)])
    if told_from == 0:
        with pytest.raises(CorruptSegmentError, match="leader epoch 2"):
            run(segment)


def test_a_file_is_checked_where_it_lies() -> None:
    """With a buffer that is shorter than the file, and one that is longer."""
    filesystem = FakeFilesystem()
    segment = a_segment()
    files = segment.write(filesystem, "/p")
    parts = {kind: bytes(data) for kind, data in segment.parts.items()}
    for size in (64, 1 << 20):
        buffer = memoryview(bytearray(size))
        check_segment(segment.metadata, files, parts, filesystem, buffer)
    segment.log[-1] ^= 1
    files = segment.write(filesystem, "/p")
    with pytest.raises(CorruptSegmentError) as caught:
        check_segment(segment.metadata, files, parts, filesystem, buffer)
    assert caught.value.path == files.log
    assert caught.value.position == segment.batches[-1][0]


def test_a_batch_of_many_pieces() -> None:
    """Large batches span pieces of the upload."""
    big = batch(0, 1, b"z" * 50_000)
    assert len(big) == 50_061
    run(make_segment([b"z" * 50_000, b"", b"y" * 70_000]), 1024)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "abort", "epoch", "roll", "cut", "reopen"]),
        st.integers(1, 120),
    ),
    min_size=5,
    max_size=60,
)


@examples(80)
@given(STEPS, st.booleans())
def test_every_closed_segment_of_a_log_passes(steps: list[tuple[str, int]], several: bool) -> None:
    """A check that refuses what the log writes would let the disk run full."""
    disk = FakeFilesystem()
    log = open_log(disk)
    epoch = 1
    for number, (step, size) in enumerate(steps):
        time = NOW_MS + size * 7 - number
        if step == "epoch":
            epoch += 1
        elif step == "roll":
            log.writer.roll()
        elif step == "cut":
            log.truncation.truncate_to(max(log.log_start_offset, log.log_end_offset - size // 10))
        elif step == "reopen":
            log.close()
            end = log.log_end_offset
            log = open_log(disk, opened=Opened(recovery_point=end, clean_shutdown=bool(size % 2)))
        elif step == "abort":
            batch = make_batch(
                b"x" * size,
                timestamp_ms=time,
                producer_id=number,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
            append(log, batch, leader_epoch=epoch)
            marker = build_end_transaction_marker(
                producer_id=number,
                producer_epoch=0,
                commit=bool(size % 3),
                coordinator_epoch=0,
                timestamp_ms=time + 1,
            )
            append(log, memoryview(marker), leader_epoch=epoch, origin=AppendOrigin.COORDINATOR)
        else:
            batches = [make_batch(b"v" * (size // 3), b"w", timestamp_ms=time)] * (
                3 if several else 1
            )
            append(log, memoryview(bytearray().join(batches)), leader_epoch=epoch)
    log.writer.roll()
    buffer = memoryview(bytearray(100))
    for segment, after in pairwise(log.segment_facts()):
        if not segment.size:
            continue
        end = after.base_offset
        index = segment.transaction_index
        has_aborts = index.entry_count > 0
        epochs = log.leader_epochs.entries_in_range(segment.base_offset, end)
        told = replace(
            a_segment().metadata,
            start_offset=segment.base_offset,
            end_offset=end - 1,
            max_timestamp_ms=segment.largest_timestamp,
            segment_size_bytes=segment.size,
            segment_leader_epochs=tuple(SegmentEpoch(*entry) for entry in epochs),
            txn_index_empty=not has_aborts,
        )
        files = SegmentFiles(
            segment.path,
            segment.offset_index.path,
            segment.time_index.path,
            log.producer_snapshot_path(end),
            index.path if has_aborts else None,
            encode_epochs([entry for entry in log.leader_epochs.entries() if entry[1] < end]),
        )
        log.flusher.flush()
        parts = {
            SideFile.OFFSET: disk.read_bytes(files.offset_index),
            SideFile.TIMESTAMP: disk.read_bytes(files.time_index),
            SideFile.PRODUCER_SNAPSHOT: (
                disk.read_bytes(files.producer_snapshot)
                if disk.exists(files.producer_snapshot)
                else encode_snapshot([])
            ),
            SideFile.LEADER_EPOCH: files.leader_epochs,
        }
        if files.transaction_index is not None:
            parts[SideFile.TRANSACTION] = disk.read_bytes(files.transaction_index)
        check_segment(told, files, parts, disk, buffer)
