"""Look-ups that do not wait find what those that wait find, one missing piece after the other."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.environment.local_filesystem import LocalFilesystem
from storage.errors import CorruptFileError, DiskError, StorageError
from storage.index.reads import NOWAIT, CachedReads, Reads, WouldBlockError
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from tests.effort import examples
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem

T = TypeVar("T")
TP = TopicPartition("t", 0)
DIRECTORY = "/d/t-0"
CONFIG = TopicConfig(segment_bytes=1 << 20, index_interval_bytes=200, segment_index_bytes=4096)


def open_log(filesystem: FakeFilesystem, batches: int) -> Log:
    log = Log.open(
        DIRECTORY,
        TP,
        topic_id=UUID(int=1),
        config=CONFIG,
        environment=FakeEnvironment(filesystem=filesystem, clock=ManualClock()),
    )
    for at in range(batches):
        records = [(None, b"%d" % at, (), 1_000 + at)] * (1 + at % 3)
        log.writer.append_as_leader(memoryview(build_batch(records)), leader_epoch=0, now_ms=2_000)
        if at % 20 == 19:
            log.writer.roll()
    log.update_high_watermark(log.log_end_offset)
    return log


def forget(log: Log) -> None:
    """As after a start: nothing of the closed segments is known but their names and sizes."""
    for segment in list(log.segments)[:-1]:
        segment.seal()
        segment.close()


def patiently(look_up: Callable[[Reads], T]) -> tuple[T, int]:
    """Do what a parked fetch does; and how often a thread was needed."""
    reads = CachedReads()
    for rounds in range(100):
        try:
            return look_up(reads), rounds
        except WouldBlockError as need:
            try:
                reads.keep(need.key, need.work())
            except StorageError as error:
                reads.keep(need.key, None, error)
    raise AssertionError("it does not come to an end")


@examples(25)
@given(
    offset=st.integers(0, 150),
    max_bytes=st.integers(0, 4_000),
    end=st.integers(0, 150),
    min_one=st.booleans(),
)
def test_a_cold_read_finds_what_a_warm_one_finds(
    offset: int, max_bytes: int, end: int, min_one: bool
) -> None:
    """Also where no page stays in memory from one look to the next."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, 70)
    offset = min(offset, log.log_end_offset)

    def read(reads: Reads) -> tuple[str, int, int] | None:
        found = log.reader.read(
            offset, max_bytes=max_bytes, end_offset=end, min_one_batch=min_one, reads=reads
        )
        return None if found is None else (found.file.path, found.position, found.length)

    forget(log)
    expected, _ = patiently(read)
    forget(log)
    filesystem.is_cold = lambda _path: True
    found, rounds = patiently(read)
    assert found == expected
    assert rounds <= 12
    filesystem.is_cold = lambda _path: False
    assert read(NOWAIT) == expected, "what was found is remembered"


def test_nothing_on_a_warm_disk_is_read_by_a_thread_twice() -> None:
    """A thread opens the file and reads the index; the page cache has the rest."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, 60)
    forget(log)

    def read(offset: int) -> int:
        return patiently(
            lambda reads: log.reader.read(
                offset, max_bytes=300, end_offset=100, min_one_batch=True, reads=reads
            )
        )[1]

    assert read(7) == 2
    assert read(9) == 0
    assert read(3) == 0


def test_a_disk_error_is_the_look_ups() -> None:
    filesystem = FakeFilesystem()
    log = open_log(filesystem, 60)
    forget(log)
    filesystem.fail("open", path=".log")
    with pytest.raises(DiskError):
        patiently(
            lambda reads: log.reader.read(
                7, max_bytes=300, end_offset=100, min_one_batch=True, reads=reads
            )
        )


@pytest.mark.parametrize("damage", [b"", b"\0\0\0\1\x7f\0\0\0", b"\0\0\0"])
def test_a_thread_rebuilds_a_damaged_index(damage: bytes) -> None:
    """It works on a segment of its own; the loop then reads what it wrote."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, 60)
    whole = log.segments[0].offset_index.entries()
    forget(log)
    path = log.segments[0].offset_index.path
    if damage:
        filesystem.poke(path, damage)
    else:
        filesystem.remove(path)
    filesystem.is_cold = lambda _path: True
    found, rounds = patiently(
        lambda reads: log.reader.read(
            30, max_bytes=300, end_offset=100, min_one_batch=True, reads=reads
        )
    )
    assert found is not None
    assert rounds < 10
    assert log.segments[0].offset_index.entries() == whole


def test_a_rebuild_that_does_not_help_ends() -> None:
    """A segment whose index cannot be right is an error, not a loop."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, 60)
    forget(log)
    segment = log.segments[0]

    def fail() -> int:
        raise CorruptFileError("never right")

    def look_up(reads: Reads) -> int:
        return segment._with_rebuild(fail, reads)

    with pytest.raises(CorruptFileError):
        patiently(look_up)


def test_what_is_in_the_page_cache_is_read_at_once(tmp_path: Path) -> None:
    """Up to the end of the file, like a read that waits."""
    file = LocalFilesystem().open(str(tmp_path / "f"), create=True)
    file.write_at(bytes(range(100)), 0)
    assert file.read_cached(50, 10) == bytes(range(10, 60))
    assert file.read_cached(50, 90) == bytes(range(90, 100))
    assert file.read_cached(50, 200) == b""
    file.close()
    with pytest.raises(DiskError):
        file.read_cached(1, 0)
