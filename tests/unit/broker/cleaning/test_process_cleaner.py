"""Compaction in processes: the same rules as in a thread, and what happens when they end.

The rules are those of `tests.unit.storage.cleaner.test_cleaner`, every one of which is run again
here with the cleaning done beyond a socket; the crash tests cut the power of the disk on both
sides.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from broker.cleaning.messages import Limits, decode, encode
from broker.cleaning.process_cleaner import IDLE_MS, ProcessCleaner
from broker.cleaning.worker import Worker
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import CleaningAbortedError, CleaningFailedError
from storage.types.log_files import CLEANED_SUFFIX
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.cleaner import test_cleaner
from tests.unit.storage.cleaner.test_cleaner import *  # noqa: F403  because its tests are run again here

# Counts looks, of which there are fewer here; see `test_an_abort_keeps_the_process`.
del test_stopped_run_changes_nothing  # noqa: F821  because it came with the others

LIMITS = Limits(1 << 16, 0.9, 256, 0.0)


class ThreadProcess:
    """A cleaning process of this one's threads, over a disk in memory."""

    def __init__(self, filesystem: FakeFilesystem) -> None:
        self._ours, theirs = socket.socketpair()
        self._lines = self._ours.makefile("rb")
        self.killed = False
        self.hangs = False
        self.said: list[Mapping[str, Any]] = []
        self.broken: BaseException | None = None
        worker = Worker(theirs, filesystem, leave=lambda: None)

        def run() -> None:
            try:
                worker.run()
            except BaseException as error:  # noqa: BLE001  because it is told in `hear`
                self.broken = error
            finally:
                theirs.shutdown(socket.SHUT_RDWR)
                theirs.close()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        self.said.append(message)
        try:
            self._ours.sendall(encode(message))
        except OSError as error:
            raise CleaningFailedError("gone") from error

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        try:
            line = self._lines.readline()
        except OSError:
            line = b""
        if not line:
            self._thread.join(10)
            if self.broken is not None and not isinstance(self.broken, CleaningFailedError):
                raise self.broken
            raise CleaningFailedError("ended")
        return decode(line)

    def kill(self) -> None:
        self.killed = True
        if not self.hangs and self._ours.fileno() >= 0:
            self._ours.shutdown(socket.SHUT_RDWR)
            self._thread.join(10)
        self._lines.close()
        self._ours.close()

    def is_gone(self) -> bool:
        return not self.hangs and not self._thread.is_alive()


class Processes:
    """Where they come from; the newest last."""

    def __init__(self, filesystem: FakeFilesystem) -> None:
        self.filesystem = filesystem
        self.all: list[ThreadProcess] = []
        self.refuse = False

    def start(self) -> ThreadProcess:
        if self.refuse:
            raise OSError("no room")
        self.all.append(ThreadProcess(self.filesystem))
        return self.all[-1]


def cleaner_of(
    filesystem: FakeFilesystem, processes: Processes, clock: ManualClock, limits: Limits = LIMITS
) -> ProcessCleaner:
    in_thread = Cleaner(
        filesystem, dedupe_buffer_bytes=limits.dedupe_buffer_bytes, read_bytes=limits.read_bytes
    )
    return ProcessCleaner(
        processes.start, lambda: in_thread, filesystem=filesystem, clock=clock, limits=limits
    )


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ProcessCleaner]]:
    """The tests of the cleaner get this one."""
    made: list[ProcessCleaner] = []

    def make(filesystem: FakeFilesystem, map_bytes: int) -> ProcessCleaner:
        limits = LIMITS._replace(dedupe_buffer_bytes=map_bytes)
        made.append(cleaner_of(filesystem, Processes(filesystem), ManualClock(), limits))
        return made[-1]

    monkeypatch.setattr(test_cleaner, "make_cleaner", make)
    yield made
    for cleaner in made:
        cleaner.close()


def written(count: int = 24) -> test_cleaner.Disk:
    disk = test_cleaner.Disk()
    for index in range(count):
        disk.write((b"k%d" % (index % 3), b"v%d" % index))
    disk.roll()
    return disk


def run(
    cleaner: ProcessCleaner,
    disk: test_cleaner.Disk,
    check_done: Callable[[], None] = lambda: None,
    on_owner: Callable[..., Any] = lambda act: act(),
) -> Any:
    return cleaner.clean(
        disk.log,
        first_dirty_offset=0,
        first_uncleanable_offset=disk.log.segment_facts()[-1].base_offset,
        now_ms=disk.clock.now_ms(),
        check_done=check_done,
        on_owner=on_owner,
    )


def remains(disk: test_cleaner.Disk) -> list[str]:
    names = [e.name for e in disk.filesystem.list_directory(test_cleaner.DIRECTORY)]
    return [name for name in names if name.endswith((CLEANED_SUFFIX, ".swap"))]


def test_a_process_is_kept_for_the_next_run_and_ended_when_idle() -> None:
    disk, clock = written(), ManualClock()
    processes = Processes(disk.filesystem)
    cleaner = cleaner_of(disk.filesystem, processes, clock)
    assert cleaner.running == 0
    run(cleaner, disk)
    run(cleaner, disk)
    assert len(processes.all) == cleaner.running == cleaner.started == 1
    clock.advance(IDLE_MS - 1)
    cleaner.end_idle()
    assert cleaner.running == 1
    clock.advance(2)
    cleaner.end_idle()
    assert cleaner.running == 0
    assert processes.all[0].killed
    run(cleaner, disk)
    assert cleaner.started == 2
    cleaner.close()
    assert cleaner.running == 0


def test_only_paths_and_offsets_cross() -> None:
    disk = written()
    processes = Processes(disk.filesystem)
    cleaner = cleaner_of(disk.filesystem, processes, ManualClock())
    stats = run(cleaner, disk)
    assert stats.bytes_read > 0
    assert [v for _, _, v in test_cleaner.contents(disk)] == [b"v21", b"v22", b"v23"]
    said = b"".join(map(encode, processes.all[0].said))
    assert b"v21" not in said
    cleaner.close()


def test_a_process_that_ends_in_the_middle_loses_nothing() -> None:
    """What it wrote is gone before the next run, which does it all."""
    disk = written()
    before = test_cleaner.contents(disk)
    processes = Processes(disk.filesystem)
    cleaner = cleaner_of(disk.filesystem, processes, ManualClock())

    def end(_act: Callable[[], None]) -> None:
        # It has written a segment, and waits to be told to go on.
        processes.all[0].kill()
        raise CleaningFailedError("ended")

    with pytest.raises(CleaningFailedError):
        run(cleaner, disk, on_owner=end)
    assert cleaner.lost == 1
    assert cleaner.running == 0
    assert test_cleaner.contents(disk) == before
    run(cleaner, disk)
    assert [v for _, _, v in test_cleaner.contents(disk)] == [b"v21", b"v22", b"v23"]
    assert remains(disk) == []
    cleaner.close()


def test_an_abort_keeps_the_process() -> None:
    """It removes what it has written; another log is cleaned by it at once."""
    disk = written()
    processes = Processes(disk.filesystem)
    cleaner = cleaner_of(disk.filesystem, processes, ManualClock())

    def aborted(_act: Callable[[], None]) -> None:
        raise CleaningAbortedError("deleted")

    with pytest.raises(CleaningAbortedError):
        run(cleaner, disk, on_owner=aborted)
    assert remains(disk) == []
    assert (cleaner.running, cleaner.lost) == (1, 0)
    run(cleaner, disk)
    assert cleaner.started == 1
    cleaner.close()


def test_a_killed_process_that_still_hangs_has_its_directory_to_itself() -> None:
    """What it writes late would be taken for a part of the next run."""
    disk = written()
    processes = Processes(disk.filesystem)
    cleaner = cleaner_of(disk.filesystem, processes, ManualClock())

    def hang(_act: Callable[[], None]) -> None:
        processes.all[0].hangs = True
        raise CleaningFailedError("no answer")

    with pytest.raises(CleaningFailedError):
        run(cleaner, disk, on_owner=hang)
    with pytest.raises(CleaningFailedError, match="still writes"):
        run(cleaner, disk)
    processes.all[0].hangs = False
    processes.all[0]._thread.join(10)
    run(cleaner, disk)
    assert [v for _, _, v in test_cleaner.contents(disk)] == [b"v21", b"v22", b"v23"]
    cleaner.close()


def test_without_a_process_a_thread_does_it(caplog: pytest.LogCaptureFixture) -> None:
    disk = written()
    processes = Processes(disk.filesystem)
    processes.refuse = True
    cleaner = cleaner_of(disk.filesystem, processes, ManualClock())
    run(cleaner, disk)
    assert [v for _, _, v in test_cleaner.contents(disk)] == [b"v21", b"v22", b"v23"]
    assert "compacting in a thread" in caplog.text


def test_runs_share_the_rate() -> None:
    """Also one that began before the other, and with a limit that changes under way."""
    first, second = written(), written()
    processes = Processes(first.filesystem)
    limits = LIMITS._replace(rate=1e9)
    cleaner = cleaner_of(first.filesystem, processes, ManualClock(), limits)

    def both(act: Callable[[], None]) -> None:
        if len(processes.all) == 1:
            processes.filesystem = second.filesystem
            cleaner._filesystem = second.filesystem
            run(cleaner, second)
            cleaner.set_limits(limits._replace(rate=4e8))
            cleaner._filesystem = first.filesystem
        act()

    run(cleaner, first, on_owner=both)
    rates = [message["rate"] for message in processes.all[0].said if "rate" in message]
    assert rates[:4] == [1e9, 5e8, 1e9, 4e8]
    cleaner.close()
