"""Reads that wait for a disk: fair, bounded, shared, and given up with who asked for them."""

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from broker.replicas.cold_reads import UNCLAIMED_BYTES_MAX, UNCLAIMED_MAX, ColdReads
from storage.errors import DiskError, StorageError


class HandDisk:
    """Threads that work when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[
            tuple[Callable[[], object], Callable[[object, BaseException | None], None]]
        ] = []

    def submit(
        self,
        work: Callable[[], object],
        done: Callable[[object, BaseException | None], None],
    ) -> None:
        self.waiting.append((work, done))

    def step(self) -> None:
        """Do the oldest."""
        work, done = self.waiting.pop(0)
        try:
            result = work()
        except Exception as error:  # noqa: BLE001  because it is handed on
            done(None, error)
        else:
            done(result, None)

    def run(self) -> None:
        while self.waiting:
            self.step()


class Asker:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def __call__(self, result: object, error: StorageError | None) -> None:
        self.told.append(result if error is None else error)


@pytest.fixture
def disks() -> dict[str, HandDisk]:
    return {"/a": HandDisk(), "/b": HandDisk()}


@pytest.fixture
def reads(disks: dict[str, HandDisk]) -> ColdReads:
    return ColdReads(disks.__getitem__, capacity=20, threads=2)  # type: ignore[arg-type]  # a part


def test_a_directory_has_so_many_threads_and_no_more(
    reads: ColdReads, disks: dict[str, HandDisk]
) -> None:
    """The rest waits here, and another directory's reads do not wait for it."""
    told = Asker()
    for at in range(6):
        reads.start("/a", at, lambda at=at: at, told)  # type: ignore[misc]  # bound early
    reads.start("/b", "b", lambda: "b", told)
    assert (len(disks["/a"].waiting), reads.waiting, reads.running) == (2, 4, 3)
    disks["/b"].run()
    assert told.told == ["b"]
    disks["/a"].run()
    assert told.told == ["b", *range(6)]
    assert (reads.waiting, reads.running, reads.done) == (0, 0, 7)


def test_equal_keys_are_one_read(reads: ColdReads, disks: dict[str, HandDisk]) -> None:
    calls: list[int] = []

    def work() -> str:
        calls.append(1)
        return "x"

    askers = [Asker() for _ in range(5)]
    for asker in askers:
        reads.start("/a", "key", work, asker)
    disks["/a"].run()
    assert calls == [1]
    assert [asker.told for asker in askers] == [["x"]] * 5


def test_what_nobody_waits_for_is_not_read(reads: ColdReads, disks: dict[str, HandDisk]) -> None:
    """Neither is anybody told who has gone; one that runs already runs to its end."""
    told = Asker()
    running = [reads.start("/a", at, lambda: "run", told) for at in range(2)]
    waiting = [reads.start("/a", "w", lambda: pytest.fail("read"), told) for _ in range(2)]
    for read in (*running, *waiting):
        assert read is not None
        read.cancel()
        read.cancel()
    assert reads.waiting == 0
    disks["/a"].run()
    assert told.told == []
    assert reads.done == 2


def test_who_stays_is_told_though_another_has_gone(
    reads: ColdReads, disks: dict[str, HandDisk]
) -> None:
    stays, goes = Asker(), Asker()
    for at in range(2):
        reads.start("/a", at, lambda: None, Asker())
    reads.start("/a", "key", lambda: "x", stays)
    leaving = reads.start("/a", "key", lambda: "x", goes)
    assert leaving is not None
    leaving.cancel()
    disks["/a"].run()
    assert (stays.told, goes.told) == (["x"], [])


def test_beyond_the_bound_it_is_refused(reads: ColdReads, disks: dict[str, HandDisk]) -> None:
    """Those of connections are not: each has one at most, and cannot go on without it."""
    told = Asker()
    for at in range(22):
        assert reads.start("/a", at, lambda: None, told) is not None
    assert reads.start("/a", 22, lambda: None, told) is None
    assert reads.start("/b", 22, lambda: None, told) is None
    assert reads.refused == 2
    assert reads.start("/a", 21, lambda: None, told) is not None, "it shares one"
    reads.run("/a", lambda: None, told)
    disks["/a"].run()
    assert reads.start("/a", 22, lambda: None, told) is not None


def test_an_error_is_told(reads: ColdReads, disks: dict[str, HandDisk]) -> None:
    """One that nobody expects is told as one of storage, so that the client is answered."""
    told = Asker()
    error = DiskError("broken", "/a/x", 5)

    def failing(error: Exception) -> Callable[[], object]:
        def work() -> object:
            raise error

        return work

    reads.start("/a", 1, failing(error), told)
    reads.start("/a", 2, failing(KeyError("bug")), told)
    disks["/a"].run()
    assert told.told[0] is error
    assert type(told.told[1]) is StorageError
    assert reads.running == 0


def test_what_was_read_for_one_who_left_is_kept_for_the_next(
    reads: ColdReads, disks: dict[str, HandDisk]
) -> None:
    """Or a disk slower than clients are patient would be read for ever; it is given out once."""
    first, second = Asker(), Asker()
    read = reads.start("/a", "key", lambda: b"bytes", first)
    assert read is not None
    read.leave()
    disks["/a"].run()
    assert first.told == []
    assert reads.unclaimed_bytes == 5
    reads.start("/a", "key", lambda: pytest.fail("read twice"), second)
    disks["/a"].run()
    assert second.told == [b"bytes"]
    assert reads.unclaimed_bytes == 0


def test_what_is_kept_is_bounded(reads: ColdReads, disks: dict[str, HandDisk]) -> None:
    large = bytes(UNCLAIMED_BYTES_MAX // 4)
    for at in range(8):
        read = reads.start("/a", at, lambda: large, Asker())
        assert read is not None
        read.leave()
        disks["/a"].run()
        assert reads.unclaimed_bytes <= UNCLAIMED_BYTES_MAX
    for at in range(UNCLAIMED_MAX + 10):
        read = reads.start("/a", ("small", at), lambda: b"", Asker())
        assert read is not None
        read.leave()
        disks["/a"].run()
    assert len(reads._unclaimed) == UNCLAIMED_MAX
    assert reads.unclaimed_bytes == 0


class OpenFile:
    """What a read has open, as long as anything refers to it."""

    def read(self) -> bytes:
        return b"read"


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
def test_a_read_that_has_ended_keeps_no_file_open(
    reads: ColdReads, disks: dict[str, HandDisk]
) -> None:
    """Nor one that was given up: the room of a deleted segment is free once nothing reads it."""

    def files(count: int) -> list[OpenFile]:
        return [OpenFile() for _ in range(count)]

    opened = files(3)
    known = [weakref.ref(file) for file in opened]
    reads.run("/a", opened[0].read, lambda _result, _error: None)
    reads.start("/a", 1, opened[1].read, Asker())
    given_up = reads.start("/a", 2, opened[2].read, Asker())
    assert given_up is not None
    given_up.cancel()
    del given_up
    disks["/a"].run()
    opened.clear()
    assert [file() for file in known] == [None, None, None]
