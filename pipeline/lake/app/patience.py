"""Retry policy of a lake job: number of retries and backoff.

a failure    that another try may mend: a pause of half a second, which doubles up to a minute
in a row     `retries` of them; a job that runs for ever also retries for `give_up_after_ms`
a success    the next failure is a first one again

What an operator has to mend first is retried, too, where it is outside of the job: credentials,
policies, a full disk. What a person has to decide (`JobStopError`) is not.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from pipeline.lake.errors import CommitConflictError, TableUnavailableError, TaskFailedError
from pipeline.read.broker.errors import BrokerError, TopicGoneError
from pipeline.read.read_errors import LostOffsetsError
from storage.environment.clock import Clock
from tiered.errors import StoreDeniedError, StoreUnavailableError

LOGGER = logging.getLogger(__name__)

PAUSE_MS: Final = 500
PAUSE_MAX_MS: Final = 60_000

_PASSING: Final = (
    TableUnavailableError,
    TaskFailedError,
    CommitConflictError,
    StoreUnavailableError,
    StoreDeniedError,
    BrokerError,
    # Of a plan that is older than the log is now: the next view says what is lost, if anything is.
    LostOffsetsError,
)

Result = TypeVar("Result")


class Patience:
    """Counts failures in a row, and waits; see the module."""

    def __init__(
        self, clock: Clock, stopped: threading.Event, *, retries: int, give_up_after_ms: float = 0
    ) -> None:
        """Nothing has failed yet.

        Args:
            clock: For how long it has been failing.
            stopped: Ends a pause.
            retries: In a row.
            give_up_after_ms: Since the first of them; both must be used up.
        """
        self._clock = clock
        self._stopped = stopped
        self._retries = retries
        self._give_up_after_ms = give_up_after_ms
        self._failures = 0
        self._since_ms = 0.0

    def succeeded(self) -> None:
        """Whatever failed before is over."""
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Wait, or raise the error: it is not worth another try, or there were enough."""
        if not may_pass(error):
            raise error
        now_ms = self._clock.monotonic_ms()
        if self._failures == 0:
            self._since_ms = now_ms
        self._failures += 1
        if self._failures > self._retries and now_ms - self._since_ms >= self._give_up_after_ms:
            raise error
        pause_ms = min(PAUSE_MS * 2 ** min(self._failures - 1, 10), PAUSE_MAX_MS)
        LOGGER.warning("%s; retrying in %.1f s", error, pause_ms / 1000)
        self._stopped.wait(pause_ms / 1000)

    def call(self, attempt: Callable[[], Result]) -> Result | None:
        """The result of `attempt`, retried by the policy; None: stopped before."""
        while not self._stopped.is_set():
            try:
                found = attempt()
            except Exception as error:  # noqa: BLE001 -- `failed` raises what it does not know
                self.failed(error)
            else:
                self.succeeded()
                return found
        return None


def may_pass(error: Exception) -> bool:
    """Whether the same may go well later."""
    return isinstance(error, _PASSING) and not isinstance(error, TopicGoneError)
