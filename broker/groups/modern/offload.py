"""Work that takes too long for the event loop."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Offload(Protocol):
    """Runs pure functions elsewhere."""

    def run(
        self,
        work: Callable[[], Result],
        done: Callable[[Result], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Run `work`, then call one of the others with its outcome, on the loop's thread."""
        ...


class ThreadOffload:
    """Runs them in the running loop's default executor."""

    def run(
        self,
        work: Callable[[], Result],
        done: Callable[[Result], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """See `Offload`; no callback is called if the loop is closed before the work is done."""

        def finish(future: "asyncio.Future[Result]") -> None:
            if future.cancelled():
                failed(asyncio.CancelledError())
                return
            error = future.exception()
            if error is None:
                done(future.result())
            else:
                failed(error)

        asyncio.get_running_loop().run_in_executor(None, work).add_done_callback(finish)
