"""What ends a process in order."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
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


STOPPED_TWICE = """
import asyncio, os, signal, sys
import uvloop
from broker.runtime.stop_signals import last_ignoring_signals, on_stop_signal

async def main():
    stop = asyncio.Event()
    on_stop_signal(stop.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.wait()

with asyncio.Runner(loop_factory=getattr(sys.modules[sys.argv[1]], "new_event_loop")) as runner:
    runner.run(last_ignoring_signals(main()))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    os.kill(os.getpid(), number)
"""


@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_who_has_stopped_is_ended_by_none_of_them(loops: str) -> None:
    """Its exit status says that it stopped, also to who asks twice."""
    done = subprocess.run([sys.executable, "-c", STOPPED_TWICE, loops], check=False)
    assert done.returncode == 0
