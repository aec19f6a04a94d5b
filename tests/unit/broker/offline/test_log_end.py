"""Where a log ends, read from outside."""

from struct import pack

from broker.offline.log_end import NO_EPOCH, LogEnd, read_log_end
from protocol.records.builder import build_batch
from storage.types.log_files import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, log_file_name
from tests.fakes.filesystem import FakeFilesystem

FOLDER = "/d/t-0"


def disk() -> FakeFilesystem:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.mkdir(FOLDER)
    return filesystem


def batch(offset: int, epoch: int, count: int = 2) -> bytes:
    records = [(None, b"v", (), 0)] * count
    return bytes(build_batch(records, base_offset=offset, leader_epoch=epoch))


def put(filesystem: FakeFilesystem, base: int, data: bytes, index: bytes = b"") -> None:
    filesystem.replace_bytes(f"{FOLDER}/{log_file_name(base, LOG_SUFFIX)}", data)
    if index:
        filesystem.replace_bytes(f"{FOLDER}/{log_file_name(base, OFFSET_INDEX_SUFFIX)}", index)


def test_it_is_behind_the_last_batch() -> None:
    filesystem = disk()
    put(filesystem, 0, batch(0, 3) + batch(2, 4))
    assert read_log_end(filesystem, FOLDER) == LogEnd(4, 4)


def test_what_is_cut_off_or_damaged_does_not_count() -> None:
    filesystem = disk()
    put(filesystem, 0, batch(0, 3) + batch(2, 4)[:-1])
    assert read_log_end(filesystem, FOLDER) == LogEnd(3, 2)
    put(filesystem, 0, batch(0, 3) + batch(2, 4)[:-1] + b"\xff")
    assert read_log_end(filesystem, FOLDER) == LogEnd(3, 2)
    put(filesystem, 0, batch(0, 3) + bytes(100))
    assert read_log_end(filesystem, FOLDER) == LogEnd(3, 2)


def test_an_empty_last_segment_leaves_it_to_the_one_before() -> None:
    filesystem = disk()
    put(filesystem, 0, batch(0, 3))
    put(filesystem, 2, b"")
    assert read_log_end(filesystem, FOLDER) == LogEnd(3, 2)


def test_a_log_without_a_batch_ends_where_it_begins() -> None:
    """So does one whose records are all in remote storage."""
    filesystem = disk()
    assert read_log_end(filesystem, FOLDER) == LogEnd(NO_EPOCH, 0)
    put(filesystem, 70, b"")
    assert read_log_end(filesystem, FOLDER) == LogEnd(NO_EPOCH, 70)


def test_the_index_saves_reading_and_is_not_trusted() -> None:
    """One that points between batches is left for the beginning; zeros behind its end are none."""
    filesystem = disk()
    first, second = batch(0, 3), batch(2, 4)
    put(filesystem, 0, first + second, pack(">ii", 2, len(first)) + bytes(80))
    assert read_log_end(filesystem, FOLDER) == LogEnd(4, 4)
    put(filesystem, 0, first + second, pack(">ii", 2, len(first) + 5))
    assert read_log_end(filesystem, FOLDER) == LogEnd(4, 4)
    put(filesystem, 0, first + second, pack(">ii", 2, 10_000))
    assert read_log_end(filesystem, FOLDER) == LogEnd(4, 4)


def test_of_two_ends_the_later_epoch_is_greater() -> None:
    """A deposed leader may have a longer log."""
    assert LogEnd(4, 10) > LogEnd(3, 99)
    assert LogEnd(4, 11) > LogEnd(4, 10)
