"""How `tests.tiers` ends a run that hangs, and what it then says."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from native.loader import CodePath
from tests import tiers


def test_a_run_that_is_told_to_end_names_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Also where tests are given to other processes, whose own signals are none of it."""
    # Of the run that this test may be part of.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    module = tmp_path / "test_hangs.py"
    module.write_text("import time\ndef test_hangs():\n    time.sleep(60)\n")
    # Once its beginning is known to the process that reports, which is told so by the other.
    (tmp_path / "conftest.py").write_text(
        "import os, signal\nimport pytest\n"
        "@pytest.hookimpl(trylast=True)\ndef pytest_runtest_logstart():\n"
        "    if 'PYTEST_XDIST_WORKER' not in os.environ:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    for processes in ([], ["-n", "1"]):
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


def test_what_tests_import_keeps_its_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer's shell may forbid it: each process of a run would then compile all again."""
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "${PYTHONDONTWRITEBYTECODE-kept}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert tiers.run([], "fast", "python", "off", silent_s=60).last == b"kept"


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


def try_twice(folder: Path, body: str, *arguments: str) -> tiers.End:
    """Run a module of tests that may count their runs in `RUNS`."""
    runs = folder / "runs"
    (folder / "test_runs.py").write_text(
        f"import pathlib\nimport pytest\nRUNS = pathlib.Path({str(runs)!r})\n"
        "def runs():\n"
        "    with RUNS.open('a') as file:\n        file.write('x')\n"
        "    return len(RUNS.read_text())\n" + body
    )
    command = ["-p", "no:cacheprovider", "--timeout", "60", *arguments, str(folder)]
    return tiers.run_twice(command, "fast", "python", "off", silent_s=60)


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one", "two"])
def test_what_passes_at_the_second_try_is_named(
    tmp_path: Path, processes: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the failed test runs again, and the first failure stays in what was printed."""
    body = (
        "def test_once():\n    assert runs() != 1, 'said once'\n"
        "def test_other():\n    pass\n"
        "@pytest.mark.skip\ndef test_skipped():\n    pass\n"
    )
    end = try_twice(tmp_path, body, *processes)
    assert (end.code, end.last) == (0, b"2 passed, 1 skipped")
    (test,) = end.second_try
    assert test.endswith("test_runs.py::test_once")
    said = capfd.readouterr().out
    assert "said once" in said
    assert f"a second try, alone: {test}" in said


def test_what_fails_twice_has_failed(tmp_path: Path) -> None:
    """Also an error of a fixture; the counts are those of the first try."""
    body = (
        "@pytest.fixture\ndef broken():\n    assert runs() == 0\n"
        "def test_setup(broken):\n    pass\n"
        "def test_other():\n    pass\n"
    )
    end = try_twice(tmp_path, body)
    assert (end.code, end.second_try) == (1, ())
    assert (tmp_path / "runs").read_text() == "xx"
    assert tiers.count([end]) == {"passed": 1, "error": 1}


def test_many_failures_are_not_tried_again(tmp_path: Path) -> None:
    tests = "".join(
        f"def test_{number}():\n    assert runs() == 0\n"
        for number in range(tiers.SECOND_TRIES_MAX + 1)
    )
    assert try_twice(tmp_path, tests).code == 1
    assert (tmp_path / "runs").read_text() == "x" * (tiers.SECOND_TRIES_MAX + 1)


def test_the_deep_tier_has_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """It searches with inputs of its own: what fails there is a fault."""
    tried: list[str] = []

    def note(name: str) -> Callable[..., tiers.End]:
        def run(*_: object) -> tiers.End:
            tried.append(name)
            return tiers.End("", 0, b"", 0.0)

        return run

    for name in ("run", "run_twice"):
        monkeypatch.setattr(tiers, name, note(name))
    for tier in tiers.TIERS.values():
        tiers.run_tier(tier, [], "fast", CodePath(0, "not asked for"))
    assert [name for name, _ in itertools.groupby(tried)] == ["run_twice", "run"]
