"""What a read finds, what it costs, and what it is told of transactions."""

from typing import Any

import pytest

from protocol.records.batch import iterate_batches
from protocol.records.control import build_end_transaction_marker
from storage.errors import (
    CutSegmentError,
    DiskError,
    OffsetOutOfRangeError,
)
from storage.log.directory_pace import DirectoryPace
from storage.log.log import Log
from storage.segment.readable_segment import TimestampOffset
from storage.segment.segment import Segment
from storage.types.append_origin import AppendOrigin
from storage.types.file_slice import FileSlice
from tests.code_path import python_only
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
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


@python_only
def test_a_look_up_by_time_survives_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a thread: segments that go meanwhile must not make it pass over others."""
    log = open_log(FakeFilesystem(), small_segments(300))
    for number in range(6):
        append(log, make_batch(b"%d" % number * 200, timestamp_ms=NOW_MS + number))
    look_up = Segment.find_timestamp
    looked_at: list[int] = []

    def slow(segment: Segment, *args: Any, **options: Any) -> TimestampOffset | None:
        looked_at.append(segment.base_offset)
        if len(looked_at) == 1:
            log.delete_records(2)
            log.retention.delete_old_segments()
            return None
        return look_up(segment, *args, **options)

    monkeypatch.setattr(Segment, "find_timestamp", slow)
    found = log.reader.offset_for_timestamp(NOW_MS + 1)
    assert looked_at == [1, 2]
    assert found is not None
    assert (found.offset, found.timestamp) == (2, NOW_MS + 2)


@python_only
@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("is_told", [False, True])
def test_a_look_up_whose_segments_files_get_other_names_begins_anew(
    monkeypatch: pytest.MonkeyPatch, newest: bool, is_told: bool
) -> None:
    """By a thread, before the log's owner is told or after; the disk is not at fault."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(300))
    for number in range(6):
        late = NOW_MS + (10 - number if newest else number)
        append(log, make_batch(b"%d" % number * 200, timestamp_ms=late))
    clock = ManualClock()
    log.disk_work.leave_to(DirectoryPace(clock.monotonic_ms, clock.monotonic_s))
    name = "find_max_timestamp" if newest else "find_timestamp"
    look_up = getattr(Segment, name)
    looked_at: list[int] = []

    def slow(segment: Segment, *args: Any, **options: Any) -> TimestampOffset | None:
        looked_at.append(segment.base_offset)
        if len(looked_at) == 1:
            log.delete_records(2)
            log.retention.delete_old_segments()
            ticket = log.disk_work.begin()
            assert ticket is not None
            ticket.run()
            if is_told:
                log.disk_work.finish(ticket)
                log.deletion.remove_deleted_files(now=True)
        found: TimestampOffset | None = look_up(segment, *args, **options)
        return found

    monkeypatch.setattr(Segment, name, slow)
    found = log.reader.max_timestamp_offset() if newest else log.reader.offset_for_timestamp(NOW_MS)
    assert looked_at == [0, 2]
    assert found is not None
    assert found.offset == 2
    monkeypatch.undo()
    filesystem.fail("open")
    for segment in log.segment_facts():
        segment.close()
    with pytest.raises(DiskError):
        log.reader.offset_for_timestamp(NOW_MS)


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
    assert log.reader.aborted_transactions(0, log.log_end_offset) == first + second
    assert log.reader.aborted_transactions(0, 3) == first
    assert log.reader.aborted_transactions(5, 9) == []
    assert log.reader.aborted_transactions(9, 11) == second
    found = log.reader.read(0, max_bytes=1, end_offset=11, min_one_batch=True)
    assert found is not None
    assert log.reader.aborted_transactions(0, found)[:1] == first
    for opened in (Opened(), Opened(log.log_end_offset)):
        assert (
            open_log(filesystem, opened=opened).reader.aborted_transactions(0, 99) == first + second
        )


def test_reads_end_with_whole_batches() -> None:
    """However small the limit; nothing without `min_one_batch` when the first does not fit."""
    log = open_log(FakeFilesystem(), small_segments(100_000))
    for number in range(60):
        append(log, make_batch(b"v" * (number * 7 % 90)))
    total = log.size()
    for limit in range(0, total + 50, 37):
        found = log.reader.read(3, max_bytes=limit, end_offset=60, min_one_batch=True)
        assert found is not None
        data = memoryview(found.file.read_at(found.length, found.position))
        headers = [header for _, header in iterate_batches(data)]
        assert headers[0].base_offset == 3
        assert len(headers) == 1 or found.length <= limit
        nothing = log.reader.read(3, max_bytes=limit, end_offset=60, min_one_batch=False)
        assert nothing is not None
        assert nothing.length in (0, found.length)
        assert nothing.length <= limit
    found = log.reader.read(3, max_bytes=total, end_offset=20, min_one_batch=True)
    assert found is not None
    data = memoryview(found.file.read_at(found.length, found.position))
    assert [header.base_offset for _, header in iterate_batches(data)] == list(range(3, 20))


def test_a_slice_says_whether_more_lies_behind_it() -> None:
    """Beyond its limit, or in later segments; not what may not be read yet."""
    log = open_log(FakeFilesystem(), small_segments(500))
    for _ in range(3):
        append(log, make_batch(b"x" * 150))
    assert [segment.base_offset for segment in log.segments] == [0, 2]

    def is_cut(offset: int, max_bytes: int = 1 << 20, end_offset: int = 3) -> bool:
        found = log.reader.read(
            offset, max_bytes=max_bytes, end_offset=end_offset, min_one_batch=True
        )
        assert found is not None
        return found.is_cut

    assert is_cut(0)
    assert not is_cut(0, end_offset=2)
    assert is_cut(0, max_bytes=300, end_offset=2)
    assert not is_cut(0, max_bytes=300, end_offset=1)
    assert not is_cut(2)


def test_reading_along_needs_no_index() -> None:
    """A reader that goes on where it stopped, at the tail or behind, costs no read of its own."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(100_000))
    for _ in range(3):
        append(log, make_batch(b"x" * 40))
    assert log.reader.read(3, max_bytes=999, end_offset=3, min_one_batch=True) is None
    for offset in range(3, 20):
        append(log, make_batch(b"x" * 40))
        reads = filesystem.reads
        found = log.reader.read(offset, max_bytes=999, end_offset=offset + 1, min_one_batch=True)
        assert found is not None
        assert filesystem.reads == reads


def test_offsets_outside_are_refused() -> None:
    """At the end there is nothing yet; beyond it is an error."""
    log = open_log(FakeFilesystem())
    append(log, make_batch(b"x"))
    assert log.reader.read(1, max_bytes=9, end_offset=1, min_one_batch=True) is None
    assert log.reader.read(0, max_bytes=9, end_offset=0, min_one_batch=True) is None
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRangeError):
            log.reader.read(offset, max_bytes=9, end_offset=1, min_one_batch=True)


@pytest.mark.parametrize(("at", "left"), [(7, 2), (-7, 1), (0, 2)])
def test_what_was_cut_off_a_closed_segment_is_no_gap(
    at: int, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    """What is left is read, what is missing is refused, the next segment is read; told once."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(400))
    for number in range(12):
        append(log, make_batch(b"%d" % number * 50))
    first, second, *_ = log.segments
    assert 3 <= second.base_offset <= log.log_end_offset - 3
    log.close(clean=True)
    file = filesystem.open(first.path)
    size = first.size // second.base_offset
    file.truncate(2 * size + at)
    file.close()

    log = open_log(
        filesystem, small_segments(400), opened=Opened(log.log_end_offset, clean_shutdown=True)
    )

    def read(offset: int) -> list[int]:
        found = log.reader.read(offset, max_bytes=9999, end_offset=12, min_one_batch=True)
        assert found is not None
        data = memoryview(found.file.read_at(found.length, found.position))
        return [header.base_offset for _, header in iterate_batches(data)]

    assert read(0) == list(range(left))
    for offset in range(left, second.base_offset):
        with pytest.raises(CutSegmentError, match=f"below {second.base_offset} is missing"):
            read(offset)
    assert read(second.base_offset)[0] == second.base_offset
    lines = [r for r in caplog.records if "segment has been cut" in r.getMessage()]
    assert len(lines) == 1


def test_a_closed_segment_that_is_cut_while_it_is_open_is_refused_from_there_on() -> None:
    """As after a start: else every answer with it ends its connection, with all that is beside."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(400))
    told: list[CutSegmentError] = []
    log.on_cut = told.append
    for number in range(12):
        append(log, make_batch(b"%d" % number * 50))
    first, second, *_ = log.segments

    def read(offset: int) -> FileSlice:
        found = log.reader.read(offset, max_bytes=9999, end_offset=12, min_one_batch=True)
        assert found is not None
        return found

    whole = read(0)
    size = first.size // second.base_offset
    _cut(filesystem, first.path, 2 * size + 7)
    # What a sender does that finds out.
    whole.file.is_short = True
    assert read(0).length == 2 * size
    with pytest.raises(CutSegmentError, match=f"below {second.base_offset} is missing"):
        read(2)
    assert [one.path for one in told] == [first.path]
    assert read(second.base_offset).position == 0
    assert not whole.file.is_short


def test_a_slice_from_before_a_truncation_is_no_sign_of_a_cut() -> None:
    """A leader that becomes a follower truncates; a slow consumer's answer then ends early."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(9999))
    for number in range(6):
        append(log, make_batch(b"%d" % number * 50))
    log.on_cut = lambda error: pytest.fail(str(error))
    whole = log.reader.read(0, max_bytes=9999, end_offset=6, min_one_batch=True)
    assert whole is not None
    log.truncation.truncate_to(3)
    whole.file.is_short = True
    left = log.reader.read(0, max_bytes=9999, end_offset=3, min_one_batch=True)
    assert left is not None
    assert left.length == whole.length // 2
    append(log, make_batch(b"x" * 50))
    assert len(log.segments) == 1


@pytest.mark.parametrize("kept_batches", [0, 2])
def test_an_active_segment_that_is_cut_gets_no_more_records(kept_batches: int) -> None:
    """They would follow a hole of zeros, which consumers take for records."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(9999))
    told: list[CutSegmentError] = []
    log.on_cut = told.append
    for number in range(6):
        append(log, make_batch(b"%d" % number * 50))

    def read(offset: int) -> FileSlice | None:
        return log.reader.read(
            offset, max_bytes=9999, end_offset=log.log_end_offset, min_one_batch=True
        )

    whole = read(0)
    assert whole is not None
    size = whole.length // 6
    _cut(filesystem, log.segments.active.path, kept_batches * size + 7)
    whole.file.is_short = True
    with pytest.raises(CutSegmentError, match=r"offset 0 .* below 6 is missing"):
        read(0)
    assert read(6) is None
    assert append(log, make_batch(b"x" * 50)).first_offset == 6
    assert [segment.base_offset for segment in log.segments] == [0, 6]
    after = read(6)
    assert after is not None
    assert after.position == 0
    if kept_batches:
        before = read(0)
        assert before is not None
        assert before.length == kept_batches * size
    with pytest.raises(CutSegmentError, match=rf"offset {kept_batches} .* below 6 is missing"):
        read(kept_batches)
    assert {one.next_offset for one in told} == {6}


def test_a_closed_segment_is_looked_at_once() -> None:
    """Of a segment that was closed here it is known that it ends with a whole batch."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(400))
    for number in range(12):
        append(log, make_batch(b"%d" % number * 50))
    assert not any(segment.may_be_cut for segment in log.segments)
    log.close(clean=True)
    log = open_log(
        filesystem, small_segments(400), opened=Opened(log.log_end_offset, clean_shutdown=True)
    )
    first = next(iter(log.segments))
    assert first.may_be_cut
    assert log.reader.read(0, max_bytes=9999, end_offset=12, min_one_batch=True) is not None
    assert not first.may_be_cut


def _segmented(filesystem: FakeFilesystem, **settings: object) -> Log:
    """Twelve records, each a millisecond later than the one before, in several segments."""
    log = open_log(filesystem, small_segments(600, **settings))
    for number in range(12):
        append(log, make_batch(b"%d" % number * 50, timestamp_ms=NOW_MS + number))
    return log


def _again(filesystem: FakeFilesystem, *, known: bool = True, **settings: object) -> Log:
    """The log after a clean stop; `known`: with a recovery point."""
    opened = Opened(12 if known else None, clean_shutdown=True)
    return open_log(filesystem, small_segments(600, **settings), opened=opened)


def _cut(filesystem: FakeFilesystem, path: str, size: int) -> None:
    file = filesystem.open(path)
    file.truncate(size)
    file.close()


@pytest.mark.parametrize("what", ["emptied", "removed"])
def test_a_segment_of_which_nothing_is_left_is_no_gap(what: str) -> None:
    """As one that was cut between two of its batches: the next one says where it ended."""
    filesystem = FakeFilesystem()
    log = _segmented(filesystem)
    first, second, third, *_ = log.segments
    log.close(clean=True)
    if what == "emptied":
        _cut(filesystem, second.path, 0)
    else:
        filesystem.unlink(second.path)
    log = _again(filesystem)
    read = log.reader.read(0, max_bytes=9999, end_offset=12, min_one_batch=True)
    assert read is not None
    assert read.length == first.size
    with pytest.raises(CutSegmentError, match=f"below {third.base_offset} is missing"):
        log.reader.read(second.base_offset, max_bytes=9999, end_offset=12, min_one_batch=True)


@pytest.mark.parametrize("reason", ["settings", "earlier settings", "no checkpoint", "gaps"])
def test_what_compaction_may_have_taken_is_a_gap(reason: str) -> None:
    """Nothing is refused where the end of a segment proves nothing."""
    filesystem = FakeFilesystem()
    log = _segmented(filesystem)
    first, second, *_ = log.segments
    log.close(clean=True)
    size = first.size // second.base_offset
    if reason == "gaps":
        # The second batch's offset: the one before it is gone, as in a copy of a compacted log.
        file = filesystem.open(first.path)
        file.write_at(b"\0" * 7 + b"\2", size)
        file.close()
        _cut(filesystem, first.path, 2 * size)
    else:
        _cut(filesystem, first.path, size)
    policy = {"cleanup_policy": ("compact",)} if "settings" in reason else {}
    log = _again(filesystem, known=reason != "no checkpoint", **policy)
    if reason == "earlier settings":
        log.update_config(small_segments(600))
    missing = second.base_offset - 1
    found = log.reader.read(missing, max_bytes=9999, end_offset=12, min_one_batch=True)
    assert found is not None
    header = next(iterate_batches(memoryview(found.file.read_at(found.length, found.position))))
    assert header[1].base_offset == second.base_offset


def test_a_look_up_by_time_does_not_pass_over_what_was_cut_off() -> None:
    """What is there is found, and what is later than all that can be missing."""
    filesystem = FakeFilesystem()
    log = _segmented(filesystem)
    first, second, *_ = log.segments
    log.close(clean=True)
    _cut(filesystem, first.path, first.size // second.base_offset)
    log = _again(filesystem)
    told: list[CutSegmentError] = []
    log.on_cut = told.append
    assert log.reader.offset_for_timestamp(NOW_MS) == TimestampOffset(NOW_MS, 0, 0)
    later = second.base_offset + 1
    assert log.reader.offset_for_timestamp(NOW_MS + later) == (NOW_MS + later, later, 0)
    assert not told
    for number in range(1, second.base_offset + 1):
        with pytest.raises(CutSegmentError, match=f"below {second.base_offset} is missing"):
            log.reader.offset_for_timestamp(NOW_MS + number)
    assert log.reader.offset_for_timestamp(NOW_MS + 1, end_offset=1) is None
    assert len(told) == second.base_offset
