"""A compacted segment takes the place of others: wholly, or not at all."""

import errno

import pytest

from protocol.records.batch import read_header
from storage.cleaner.cleaned_segment import CleanedSegment
from storage.errors import DiskError, LogDirectoryOfflineError
from storage.log.log import Log
from storage.types.log_files import LOG_SUFFIX, log_file_name
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)

CONFIG = small_segments(150, cleanup_policy=("compact",))


class Prepared:
    """A log of three segments, and a finished `.cleaned` one for the first two."""

    def __init__(self) -> None:
        self.filesystem = FakeFilesystem()
        self.log: Log = open_log(self.filesystem, CONFIG)
        for number in range(6):
            append(self.log, make_batch(bytes([65 + number]) * 40, timestamp_ms=NOW_MS + number))
        self.log.flusher.flush()
        self.before = read_batches(self.log)
        segments = self.log.segment_facts()
        assert len(segments) >= 3
        self.old = [segment.base_offset for segment in segments[:2]]
        boundary = segments[2].base_offset
        self.after = [self.before[boundary - 1], *self.before[boundary:]]
        self.clean()

    def clean(self) -> None:
        cleaned = CleanedSegment(self.log.directory, 0, self.filesystem, 90)
        kept = self.after[0]
        cleaned.append(read_header(kept), kept)
        cleaned.finish()

    def replace(self) -> DiskError | None:
        """What the disk said to it."""
        try:
            self.log.replacement.replace(0, self.old)
        except DiskError as error:
            return error
        return None

    def names(self) -> list[str]:
        return sorted(e.name for e in self.filesystem.list_directory(self.log.directory))

    def restarted(self) -> list[bytes]:
        log = open_log(self.filesystem, CONFIG, opened=Opened(self.log.recovery_point))
        assert log.log_end_offset == 6
        return read_batches(log)


def test_without_room_for_a_name_the_log_is_as_before() -> None:
    """Whichever of them it is. The segments had left the log, and its readers missed records."""
    count = 0
    while True:
        prepared = Prepared()
        log, filesystem = prepared.log, prepared.filesystem
        names = [name for name in prepared.names() if ".cleaned" not in name]
        filesystem.fail("rename", errno.ENOSPC, skip=count)
        refusal = prepared.replace()
        if refusal is None:
            break
        assert refusal.is_full
        assert read_batches(log) == prepared.before
        assert prepared.names() == names
        assert prepared.restarted() == prepared.before
        prepared.clean()
        log.replacement.replace(0, prepared.old)
        assert read_batches(log) == prepared.after
        count += 1
    assert count > 10
    assert read_batches(log) == prepared.after


def test_a_segment_that_was_not_put_in_place_is_not_at_the_next_start() -> None:
    """By then the log may have been truncated and written again, or compacted further."""
    prepared = Prepared()
    log, filesystem = prepared.log, prepared.filesystem
    filesystem.fail("sync_directory", errno.EMFILE)
    with pytest.raises(DiskError):
        log.replacement.replace(0, prepared.old)
    log.truncation.truncate_to(1)
    for number in range(5):
        append(log, make_batch(b"new%d" % number * 10, timestamp_ms=NOW_MS + number))
    written = read_batches(log)
    assert prepared.restarted() == written


def test_a_log_whose_files_could_not_be_named_back_is_out_of_service() -> None:
    """Until the next start, which puts the segment in place."""
    prepared = Prepared()
    log, filesystem = prepared.log, prepared.filesystem
    segment = log.replacement.prepare(0)
    filesystem.fail("rename", errno.ENOSPC, skip=4, times=2)
    with pytest.raises(DiskError) as caught:
        log.replacement.put(segment, prepared.old)
    log.replacement.undo_after(caught.value, segment)
    with pytest.raises(LogDirectoryOfflineError):
        read_batches(log)
    assert prepared.restarted() == prepared.after


def test_a_log_beside_which_a_prepared_segment_stays_is_out_of_service() -> None:
    """It cannot be removed, and would be put over what the log is at the next start."""
    prepared = Prepared()
    log, filesystem = prepared.log, prepared.filesystem
    swap = log_file_name(0, LOG_SUFFIX, ".swap")
    filesystem.fail("sync_directory", errno.EMFILE)
    filesystem.fail("unlink", errno.ENOSPC, path=swap)
    with pytest.raises(DiskError):
        log.replacement.replace(0, prepared.old)
    with pytest.raises(LogDirectoryOfflineError):
        append(log, make_batch(b"x"))
    assert prepared.restarted() in (prepared.before, prepared.after)


@pytest.mark.parametrize("refused", [False, True])
def test_what_was_not_put_in_place_does_not_come_back_after_a_power_cut(refused: bool) -> None:
    """It stands for records that the log may have given up by then, or have others for."""
    prepared = Prepared()
    prepared.filesystem.sync_directory("/")
    if refused:
        prepared.filesystem.fail("rename", errno.ENOSPC, path=".log", skip=2)
        assert prepared.replace() is not None
    else:
        replacement = prepared.log.replacement
        replacement.undo(replacement.prepare(0))
    prepared.filesystem.crash()
    assert prepared.restarted() == prepared.before
