"""A disk whose flushes take as long as the test wants."""

import threading

from storage.environment.local_filesystem import LocalFile
from tests.fakes.storage.failing_disk import FailingDisk, FailingFile


class _GatedFile(FailingFile):
    """A log file whose sync waits for the gate."""

    __slots__ = ()

    def sync(self) -> None:
        assert isinstance(self._disk, GatedDisk)
        if self.path.endswith(".log") and "/t-0/" in self.path:
            self._disk.waiting.set()
            assert self._disk.gate.wait(60)
        super().sync()


class GatedDisk(FailingDisk):
    """Flushes of t-0 wait until `gate` is set; `waiting` tells that one does."""

    __slots__ = ("gate", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.waiting = threading.Event()

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        fd = plain.detach()
        return _GatedFile(path, fd, self)
