"""A plugin of pytest that names the tests that have not ended when the run is told to end.

A run that hangs is ended from outside (by `tests.tiers`, or by what runs `make check`): without
this nobody knows which test it was. SIGTERM prints a line for each test that has begun and not
ended, and ends the run. Of several processes the one that tells the others what to do prints.
"""

import os
import signal
import time
from types import FrameType

import pytest


class Unfinished:
    """Tests that have begun and not ended, by the time at which they began."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began: dict[str, float] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._began[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._began.pop(nodeid, None)

    def lines(self) -> list[str]:
        """One line a test, the one that began first at the end: there it is seen."""
        now = time.monotonic()
        return [
            f"not ended after {now - began:.0f} s: {nodeid}"
            for nodeid, began in sorted(self._began.items(), key=lambda item: -item[1])
        ]

    def end(self, number: int, _frame: FrameType | None) -> None:
        """Print, and end as the signal does where nobody waits for it."""
        # What a test prints is kept from the terminal, and this would be, too.
        if capture := self._config.pluginmanager.getplugin("capturemanager"):
            capture.suspend_global_capture(in_=True)
        writer = self._config.get_terminal_writer()
        for line in ["", *self.lines()]:
            writer.line(line)
        writer.flush()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def forget(self) -> None:
        """Let SIGTERM do what it does where nothing handles it."""
        if signal.getsignal(signal.SIGTERM) == self.end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Only where tests are reported: a process that is given its tests has a `workerinput`."""
    if hasattr(config, "workerinput"):
        return
    unfinished = Unfinished(config)
    config.pluginmanager.register(unfinished, "unfinished")
    signal.signal(signal.SIGTERM, unfinished.end)
    # What tests fork is none of the run, and is told to end by them.
    os.register_at_fork(after_in_child=unfinished.forget)
