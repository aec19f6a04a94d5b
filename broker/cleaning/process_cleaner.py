"""Compaction of logs in processes: the work of `storage.cleaner`, whose threads share one CPU.

    a thread of the broker, one a run          its process
    job: paths, offsets ───────────────────>   reads segments, writes `.cleaned` files
    puts them in place, on the loop   <─────   one group is written
    go ────────────────────────────────────>   the next group ...

A process is started when there is a run and no idle one, and ended when it has been idle for a
minute. One that ends in the middle of a run loses nothing: what it wrote is removed, the log is as
before, and the run is tried again later. While a process that was killed is not gone yet (it hangs
in a call of a slow disk), its partition is left alone.

Where no process can be had a thread does the work.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from posixpath import join
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from broker.cleaning.messages import Limits, failure_from_json, job_to_json
from broker.cleaning.process import CleaningProcess
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import (
    CleanerStats,
    CleaningFailedError,
    CleaningJob,
    CleansLogs,
    PutInPlace,
    never,
)
from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.types.log_files import CLEANED_SUFFIX

if TYPE_CHECKING:
    from config.broker import BrokerConfig

LOGGER = logging.getLogger(__name__)

CLEANER_KEYS: Final = (
    "log.cleaner.threads",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.buffer.load.factor",
)
"""Settings that count from the next run on."""

IDLE_MS: Final = 60_000.0
"""How long a process without work is kept: starting one takes a fifth of a second of CPU."""

CHECK_S: Final = 0.1
"""Interval of checking whether a run is still wanted."""

_NO_RATE: Final = 1e15
"""Rates from which on there is no limit: the setting's default is the greatest number there is."""

ABORT_S: Final = 1.0
"""How long a process may take to stop; then it is killed."""


class ProcessCleaner(CleansLogs):
    """See the module. Thread-safe: a run is one thread's.

    Attributes:
        started: Processes, since the start.
        lost: Of those, ended in the middle of a run.
    """

    def __init__(
        self,
        start: Callable[[], CleaningProcess],
        in_thread: Callable[[], Cleaner],
        *,
        filesystem: Filesystem,
        clock: Clock,
        limits: Limits,
    ) -> None:
        """Start nothing yet.

        Args:
            start: Starts a process; OSError where none can be had.
            in_thread: Makes the cleaner that does the work then.
            filesystem: Has the logs; files that processes leave behind are removed there.
            clock: For idle ones.
            limits: Of each run; the rate is that of all together.
        """
        self._start = start
        self._in_thread = in_thread
        self._filesystem = filesystem
        self._clock = clock
        self._limits = limits
        self._lock = threading.Lock()
        self._busy: list[CleaningProcess] = []
        # With the time since when. At most as many as there are threads that clean.
        self._idle: list[tuple[CleaningProcess, float]] = []
        # Killed, not gone yet, with the directory they may still write to.
        self._dying: list[tuple[CleaningProcess, str]] = []
        self._closed = False
        self.started = 0
        self.lost = 0

    @property
    def running(self) -> int:
        """Number of running processes."""
        return len(self._busy) + len(self._idle)

    @override
    def do(
        self, job: CleaningJob, put_in_place: PutInPlace, check_done: Callable[[], None] = never
    ) -> CleanerStats:
        self._remove_remains(job.directory)
        process = self._take()
        if process is None:
            return self._in_thread().do(job, put_in_place, check_done)
        is_sound = False
        try:
            ended = self._run(process, job, put_in_place, check_done)
            is_sound = True
        except CleaningFailedError:
            self.lost += 1
            raise
        except BaseException:
            is_sound = self._stop_run(process)
            raise
        finally:
            self._give_back(process, job.directory, is_sound=is_sound)
        if isinstance(ended, Exception):
            raise ended
        return ended

    def _run(
        self,
        process: CleaningProcess,
        job: CleaningJob,
        put_in_place: PutInPlace,
        check_done: Callable[[], None],
    ) -> CleanerStats | Exception:
        """The result of the process's run: statistics or an error."""
        process.send({"do": job_to_json(job), "limits": self._limits._replace(rate=self._share())})
        while True:
            message = process.receive(CHECK_S)
            if message is None:
                check_done()
            elif "put" in message:
                base_offset, replaced = message["put"]
                put_in_place(base_offset, replaced)
                process.send({"go": True})
            elif "done" in message:
                return CleanerStats(**message["done"])
            else:
                return failure_from_json(*message["failed"])

    def _stop_run(self, process: CleaningProcess) -> bool:
        """Whether the process has stopped its run, and removed what it had written."""
        try:
            process.send({"abort": True})
            message = process.receive(ABORT_S)
            while message is not None and "put" in message:
                message = process.receive(ABORT_S)
        except CleaningFailedError:
            return False
        return message is not None

    # -- processes ---------------------------------------------------------------------------

    def _take(self) -> CleaningProcess | None:
        """An idle process or a new one; None: none can be had."""
        with self._lock:
            if self._idle:
                process = self._idle.pop()[0]
                self._busy.append(process)
                return process
        try:
            process = self._start()
        except OSError as error:
            LOGGER.warning(
                "log cleaner process cannot be started, compacting in a thread error=%s", error
            )
            return None
        with self._lock:
            self.started += 1
            self._busy.append(process)
        self._share_rate()
        return process

    def _give_back(self, process: CleaningProcess, directory: str, *, is_sound: bool) -> None:
        with self._lock:
            is_sound = is_sound and not self._closed
            if not is_sound:
                # Before it leaves the others: from here on its directory is watched.
                self._dying.append((process, directory))
            self._busy.remove(process)
            if is_sound:
                self._idle.append((process, self._clock.monotonic_ms()))
        if not is_sound:
            process.kill()
        self._share_rate()

    def end_idle(self) -> None:
        """End processes that were idle for a minute, and reap those that have ended."""
        limit_ms = self._clock.monotonic_ms() - IDLE_MS
        with self._lock:
            ending = [process for process, since_ms in self._idle if since_ms <= limit_ms]
            self._idle = [entry for entry in self._idle if entry[1] > limit_ms]
        self._end(ending)

    def close(self) -> None:
        """End all processes; runs under way fail, later ones use threads."""
        with self._lock:
            self._closed = True
            ending = [*self._busy, *(process for process, _ in self._idle)]
            self._idle = []
        self._end(ending)

    def _end(self, ending: list[CleaningProcess]) -> None:
        for process in ending:
            process.kill()
        with self._lock:
            self._dying += [(process, "") for process in ending]
            self._dying = [entry for entry in self._dying if not entry[0].is_gone()]

    # -- the rate ----------------------------------------------------------------------------

    def set_limits(self, limits: Limits) -> None:
        """Change the limits of later runs, and the rate of those under way."""
        self._limits = limits
        self._share_rate()

    def _share(self) -> float:
        """Bytes a second of each run."""
        rate = self._limits.rate
        return rate / max(len(self._busy), 1) if 0 < rate < _NO_RATE else 0.0

    def _share_rate(self) -> None:
        with self._lock:
            busy = list(self._busy)
            rate = self._share()
        for process in busy:
            # One that has ended is noticed by its run's thread.
            with contextlib.suppress(CleaningFailedError):
                process.send({"rate": rate})

    # -- left-over files -----------------------------------------------------------------------

    def _remove_remains(self, directory: str) -> None:
        """Remove a killed run's files; a later run must not find them: `storage.log.recovery`."""
        with self._lock:
            self._dying = [entry for entry in self._dying if not entry[0].is_gone()]
            if any(where == directory for _, where in self._dying):
                raise CleaningFailedError(f"a killed cleaning process still writes to {directory}")
        for entry in self._filesystem.list_directory(directory):
            if entry.name.endswith(CLEANED_SUFFIX):
                self._filesystem.unlink(join(directory, entry.name), missing_ok=True)


def limits_of(settings: "BrokerConfig") -> Limits:
    """Limits of each of `log.cleaner.threads` runs."""
    threads = max(settings.log_cleaner_threads, 1)
    return Limits(
        settings.log_cleaner_dedupe_buffer_size // threads,
        settings.log_cleaner_io_buffer_load_factor,
        settings.log_cleaner_io_buffer_size,
        settings.log_cleaner_io_max_bytes_per_second,
    )
