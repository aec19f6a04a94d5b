"""Starting a process: what it is given, what it writes, what is left when it cannot start."""

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.tiered.worker.turns import settled, until
from tiered.worker.log_lines import LogLines
from tiered.worker.process import PipeLogReader, TierProcesses


def descriptors() -> set[str]:
    return {fd.name for fd in Path("/proc/self/fd").iterdir() if fd.exists()}


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@linux
async def test_process_that_cannot_be_started_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "no room")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = descriptors()
    with pytest.raises(OSError, match="no room"):
        TierProcesses().start()
    assert descriptors() == before


@linux
async def test_started_killed_and_taken_away_leaves_nothing_open() -> None:
    before = descriptors()
    started = TierProcesses("tests.fakes.tiered.scripted_tier_process").start()
    assert started.process.poll() is None
    started.process.kill()
    until_ended(started.process.pid)
    assert started.process.poll() == -9
    started.process.terminate()
    started.process.kill()
    started.socket.close()
    started.log.close()
    started.log.close()
    await settled()
    assert descriptors() == before


def until_ended(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def test_lines_are_logged_as_they_come(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reading, writing = os.pipe()
    reader = PipeLogReader(reading, LogLines())
    os.write(writing, b'["INFO", "a", "one", null]\n["INFO", "a", "tw')
    await until(lambda: len(caplog.records) == 1)
    os.write(writing, b'o", null]\nthree')
    await until(lambda: len(caplog.records) == 2)
    os.close(writing)
    reader.close()
    assert [record.getMessage() for record in caplog.records] == [
        "one process=tier",
        "two process=tier",
        'tier process wrote line="three"',
    ]


async def test_end_of_the_pipe_is_not_looked_at_again_and_again() -> None:
    reading, writing = os.pipe()
    reader = PipeLogReader(reading, LogLines())
    os.close(writing)
    await settled()
    assert not reader._loop.remove_reader(reading)
    reader.close()
