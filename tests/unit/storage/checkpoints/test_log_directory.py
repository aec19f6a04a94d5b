"""One log directory."""

import threading
from collections.abc import Callable

import pytest

from storage.checkpoints.checkpoint_files import CLEANER_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from storage.checkpoints.log_directory import LogDirectory
from storage.environment.randomness import SeededRandomness
from storage.errors import CorruptFileError, LockedDirectoryError
from storage.types.topic_partition import TopicPartition
from tests.fakes.filesystem import FakeFilesystem

A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
PATH = f"/one/{RECOVERY_POINT_CHECKPOINT}"


def opened(filesystem: FakeFilesystem) -> LogDirectory:
    directory = LogDirectory("/one", filesystem)
    directory.open()
    directory.claim("c", 1, SeededRandomness(1))
    directory.start()
    directory.listed = True
    return directory


def test_lock_is_given_up_at_close() -> None:
    """Whatever else goes wrong then."""
    filesystem = FakeFilesystem()
    directory = opened(filesystem)
    with pytest.raises(LockedDirectoryError):
        LogDirectory("/one", filesystem).open()
    directory.close(mark_clean=False)
    opened(filesystem)


def test_folders_made_for_it_outlive_a_power_cut() -> None:
    """All of them: one that goes takes what lies below with it, however often that was synced."""
    filesystem = FakeFilesystem()
    LogDirectory("/var/lib/one", filesystem).open()
    filesystem.crash()
    assert filesystem.exists("/var/lib/one")


def test_damaged_owner_stops_the_start() -> None:
    """We must not guess whose data it is."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/one")
    filesystem.poke("/one/meta.properties", b"junk")
    with pytest.raises(CorruptFileError):
        LogDirectory("/one", filesystem).open()


def test_checkpoint_keeps_those_still_loading() -> None:
    """Their logs are not open, so nobody else can say where they stand."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/one")
    filesystem.poke(PATH, b"0\n2\na 0 5\na 1 6\n")
    directory = opened(filesystem)
    directory.loading = {A1}
    directory.write_checkpoint(RECOVERY_POINT_CHECKPOINT, lambda _: {A0: 9})
    assert filesystem.peek(PATH) == b"0\n2\na 1 6\na 0 9\n"
    directory.loading = set()
    directory.write_checkpoint(RECOVERY_POINT_CHECKPOINT, lambda _: {A0: 9})
    assert filesystem.peek(PATH) == b"0\n1\na 0 9\n"


def test_nothing_is_written_before_the_partitions_are_known() -> None:
    """Whoever stops before that knows of no offset, and not whether anything is to be recovered."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/one")
    filesystem.poke(PATH, b"0\n1\na 0 5\n")
    directory = LogDirectory("/one", filesystem)
    directory.open()
    directory.write_checkpoint(RECOVERY_POINT_CHECKPOINT, lambda _: {})
    directory.close(mark_clean=True)
    assert filesystem.peek(PATH) == b"0\n1\na 0 5\n"
    assert not filesystem.exists("/one/.kafka_cleanshutdown")


def test_same_checkpoint_is_not_written_twice() -> None:
    """Nor before a change of something else."""
    directory = opened(FakeFilesystem())
    assert directory.write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 1})
    assert not directory.write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 1})
    assert directory.write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 2})


def test_forget_drops_a_partition_everywhere() -> None:
    """From every checkpoint that names it."""
    filesystem = FakeFilesystem()
    directory = opened(filesystem)
    directory.write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 1, A1: 2})
    directory.write_checkpoint(RECOVERY_POINT_CHECKPOINT, lambda _: {A1: 2})
    directory.forget({A0})
    assert directory.checkpointed(CLEANER_CHECKPOINT, A0) is None
    assert filesystem.peek(f"/one/{CLEANER_CHECKPOINT}") == b"0\n1\na 1 2\n"
    assert filesystem.peek(PATH) == b"0\n1\na 1 2\n"


def test_first_reason_to_go_offline_counts() -> None:
    """What follows are consequences; no marker is written."""
    filesystem = FakeFilesystem()
    directory = opened(filesystem)
    directory.go_offline("first")
    directory.go_offline("second")
    assert directory.offline_reason == "first"
    directory.close(mark_clean=True)
    assert not filesystem.exists("/one/.kafka_cleanshutdown")


class Contended:
    """A lock that another gets first, once."""

    def __init__(self, other: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._other: Callable[[], object] | None = other

    def __enter__(self) -> None:
        other, self._other = self._other, None
        if other is not None:
            other()
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


def test_who_forgets_a_partition_puts_no_others_offset_up_again() -> None:
    """It was lowered a moment before: the log had been cut."""
    directory = opened(FakeFilesystem())
    directory.write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 5, A1: 9})
    directory._write_lock = Contended(  # type: ignore[assignment]  # all that is used of a lock
        lambda: directory.write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 5, A1: 2})
    )
    directory.forget({A0})
    assert directory.offsets[CLEANER_CHECKPOINT] == {A1: 2}
