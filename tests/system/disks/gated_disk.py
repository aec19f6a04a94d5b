"""A disk whose flushes take as long as the test wants."""

import errno
import threading

from storage.environment.local_filesystem import LocalFile
from storage.errors import SyncFailedError
from tests.fakes.storage.failing_disk import FailingDisk, FailingFile


class _GatedFile(FailingFile):
    """A log file whose sync waits for the gate."""

    __slots__ = ()

    def sync(self) -> None:
        disk = self._disk
        assert isinstance(disk, GatedDisk)
        if self.path.endswith(".log") and "/t-0/" in self.path:
            is_first = not disk.waiting.is_set()
            disk.waiting.set()
            if is_first or not disk.fails_first:
                assert disk.gate.wait(60)
            if is_first and disk.fails_first:
                raise SyncFailedError("cannot sync (Input/output error)", self.path, errno.EIO)
        super().sync()


class GatedDisk(FailingDisk):
    """Flushes of t-0 wait until `gate` is set; `waiting` tells that one does.

    `fails_first`: the first one fails then, and the kernel tells of it to nobody else: others do
    not wait, and succeed.
    """

    __slots__ = ("fails_first", "gate", "waiting")

    def __init__(self, *, fails_first: bool = False) -> None:
        super().__init__()
        self.fails_first = fails_first
        self.gate = threading.Event()
        self.waiting = threading.Event()

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        fd = plain.detach()
        return _GatedFile(path, fd, self)
