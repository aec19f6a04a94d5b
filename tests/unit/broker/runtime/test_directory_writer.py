"""One thread for a directory: in order, back on the loop, and none waits for another's."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator

import pytest

from broker.runtime.directory_writer import DirectoryWriter, DirectoryWriters
from broker.runtime.disk import Disk
from broker.runtime.timer import TimerWheel
from storage.environment.clock import SystemClock
from storage.errors import DiskError
from storage.log.directory_pace import PROOF_WRITES, WATCHED_BYTES
from storage.log.write_ticket import WriteTicket


class Ticket(WriteTicket):
    __slots__ = ("gate", "log", "name")

    def __init__(self, name: str, log: list[object], gate: threading.Event | None = None) -> None:
        super().__init__(0, 100, is_plain=True)
        self.name = name
        self.log = log
        self.gate = gate

    def run(self) -> None:
        if self.gate is not None:
            assert self.gate.wait(30)
        self.log.append((self.name, threading.get_ident()))
        if self.name == "bad":
            raise DiskError("cannot write", "/data")


@pytest.fixture
async def writer() -> AsyncIterator[DirectoryWriter]:
    made = DirectoryWriter(asyncio.get_running_loop(), SystemClock(), "writer-0")
    yield made
    made.close()


async def test_tickets_run_in_order_in_one_thread_and_end_on_the_loop(
    writer: DirectoryWriter,
) -> None:
    ran: list[tuple[str, int]] = []
    ended: list[tuple[str, object, int]] = []
    over = asyncio.Event()
    for name in ("a", "bad", "c"):

        def done(error: BaseException | None, name: str = name) -> None:
            ended.append((name, str(error or ""), threading.get_ident()))
            if name == "c":
                over.set()

        writer.submit(Ticket(name, ran), done)  # type: ignore[arg-type]  # what it appends
    assert writer.waiting == 3
    await asyncio.wait_for(over.wait(), 30)
    assert [name for name, _ in ran] == ["a", "bad", "c"]
    assert len({thread for _, thread in ran} - {threading.get_ident()}) == 1
    here = threading.get_ident()
    assert ended == [("a", "", here), ("bad", "cannot write: /data", here), ("c", "", here)]
    assert (writer.waiting, writer.writes) == (0, 3)


async def test_a_write_that_failed_keeps_its_segment_no_longer(writer: DirectoryWriter) -> None:
    """The error's traceback names the ticket: it ends with the error, and the file is closed."""
    over = asyncio.Event()

    class OpenSegment(list[object]):
        """What the ticket appends to; can be referred to weakly."""

    segment = OpenSegment()
    known = weakref.ref(segment)
    gc.disable()
    try:
        writer.submit(Ticket("bad", segment), lambda _error: None)
        del segment
        writer.submit(Ticket("last", []), lambda _error: over.set())
        await asyncio.wait_for(over.wait(), 30)
        assert known() is None
    finally:
        gc.enable()


async def test_its_own_writes_prove_that_the_directory_is_quick(writer: DirectoryWriter) -> None:
    over, last = asyncio.Event(), asyncio.Event()
    for at in range(PROOF_WRITES):
        writer.submit(Ticket(str(at), []), lambda _error: over.set())
    writer.submit(Ticket("last", []), lambda _error: last.set())
    await asyncio.wait_for(last.wait(), 30)
    assert writer.pace.is_quick


async def test_directories_do_not_wait_for_each_other() -> None:
    writers = DirectoryWriters(asyncio.get_running_loop(), SystemClock(), ("/slow", "/quick"))
    slow, quick = writers.of("/slow"), writers.of("/quick")
    assert slow is not None
    assert quick is not None
    assert writers.of("/elsewhere") is None
    gate = threading.Event()
    over = asyncio.Event()
    try:
        slow.submit(Ticket("s", [], gate), lambda _error: None)
        quick.submit(Ticket("q", []), lambda _error: over.set())
        await asyncio.wait_for(over.wait(), 30)
        assert (slow.waiting, quick.waiting) == (1, 0)
    finally:
        gate.set()
        writers.close()


class Watched:
    """A segment with so many bytes, on a disk that takes or refuses them."""

    def __init__(self, error: DiskError | None = None) -> None:
        self.file = self
        self.path = "/data/t-0/0.log"
        self.size = 3 * WATCHED_BYTES
        self.written_back = WATCHED_BYTES
        self.ranges: list[tuple[int, int]] = []
        self.error = error

    def write_back(self, position: int, size: int) -> bool:
        self.ranges.append((position, size))
        if self.error is not None:
            raise self.error
        return True


async def until_idle(disk: Disk) -> None:
    """Calls of one thread end in their order."""
    await asyncio.wait_for(disk.run(lambda: None), 30)


async def test_what_was_written_is_sent_to_the_disk_and_its_time_taken() -> None:
    disk = Disk(1)
    writer = DirectoryWriter(asyncio.get_running_loop(), SystemClock(), "w", disk)
    pace = writer.pace
    segment = Watched()
    pace.written = pace.watch_at
    pace.watch(segment)  # type: ignore[arg-type]  # all that is looked at
    assert pace.watch_at == pace.written + WATCHED_BYTES
    await until_idle(disk)
    assert segment.ranges == [(2 * WATCHED_BYTES, WATCHED_BYTES)]
    assert (segment.written_back, pace.backlog) == (segment.size, 0)
    disk.close()


async def test_a_disk_that_cannot_take_it_is_told_of() -> None:
    """A later sync would not tell: the directory goes offline as after a failed one."""
    disk = Disk(1)
    writer = DirectoryWriter(asyncio.get_running_loop(), SystemClock(), "w", disk)
    told: list[DiskError] = []
    writer.on_failed = told.append
    failure = DiskError("cannot write back", "/data")
    writer.pace.watch(Watched(failure))  # type: ignore[arg-type]  # all that is looked at
    await until_idle(disk)
    assert told == [failure]
    disk.close()


async def test_a_thread_is_there_before_a_write_depends_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the first write found none, its partition was never written to again."""
    loop, clock = asyncio.get_running_loop(), SystemClock()
    writers = DirectoryWriters(loop, clock, ("/data",))
    timer = TimerWheel(loop, clock)
    writers.start(timer)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    writer = writers.of("/data")
    assert writer is not None
    over = asyncio.Event()
    writer.submit(Ticket("a", []), lambda _error: over.set())
    await asyncio.wait_for(over.wait(), 30)
    writers.close()
    timer.close()
