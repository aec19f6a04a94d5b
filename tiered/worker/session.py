"""Session with one tier process, from its start to its exit.

    starting ──hello answered──> serving ──┐
        │                          │       │ close: the process sees the end of the socket
        └───────── end ────────────┴───────┴──> ended ──exit status──> reaped

It ends when the socket does, when the process does not answer pings, or when it is stopped. Every
call under way is then answered at once, with why; the process is killed and waited for, whatever
state it is in: a session that is reaped has left nothing behind.

Liveness is counted in timer ticks without a message from the process, not in time: a machine that
was suspended, or a broker whose loop was blocked, comes back to one tick and not to a dead process.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from storage.environment.clock import Clock
from storage.environment.timer import Timer, TimerHandle
from tiered.worker.connection import MessageConnection
from tiered.worker.frames import VERSION, FrameError, Kind, Message
from tiered.worker.process import Process, Started

LOGGER = logging.getLogger(__name__)

PING_MS: Final = 1_000.0
"""Between two pings; counters are as old at most."""

PINGS_MISSED_MAX: Final = 5
"""So many ticks without a message, and the process counts as hung. One that encrypts and
compresses holds its own loop for a tenth of a second; on a machine that is short of CPU, longer."""

REAP_MS: Final = 10.0
"""Between two checks whether a killed process has ended."""

TERM_AFTER_MS: Final = 2_000.0
KILL_AFTER_MS: Final = 1_000.0
"""How long a stopped process may take until it gets SIGTERM, and then SIGKILL."""


class Session:
    """See the module.

    Args:
        started: The process and the broker's end of its socket.
        hello: Fields of the first message.
        on_serving: Called once, when it has answered.
        on_ended: Called once, with why.
        on_reaped: Called once, when the process is gone.
    """

    def __init__(
        self,
        started: Started,
        hello: Mapping[str, Any],
        *,
        timer: Timer,
        clock: Clock,
        on_serving: Callable[["Session"], None],
        on_ended: Callable[["Session", str], None],
        on_reaped: Callable[["Session"], None],
    ) -> None:
        self._process: Process = started.process
        self._started = started
        self._hello = hello
        self._timer = timer
        self._clock = clock
        self._on_serving = on_serving
        self._on_ended = on_ended
        self._on_reaped = on_reaped
        self._connection: MessageConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._calls: dict[int, asyncio.Future[Message | None]] = {}
        self._number = 0
        self._pinging: TimerHandle | None = None
        self._pinged_ms = 0.0
        self._pings_missed = 0
        self._problem: Mapping[str, Any] | None = None
        self._no_calls: asyncio.Future[None] | None = None
        self.pid = started.process.pid
        self.serving_since_ms: float | None = None
        self.ended: str | None = None
        self.exit_status: int | None = None
        self.reaped = False
        self.counters: Mapping[str, Any] = {}
        self.round_trip_ms = 0.0

    @property
    def calls_under_way(self) -> int:
        """Calls that the process has not answered."""
        return len(self._calls)

    def open(self) -> None:
        """Connect and say hello; the callbacks report the outcome."""
        self._connecting = asyncio.get_running_loop().create_task(self._connect())
        # A process that is held up while it starts is noticed as one that is held up later.
        self._arm()

    async def _connect(self) -> None:
        connection = MessageConnection(self._on_message, self._lost)
        try:
            await connection.open(self._started.socket)
        except OSError as error:
            self._started.socket.close()
            self.end(f"its socket fails: {error}")
            return
        self._connection = connection
        if self.ended is not None:
            connection.end(self.ended)
            return
        connection.send_now(Kind.HELLO, 0, self._hello)

    # -- calls -----------------------------------------------------------------------------------

    def call(
        self, method: str, arguments: Any, data: bytes
    ) -> tuple[int, asyncio.Future[Message | None]]:
        """Register a call; `send` it then. The future gets the answer, None if the session ends."""
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        number = self._next_number()
        if self.ended is not None:
            answer.set_result(None)
        else:
            self._calls[number] = answer
        return number, answer

    async def send(self, number: int, method: str, arguments: Any, data: bytes) -> None:
        """Send a registered call; MessageTooLargeError: nothing was, and it is forgotten."""
        assert self._connection is not None
        fields = {"method": method, "arguments": arguments}
        await self._connection.send(Kind.CALL, number, fields, data)

    def cancel(self, number: int) -> None:
        """Stop a call; it is still answered."""
        if self._connection is not None and number in self._calls:
            self._connection.send_now(Kind.CANCEL, number)

    def forget(self, number: int) -> None:
        """A call that was not sent has no answer."""
        answer = self._calls.pop(number, None)
        if answer is not None:
            answer.set_result(None)
            self._check_no_calls()

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _on_message(self, message: Message) -> None:
        self._pings_missed = 0
        match message.kind:
            case Kind.RESULT | Kind.ERROR if message.id in self._calls:
                answer = self._calls.pop(message.id)
                answer.set_result(message)
                self._check_no_calls()
            case Kind.STATISTICS:
                self.counters = message.fields.get("counters", {})
                if message.id:
                    self.round_trip_ms = self._clock.monotonic_ms() - self._pinged_ms
            case Kind.HELLO if self.serving_since_ms is None:
                if message.fields.get("version") != VERSION:
                    raise FrameError(f"hello in version {message.fields.get('version')}")
                self.serving_since_ms = self._clock.monotonic_ms()
                self._on_serving(self)
            case Kind.ERROR if message.id == 0:
                self._problem = message.fields.get("error")
            case _:
                raise FrameError(f"an unexpected {message.kind} for {message.id}")

    # -- life ------------------------------------------------------------------------------------

    def _arm(self) -> None:
        self._pinging = self._timer.call_later_ms(PING_MS, self._ping)

    def _ping(self) -> None:
        if self.ended is not None:
            return
        self._pings_missed += 1
        limit = PINGS_MISSED_MAX if self.serving_since_ms is not None else 4 * PINGS_MISSED_MAX
        if self._pings_missed > limit:
            self.end(f"it has not answered for {limit * PING_MS / 1000:g} s")
            return
        if self.serving_since_ms is not None and self._connection is not None:
            self._pinged_ms = self._clock.monotonic_ms()
            self._connection.send_now(Kind.PING, self._next_number())
        self._arm()

    def _lost(self, reason: str) -> None:
        if self._problem is not None:
            reason = f"it cannot start: {self._problem.get('text')}"
        self.end(reason)

    def end(self, reason: str) -> None:
        """Kill the process, answer every call. A second call does nothing."""
        if self.ended is not None:
            return
        self._close_socket(reason)
        # Its own exit status, if it has one already, is what is reported.
        if self._process.poll() is None:
            self._process.kill()
        self._reap()

    def close(self) -> None:
        """Let the process end by itself; by signals if it does not."""
        if self.ended is not None:
            return
        self._close_socket("it was stopped")
        self._timer.call_later_ms(TERM_AFTER_MS, self._terminate)
        self._reap()

    def _close_socket(self, reason: str) -> None:
        self.ended = reason
        if self._pinging is not None:
            self._pinging.cancel()
        if self._connection is not None:
            self._connection.end(reason)
        elif self._connecting is None:
            self._started.socket.close()
        calls, self._calls = self._calls, {}
        for answer in calls.values():
            if not answer.done():
                answer.set_result(None)
        self._check_no_calls()
        self._on_ended(self, reason)

    def _terminate(self) -> None:
        if not self.reaped:
            LOGGER.warning("tier process does not stop, terminating it pid=%d", self.pid)
            self._process.terminate()
            self._timer.call_later_ms(KILL_AFTER_MS, self._kill)

    def _kill(self) -> None:
        if not self.reaped:
            LOGGER.warning("tier process does not stop, killing it pid=%d", self.pid)
            self._process.kill()

    def _reap(self) -> None:
        self.exit_status = self._process.poll()
        if self.exit_status is None:
            self._timer.call_later_ms(REAP_MS, self._reap)
            return
        self.reaped = True
        self._started.log.close()
        self._on_reaped(self)

    def _check_no_calls(self) -> None:
        if not self._calls and self._no_calls is not None and not self._no_calls.done():
            self._no_calls.set_result(None)

    async def drained(self) -> None:
        """Wait until no call is under way."""
        if self._calls:
            self._no_calls = asyncio.get_running_loop().create_future()
            await self._no_calls
