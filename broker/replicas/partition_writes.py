"""Queued writes of a partition's log, submitted to its directory's writer ticket by ticket.

    IDLE ──pump: the log has a ticket───> WRITING ──done, nothing left──> IDLE
                                          │  │  ^
                                          │  └──┘ done, more is queued: the next ticket at once
                                          │
                                          └──the producers could not be read again, for want of a
                                             descriptor──> PUT OFF ──a moment later──> WRITING

Abandoned (the partition is not served any more), it finishes what the thread has and drops the
rest.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from storage.errors import DiskError
from storage.log.write_ticket import BackTicket

if TYPE_CHECKING:
    from broker.runtime.directory_writer import DirectoryWriter
    from storage.log.log import Log
    from storage.log.write_ticket import WriteTicket

LOGGER = logging.getLogger(__name__)


class PartitionWrites:
    """See the module. Touched on the loop's thread only."""

    __slots__ = (
        "_abandoned",
        "_idle",
        "_is_put_off",
        "_log",
        "_may_write",
        "_on_failed",
        "_on_taken_back",
        "_on_written",
        "writer",
        "writing",
    )

    def __init__(
        self,
        log: "Log",
        writer: "DirectoryWriter",
        on_written: Callable[[int], None],
        on_failed: Callable[[DiskError], None],
        on_taken_back: Callable[[], None],
        may_write: Callable[[], bool],
    ) -> None:
        """Set the log's queue to the directory's pace.

        Args:
            log: Queues the writes.
            writer: Of its directory.
            on_written: Called with the former log end offset when it has moved.
            on_failed: Called when the queued records will not be written.
            on_taken_back: Called once their offsets are free again, if there was only no room.
            may_write: Whether nobody else may have the log now, as who truncates or closes it; who
                calls `pump` when that has changed.
        """
        self._log = log
        self.writer = writer
        self._on_written = on_written
        self._on_failed = on_failed
        self._on_taken_back = on_taken_back
        self._may_write = may_write
        self.writing = False
        self._abandoned = False
        self._is_put_off = False
        self._idle: asyncio.Event | None = None
        log.disk_work.leave_to(writer.pace)

    def pump(self) -> None:
        """Submit queued records, if there are any."""
        if self.writing or self._is_put_off:
            return
        ticket = self._log.disk_work.begin()
        if ticket is None:
            if self._idle is not None:
                self._idle.set()
            return
        self.writing = True
        self.writer.submit(ticket, lambda failure: self._finished(ticket, failure))

    def abandon(self) -> None:
        """Drop the queue: the partition is not served any more, waiting appends were answered."""
        self._abandoned = True
        if not self.writing:
            self._log.disk_work.drop_queued()

    async def idle(self) -> None:
        """Wait until all queued records are written or dropped.

        What is put off is not waited for: who closes the log, or truncates it, does it then, or is
        told why not.
        """
        while self.writing or (
            not self._is_put_off
            and (self._log.write_queue is not None or self._log.disk_work.is_rolling_back)
        ):
            if self._idle is None:
                self._idle = asyncio.Event()
            self._idle.clear()
            self.pump()
            if self.writing:
                await self._idle.wait()

    def _finished(self, ticket: "WriteTicket", failure: BaseException | None) -> None:
        self.writing = False
        log = self._log
        before = log.log_end_offset
        moved = log.disk_work.finish(ticket, failure)
        if failure is not None:
            if isinstance(ticket, BackTicket) and log.failure is None:
                self._put_off()
            elif isinstance(failure, DiskError):
                LOGGER.error("write to the log failed log=%s error=%s", log.directory, failure)
            else:
                LOGGER.error("write to the log failed log=%s", log.directory, exc_info=failure)
            error = log.failure or failure
            assert isinstance(error, DiskError)
            self._on_failed(error)
        elif moved and not self._abandoned:
            self._on_written(before)
        elif isinstance(ticket, BackTicket):
            self._on_taken_back()
        if self._abandoned:
            log.disk_work.drop_queued()
        self.pump()

    def _put_off(self) -> None:
        """What could not be done for want of a descriptor is tried again, but not in a circle."""
        self._is_put_off = True
        if self._idle is not None:
            self._idle.set()
        self.writer.call_later(self._again)

    def _again(self) -> None:
        self._is_put_off = False
        if self._may_write() and not self._abandoned:
            self.pump()
