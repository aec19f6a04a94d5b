"""How `tests.tiers` ends a run that hangs, and what it then says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiers


def test_a_run_that_is_told_to_end_names_its_tests(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Also where tests are given to other processes, whose own signals are none of it."""
    module = tmp_path / "test_hangs.py"
    for parent, processes in (("getpid", []), ("getppid", ["-n", "1"])):
        module.write_text(
            f"import os, signal, time\ndef test_hangs():\n"
            f"    os.kill(os.{parent}(), signal.SIGTERM)\n    time.sleep(60)\n"
        )
        command = ["-p", "tests.unfinished", "-p", "no:cacheprovider", *processes, str(module)]
        end = tiers.run(command, "fast", "python", "off", silent_s=60)
        assert end.code == -15
        assert end.last.startswith(b"not ended after 0 s: ")
        assert end.last.endswith(b"test_hangs.py::test_hangs")
        assert end.last in capfdbinary.readouterr().out


def test_a_silent_run_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """First it is told to; one that does not listen is killed."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\ntrap 'echo told' TERM\nwhile :; do sleep 0.05; done\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    end = tiers.run([], "fast", "python", "off", silent_s=0.2)
    assert (end.code, end.last) == (-9, b"told")
    assert capfd.readouterr().out.count("nothing has ended for 0 s") == 2


def test_a_check_that_is_ended_ends_its_run(tmp_path: Path) -> None:
    """What ends `make check` may know only of the process that runs the tiers."""
    (tmp_path / "test_hangs.py").write_text(
        "import os, signal, time\n"
        "def test_hangs():\n    os.kill(PARENT, signal.SIGTERM)\n    time.sleep(60)\n"
    )
    script = (
        "import os, pathlib\nfrom tests import tiers\n"
        f"module = pathlib.Path({str(tmp_path / 'test_hangs.py')!r})\n"
        "module.write_text(module.read_text().replace('PARENT', str(os.getpid())))\n"
        "tiers.run(['-p', 'tests.unfinished', str(module)], 'fast', 'python', 'off', 60)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 143
    assert run.stdout.strip().endswith("test_hangs.py::test_hangs")


def test_a_program_that_a_test_left_behind_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold the pipe of the run for ever."""
    program, left = tmp_path / "python", tmp_path / "left"
    program.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {left}\necho 1 passed\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(tiers, "LOOK_S", 0.05)
    try:
        assert tiers.run([], "fast", "python", "off", silent_s=60)[1:3] == (0, b"1 passed")
    finally:
        subprocess.run(["kill", left.read_text().strip()], check=True)


def test_a_test_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    """In a loop of asyncio and in a lock alike, and the run goes on.

    Not on uvloop, which keeps what a signal raises to itself: such a run is silent, and ended.
    """
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope=function\n")
    (tmp_path / "test_slow.py").write_text(
        "import asyncio, threading\n"
        "async def wait():\n    await asyncio.Event().wait()\n"
        "def test_loop():\n    asyncio.run(wait())\n"
        "def test_thread():\n    threading.Event().wait()\n"
        "def test_next():\n    pass\n"
    )
    command = ["-p", "no:cacheprovider", "--timeout", "1", str(tmp_path)]
    end = tiers.run(command, "fast", "python", os.environ.get("VARVE_NATIVE", "off"), silent_s=60)
    assert (end.code, end.last.partition(b" in ")[0]) == (1, b"2 failed, 1 passed")
