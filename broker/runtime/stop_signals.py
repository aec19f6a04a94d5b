"""Signals that end a process in order.

SIGTERM; SIGINT, Ctrl-C's; and SIGHUP, which comes when the terminal or the remote shell is closed.
Where SIGHUP is ignored, as under `nohup`, it stays so: the process is meant to go on.

A process that has stopped ignores them until its end (`last_ignoring_signals`): who sends another
one meanwhile would read from its exit status that it was killed, not that it has stopped.

Source: Kafka, LoggingSignalHandler.java, and Java's own handlers, of which `nohup` keeps the last.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def on_stop_signal(callback: Callable[[], object]) -> None:
    """Let each of these signals call back, in a turn of the running loop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, callback)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, callback)


async def last_ignoring_signals(work: Coroutine[Any, Any, Result]) -> Result:
    """Await the last work of a loop; none of these signals ends the process any more after it.

    The loop would give them back their meaning when it is closed, and an interpreter takes a tenth
    of a second and more to end after that.
    """
    try:
        return await work
    finally:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
