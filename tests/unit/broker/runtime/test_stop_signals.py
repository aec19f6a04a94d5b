"""What ends a process in order."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from broker.runtime.stop_signals import on_stop_signal


@contextlib.contextmanager
def handled(called: list[str]) -> Iterator[None]:
    """Handlers that append to the list."""
    before = signal.getsignal(signal.SIGHUP)
    on_stop_signal(lambda: called.append("stop"))
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(signal.SIGHUP, before)


async def sent(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    await asyncio.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_each_of_them_calls_back(number: signal.Signals) -> None:
    called: list[str] = []
    # These tests, too, may run under nohup.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with handled(called):
            await sent(number)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert called == ["stop"]


async def test_an_ignored_end_of_the_terminal_stays_ignored() -> None:
    """As under nohup."""
    called: list[str] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handled(called):
            await sent(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert called == []
