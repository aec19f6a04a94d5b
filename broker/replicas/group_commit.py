"""Group commit: all appends that wait for the disk share one fdatasync.

    IDLE ──request──> FLUSHING ──done, nothing appended since──> IDLE
                       │ ^  │ ^
                       │ └──┘ │ done, but a request came meanwhile: flush again at once
                       └──────┘ no room or no descriptor for an index: after a pause

While one fdatasync runs in a thread, further appends go to the page cache; the next flush covers
them all. With one producer this costs one disk round trip a request, with a hundred it costs the
same.

All flushes of a log that serves go through here, one at a time: a flush leaves to the one before it
what that has begun to sync, names in the directory for instance, and would move the recovery point
before it was on disk.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.runtime.disk import Disk
    from broker.runtime.timer import Timer
    from storage.log.log import FlushTicket, Log

LOGGER = logging.getLogger(__name__)


RETRY_MS = 1_000.0
"""Pause after a flush that found no room for an index, or no descriptor."""


class GroupCommit:
    """The flushes of one log. A failed fsync is never retried: the log is failed instead.

    After a failed fsync the kernel may have dropped the dirty pages, so a second call that succeeds
    proves nothing (PostgreSQL learnt this in 2018).
    """

    __slots__ = (
        "_disk",
        "_ended",
        "_log",
        "_must_end",
        "_on_failed",
        "_on_flushed",
        "_retrying",
        "_timer",
        "_wanted",
        "failed",
        "flushes",
        "flushing",
    )

    def __init__(
        self,
        log: "Log",
        disk: "Disk",
        on_flushed: Callable[[int], None],
        on_failed: Callable[[DiskError], None],
        timer: "Timer",
    ) -> None:
        self._log = log
        self._timer = timer
        self._disk = disk
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._wanted = False
        self._retrying = False
        self.flushing = False
        self.failed = False
        self.flushes = 0
        self._must_end = False
        # Of the flush under way, if somebody waits for it: why it has failed, if it has.
        self._ended: asyncio.Future[BaseException | None] | None = None

    async def idle(self) -> None:
        """Wait until no flush is under way: the log's files are about to be cut or deleted."""
        while self.flushing:
            self._must_end = True
            await self._end()

    async def flush(self) -> bool:
        """Flush everything appended so far, and wait for the end of one flush.

        Returns:
            Whether all of it is on disk. False: that flush had begun before; ask again, if the log
            is not about to be changed.

        Raises:
            DiskError: The flush has failed. Unless it `is_disk_failure` it may be tried again.
        """
        log = self._log
        log.check_failure()
        end_offset = log.log_end_offset
        if end_offset > log.recovery_point:
            self.request()
            failure = await self._end()
            if failure is not None:
                raise failure
        return log.recovery_point >= end_offset

    async def _end(self) -> BaseException | None:
        """Wait for the end of the flush under way: why it has failed, if it has."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._ended)

    def request(self) -> None:
        """Flush everything appended so far soon; `on_flushed(end_offset)` is called then."""
        if self.failed:
            return
        if self.flushing:
            self._wanted = True
            return
        self._begin(None)

    def request_rolled(self) -> None:
        """Flush the rolled segments: no append waits for it, a restart recovers less."""
        if not self.failed and not self.flushing:
            self._begin(self._log.active_base_offset)

    def _begin(self, up_to: int | None) -> None:
        ticket = self._log.flusher.begin_flush(up_to)
        if ticket is None:
            return
        self.flushing = True
        self._disk.submit(ticket.run, lambda _result, failure: self._finished(ticket, failure))

    def _finished(self, ticket: "FlushTicket", failure: BaseException | None) -> None:
        self.flushing = False
        if self._must_end:
            self._must_end = self._wanted = False
        ended, self._ended = self._ended, None
        try:
            self._take(ticket, failure)
        finally:
            if ended is not None:
                ended.set_result(failure)

    def _take(self, ticket: "FlushTicket", failure: BaseException | None) -> None:
        """What came of a flush."""
        if failure is not None:
            self._log.flusher.abandon_flush(ticket)
            if not isinstance(failure, DiskError):
                raise failure
            if failure.is_disk_failure:
                self._fail(failure)
            else:
                self._try_again(ticket.end_offset, failure)
            return
        self.flushes += 1
        self._log.flusher.finish_flush(ticket)
        again, self._wanted = self._wanted, False
        if again:
            self.request()
        self._on_flushed(ticket.end_offset)

    def _try_again(self, end_offset: int, error: DiskError) -> None:
        """Retry later: nothing is lost, producers wait until it succeeds or they time out."""
        up_to = None if self._wanted else end_offset
        self._wanted = False
        self._on_failed(error)
        if self._retrying:
            return
        self._retrying = True

        def again() -> None:
            self._retrying = False
            # The log may be gone by then, or another flush be under way.
            if not self.failed and not self.flushing and self._log.failure is None:
                self._begin(up_to)

        self._timer.call_later_ms(RETRY_MS, again)

    def _fail(self, error: DiskError) -> None:
        self.failed = True
        LOGGER.error("flush failed log=%s error=%s", self._log.directory, error)
        self._log.fail(error)
        self._on_failed(error)
