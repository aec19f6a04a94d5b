"""Group commit: everybody who needs the log on disk shares one fdatasync.

    IDLE ──request──> FLUSHING ──done, nothing appended since──> IDLE
                         │  ^
                         └──┘ done, but a request came meanwhile: flush again at once

While one fdatasync runs in a thread, further appends go to the page cache; the next flush covers them
all. With one producer this costs one disk round trip a request, with a hundred it costs the same.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.disk import Disk
    from storage.log import FlushTicket, Log

LOGGER = logging.getLogger(__name__)


class GroupCommit:
    """The flushes of one log. A failed fsync is never retried: the log is failed instead.

    After a failed fsync the kernel may have dropped the dirty pages, so a second call that succeeds
    proves nothing (PostgreSQL learnt this in 2018).
    """

    __slots__ = ("_disk", "_log", "_on_flushed", "_wanted", "failed", "flushes", "flushing")

    def __init__(self, log: "Log", disk: "Disk", on_flushed: Callable[[int], None]) -> None:
        self._log = log
        self._disk = disk
        self._on_flushed = on_flushed
        self._wanted = False
        self.flushing = False
        self.failed = False
        self.flushes = 0

    def request(self) -> None:
        """Have everything appended so far on disk soon; `on_flushed(end_offset)` tells."""
        if self.failed:
            return
        if self.flushing:
            self._wanted = True
            return
        ticket = self._log.begin_flush()
        if ticket is None:
            self._on_flushed(self._log.recovery_point)
            return
        self.flushing = True
        self._disk.submit(
            ticket.run, lambda _result, failure: self._finished(ticket, failure)
        )

    def _finished(self, ticket: "FlushTicket", failure: BaseException | None) -> None:
        self.flushing = False
        if failure is not None:
            self.failed = True
            LOGGER.error("flush failed log=%s error=%s", self._log.directory, failure)
            if not isinstance(failure, DiskError):
                raise failure
            self._log.fail(failure)
            self._on_flushed(-1)
            return
        self.flushes += 1
        self._log.finish_flush(ticket)
        again, self._wanted = self._wanted, False
        if again:
            self.request()
        self._on_flushed(ticket.end_offset)
