"""Server of the tier process: serves a `Tier` to the broker over the socket.

    (connected) ──hello──> SERVING ──finish──> DRAINING ──┐
         │                    │                           │
         └──── connection ends, or sends an invalid message ┴──> ENDED

Every call is a task and is answered exactly once, cancelled ones too: the broker counts a call as
under way until then. What a call raises is its answer; an unexpected error is logged as well, and
the process goes on. Once the connection ends everything under way is cancelled.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import Any, Final

from storage.environment.timer import Timer
from tiered.errors import TierProcessError
from tiered.tier import Tier
from tiered.worker.calls import CALLS
from tiered.worker.connection import MessageConnection
from tiered.worker.error_codec import error_as_json, is_expected
from tiered.worker.frames import VERSION, FrameError, Kind, Message, MessageTooLargeError

LOGGER = logging.getLogger(__name__)

CALLS_MAX: Final = 256
"""Tasks at a time. The broker keeps below it; one that does not is answered with an error."""

CANCEL_MS: Final = 1_000.0
"""A cancelled call that has not ended after this is cancelled again, and complained about."""

OpenTier = Callable[[Mapping[str, Any]], Awaitable[Tier]]
"""Makes the tier of the broker's hello."""


class ServiceState(Enum):
    """See the module."""

    CONNECTED = auto()
    SERVING = auto()
    DRAINING = auto()
    ENDED = auto()


class TierService:
    """See the module.

    Args:
        open_tier: Called once, with the fields of the broker's hello. What it raises is sent to the
            broker, and is the end.
        timer: Of this loop.
        pid: Of this process, for the broker to see.
    """

    def __init__(self, open_tier: OpenTier, *, timer: Timer, pid: int) -> None:
        self._open_tier = open_tier
        self._timer = timer
        self._pid = pid
        self._state = ServiceState.CONNECTED
        self._connection: MessageConnection | None = None
        self._tier: Tier | None = None
        self._opening: asyncio.Task[None] | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._outcomes: Counter[str] = Counter()
        self._ended = asyncio.get_running_loop().create_future()
        self._idle = asyncio.Event()
        self._idle.set()

    def serve(self, connection: MessageConnection) -> None:
        """Answer on this connection; `on_message` and `on_lost` are its callbacks."""
        self._connection = connection

    @property
    def calls_under_way(self) -> int:
        """Tasks that have not answered."""
        return len(self._tasks)

    async def ended(self) -> str:
        """Wait for the end of the connection; says why it ended."""
        reason: str = await asyncio.shield(self._ended)
        return reason

    def on_lost(self, reason: str) -> None:
        """Cancel what is under way, as the connection has ended."""
        self._state = ServiceState.ENDED
        for task in (self._opening, *self._tasks.values()):
            if task is not None:
                task.cancel()
        if not self._ended.done():
            self._ended.set_result(reason)

    def on_message(self, message: Message) -> None:
        """Raises FrameError for what a broker never says."""
        match message.kind:
            case Kind.CALL if self._state in (ServiceState.SERVING, ServiceState.DRAINING):
                self._begin(message)
            case Kind.CANCEL:
                self._cancel(message.id)
            case Kind.PING:
                self._report(message.id)
            case Kind.HELLO if self._state is ServiceState.CONNECTED and self._opening is None:
                self._opening = asyncio.get_running_loop().create_task(self._open(message))
            case _:
                raise FrameError(f"an unexpected {message.kind}")

    # -- opening ---------------------------------------------------------------------------------

    async def _open(self, hello: Message) -> None:
        assert self._connection is not None
        try:
            if hello.fields["version"] != VERSION:
                raise TierProcessError(
                    f"the broker speaks version {hello.fields['version']} of the tier process's "
                    f"language, the process {VERSION}"
                )
            self._tier = await self._open_tier(hello.fields)
        except Exception as error:
            LOGGER.exception("tier process cannot start")
            self._connection.send_now(Kind.ERROR, 0, {"error": error_as_json(error)})
            self._connection.close("it cannot start")
            return
        self._state = ServiceState.SERVING
        self._connection.send_now(Kind.HELLO, 0, {"version": VERSION, "pid": self._pid})
        self._report(0)

    # -- calls -----------------------------------------------------------------------------------

    def _begin(self, message: Message) -> None:
        number = message.id
        if number in self._tasks:
            raise FrameError(f"call {number} twice")
        refusal = self._refusal()
        work = self._work(message) if refusal is None else self._answer_error(number, refusal)
        self._tasks[number] = task = asyncio.get_running_loop().create_task(work)
        self._idle.clear()
        task.add_done_callback(lambda ended: self._forget(number, ended))

    def _refusal(self) -> Exception | None:
        if self._state is not ServiceState.SERVING:
            return TierProcessError("the tier process is about to end")
        if len(self._tasks) >= CALLS_MAX:
            return TierProcessError(f"{CALLS_MAX} calls are under way already")
        return None

    def _forget(self, number: int, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            # Here and not in the task, which may have been cancelled before its first step.
            self._outcomes["cancelled"] += 1
            self._send_error(number, TierProcessError("the call was cancelled"))
        del self._tasks[number]
        if not self._tasks:
            self._idle.set()

    async def _work(self, message: Message) -> None:
        assert self._connection is not None
        number = message.id
        try:
            codec = CALLS[message.fields["method"]]
            arguments = codec.decode(message.fields["arguments"], message.data)
            result = await getattr(self._tier, message.fields["method"])(*arguments)
            value, data = codec.encode_result(result)
            await self._connection.send(Kind.RESULT, number, {"result": value}, data)
            self._outcomes["done"] += 1
            return
        except MessageTooLargeError as error:
            self._send_error(number, TierProcessError(f"the result is too large: {error}"))
        except Exception as error:
            if not is_expected(error):
                LOGGER.exception(
                    "tier process call failed unexpectedly method=%s", message.fields.get("method")
                )
            self._send_error(number, error)
        self._outcomes["failed"] += 1

    async def _answer_error(self, number: int, error: Exception) -> None:
        self._outcomes["refused"] += 1
        self._send_error(number, error)

    def _send_error(self, number: int, error: BaseException) -> None:
        assert self._connection is not None
        self._connection.send_now(Kind.ERROR, number, {"error": error_as_json(error)})

    def _cancel(self, number: int, *, is_told: bool = False) -> None:
        """Cancel a call, and again as long as it goes on; `is_told`: the log says so already."""
        task = self._tasks.get(number)
        if task is None:
            return  # It has been answered; the answer is on its way.
        task.cancel()

        def check() -> None:
            if self._tasks.get(number) is task:
                if not is_told:
                    LOGGER.warning("tier process call ignores its cancellation call=%d", number)
                self._cancel(number, is_told=True)

        self._timer.call_later_ms(CANCEL_MS, check)

    # -- statistics and the end ------------------------------------------------------------------

    def statistics(self) -> dict[str, Any]:
        """The tier's counters, and `process`: this end's."""
        counters = dict(self._tier.statistics()) if self._tier is not None else {}
        counters["process"] = {
            "state": self._state.name,
            "calls_under_way": len(self._tasks),
            **{f"calls_{name}": count for name, count in self._outcomes.items()},
        }
        return counters

    def _report(self, number: int) -> None:
        assert self._connection is not None
        try:
            self._connection.send_now(Kind.STATISTICS, number, {"counters": self.statistics()})
        except Exception:
            # Counters that cannot be sent must not count as a hung process.
            LOGGER.exception("tier process counters cannot be sent")
            self._connection.send_now(Kind.STATISTICS, number, {"counters": {}})

    async def finish(self, limit_ms: float) -> None:
        """Take no more calls, let those under way end within `limit_ms`, then close."""
        assert self._connection is not None
        if self._state is ServiceState.SERVING:
            self._state = ServiceState.DRAINING
            self._report(0)
        out_of_time = self._timer.call_later_ms(limit_ms, self._idle.set)
        await self._idle.wait()
        out_of_time.cancel()
        self._connection.close("the process was stopped")

    async def close(self) -> None:
        """After the end: wait for what was cancelled, give back what the tier holds."""
        tasks = [task for task in (self._opening, *self._tasks.values()) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._tier is not None:
            await self._tier.close()
