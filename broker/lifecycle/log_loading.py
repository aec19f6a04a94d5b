"""Loading the logs at a start: partitions serve one by one, and then the broker is ready.

    LOADING ──the first log serves──> maintenance of logs begins
       │
       ├──every log is open──> directories settled, coordinators checked ──> READY
       ├──a log cannot be opened, and its directory does not fail──> the broker fails
       └──stop──> no further log is opened

Recovering after an unclean stop may take minutes; a log line every five seconds shows the progress.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from storage.environment.environment import Environment
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.replicas.background import Background
    from broker.replicas.logs.log_lifecycle import LogLifecycle
    from broker.replicas.replica_manager import ReplicaManager
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)

PROGRESS_MS = 5_000.0
"""Between two log lines about recovery."""


class LogLoading:
    """See the module. Runs on the loop's thread.

    Attributes:
        is_ready: Every log is open.
        background: Periodic maintenance, from the first partition that serves.
    """

    def __init__(
        self,
        environment: Environment,
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        *,
        make_background: Callable[[], "Background"],
        settle_directories: Callable[[], Awaitable[None]],
        on_loaded: "Callable[[Background], None]",
        fail: Callable[[str], None],
    ) -> None:
        """Load nothing yet.

        Args:
            environment: Clock and timer of the progress.
            log_manager: Opens logs.
            replicas: For the count of partitions.
            make_background: Periodic maintenance, not started.
            settle_directories: Called when every log is open.
            on_loaded: Called then, before the broker counts as ready.
            fail: Ends the broker, with a reason for the operator.
        """
        self._clock = environment.clock
        self._timer = environment.timer
        self._log_manager = log_manager
        self._replicas = replicas
        self._make_background = make_background
        self._settle_directories = settle_directories
        self._on_loaded = on_loaded
        self._fail = fail
        self._is_stopped = False
        self.is_ready = False
        self.background: Background | None = None

    def stop(self) -> None:
        """Begin nothing any more, and do not become ready."""
        self._is_stopped = True

    async def load(self, lifecycle: "LogLifecycle", threads: int) -> None:
        """Open every log, with so many threads."""
        started_ms = self._clock.monotonic_ms()
        self._timer.call_later_ms(PROGRESS_MS, self._log_progress)
        try:
            await lifecycle.load(threads)
            if not self._log_manager.progress.is_stopped:
                await self._settle_directories()
        except StorageError as error:
            self._fail(str(error))
            return
        except Exception:
            LOGGER.exception("logs cannot be loaded")
            self._fail("logs cannot be loaded")
            return
        if self._is_stopped:
            return
        self._on_loaded(self.background or self._start_background())
        self.is_ready = True
        LOGGER.info(
            "broker ready partitions=%d recovered_bytes=%d elapsed_ms=%d",
            self._replicas.partition_count,
            self._log_manager.progress.bytes_total,
            self._clock.monotonic_ms() - started_ms,
        )

    def on_serving(self) -> None:
        """A partition serves: maintenance begins with the first, others may recover for long."""
        if self.background is None and not self._is_stopped:
            self._start_background()

    def _start_background(self) -> "Background":
        self.background = self._make_background()
        self.background.start()
        return self.background

    def _log_progress(self) -> None:
        if self.is_ready or self._is_stopped:
            return
        progress = self._log_manager.progress
        LOGGER.info(
            "recovering logs partitions=%d of=%d bytes=%d of_bytes=%d",
            progress.partitions_done,
            progress.partitions_total,
            progress.bytes_done,
            progress.bytes_total,
        )
        self._timer.call_later_ms(PROGRESS_MS, self._log_progress)
