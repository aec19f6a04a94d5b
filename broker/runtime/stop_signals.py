"""Signals that end a process in order.

SIGTERM; SIGINT, Ctrl-C's; and SIGHUP, which comes when the terminal or the remote shell is closed.
Where SIGHUP is ignored, as under `nohup`, it stays so: the process is meant to go on.

Source: Kafka, LoggingSignalHandler.java, and Java's own handlers, of which `nohup` keeps the last.
"""

import asyncio
import signal
from collections.abc import Callable


def on_stop_signal(callback: Callable[[], object]) -> None:
    """Let each of these signals call back, in a turn of the running loop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, callback)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, callback)
