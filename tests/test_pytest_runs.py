"""How a run of pytest that hangs is ended, and what processes side by side print."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pytest_runs
from tests.pytest_runs import FAILED, NO_TESTS, Batch, worst


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
        end = pytest_runs.run([command], "fast", "python", "off", silent_s=300)
        assert end.code == -15
        assert re.match(rb"not ended after \d+ s: ", end.last)
        assert end.last.endswith(b"test_hangs.py::test_hangs")
        assert end.last in capfdbinary.readouterr().out


def test_tests_may_handle_sigterm_beside_the_run(tmp_path: Path) -> None:
    """What they fork ends by it, as without the run; what a loop gives back is the run's again."""
    (tmp_path / "test_signals.py").write_text(
        "import asyncio, os, signal\n"
        "from tests.conftest import handler_of_sigterm_stays\n"
        "async def handle():\n"
        "    loop = asyncio.get_running_loop()\n"
        "    loop.add_signal_handler(signal.SIGTERM, print)\n"
        "    loop.remove_signal_handler(signal.SIGTERM)\n"
        "def test_loop():\n    asyncio.run(handle())\n"
        "def test_fork():\n"
        "    assert callable(signal.getsignal(signal.SIGTERM))\n"
        "    if (child := os.fork()) == 0:\n"
        "        os._exit(signal.getsignal(signal.SIGTERM) != signal.SIG_DFL)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "def test_leaves():\n    signal.signal(signal.SIGTERM, lambda *_: None)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope=function\n")
    command = ["-p", "tests.unfinished", "-p", "no:cacheprovider", str(tmp_path)]
    end = pytest_runs.run([command], "fast", "python", "off", silent_s=300)
    assert (end.code, end.last.partition(b" in ")[0]) == (1, b"3 passed, 1 error")


def test_a_silent_run_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """First it is told to; one that does not listen is killed."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\ntrap 'echo told' TERM\nwhile :; do sleep 0.05; done\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    # Long enough for the shell to have set its trap.
    end = pytest_runs.run([[]], "fast", "python", "off", silent_s=1)
    assert (end.code, end.last) == (-9, b"told")
    assert capfd.readouterr().out.count("nothing has ended for 1 s") == 2


def test_what_tests_import_keeps_its_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer's shell may forbid it: each process of a run would then compile all again."""
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "${PYTHONDONTWRITEBYTECODE-kept}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert pytest_runs.run([[]], "fast", "python", "off", silent_s=300).last == b"kept"


def test_a_check_that_is_ended_ends_its_run(tmp_path: Path) -> None:
    """What ends `make check` may know only of the process that runs the tiers."""
    (tmp_path / "test_hangs.py").write_text(
        "import os, signal, time\n"
        "def test_hangs():\n    os.kill(PARENT, signal.SIGTERM)\n    time.sleep(60)\n"
    )
    script = (
        "import os, pathlib\nfrom tests import pytest_runs\n"
        f"module = pathlib.Path({str(tmp_path / 'test_hangs.py')!r})\n"
        "module.write_text(module.read_text().replace('PARENT', str(os.getpid())))\n"
        "words = ['-p', 'tests.unfinished', str(module)]\n"
        "pytest_runs.run([words], 'fast', 'python', 'off', 300)\n"
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
    monkeypatch.setattr(pytest_runs, "LOOK_S", 0.05)
    try:
        assert pytest_runs.run([[]], "fast", "python", "off", silent_s=300)[1:3] == (0, b"1 passed")
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
    end = pytest_runs.run(
        [command], "fast", "python", os.environ.get("VARVE_NATIVE", "off"), silent_s=300
    )
    assert (end.code, end.last.partition(b" in ")[0]) == (1, b"2 failed, 1 passed")


PRINTS = """#!/bin/sh
# Called with -m pytest -q, a name, the one that it waits for, and its exit code.
echo "$4." && echo "=== $4 failed"
touch "$4" && while [ ! -e "$5" ]; do sleep 0.01; done
echo "said of $4" && echo "1 passed" && exit $6
"""


def test_processes_side_by_side_print_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Dots as they come; what failed in a process, and its summary, in one piece at its end."""
    program = tmp_path / "python"
    program.write_text(PRINTS)
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.chdir(tmp_path)
    # Each has printed its heading before the other one ends.
    commands = [["one", "two", "1"], ["two", "one", "0"]]
    end = pytest_runs.run(commands, "fast", "python", "off", silent_s=300, at_once=2)
    assert (end.code, end.last) == (1, b"1 passed, 1 passed")
    said = capfd.readouterr().out
    for name in ("one", "two"):
        assert f"{name}.\n" in said
        assert f"=== {name} failed\nsaid of {name}\n1 passed\n" in said


def test_a_process_that_says_nothing_is_ended_beside_one_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one goes on to its end."""
    program = tmp_path / "python"
    program.write_text(
        "#!/bin/sh\n[ $4 = silent ] && exec sleep 60\n"
        "for _ in 1 2 3 4 5 6 7 8 9 10; do echo .; sleep 0.2; done\necho 10 passed\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    commands = [["silent"], ["other"]]
    end = pytest_runs.run(commands, "fast", "python", "off", silent_s=1.5, at_once=2)
    assert (end.code, end.last) == (-15, b", 10 passed")


def test_a_process_begins_when_another_one_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more run side by side than is asked for; none begins in a run that is told to end."""
    program, log = tmp_path / "python", tmp_path / "log"
    program.write_text(
        f"#!/bin/sh\necho begin >> {log}\n[ $4 = last ] && kill -TERM $PPID && exec sleep 60\n"
        f"sleep 0.1\necho end >> {log}\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    commands = [["one"], ["two"], ["three"], ["four"]]
    pytest_runs.run(commands, "fast", "python", "off", silent_s=300, at_once=2)
    lines = log.read_text().split()
    sides = [lines[:at].count("begin") - lines[:at].count("end") for at in range(len(lines) + 1)]
    assert (lines.count("end"), max(sides)) == (4, 2)
    log.unlink()
    with pytest.raises(SystemExit):
        pytest_runs.run([["one"], ["last"], ["never"]], "fast", "python", "off", silent_s=300)
    assert log.read_text().split() == ["begin", "end", "begin"]


def test_the_next_batch_takes_the_room_that_the_first_one_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first process runs beside the last of the one before, each with its own environment."""
    program = tmp_path / "python"
    program.write_text(
        "#!/bin/sh\n[ $4 = compiled ] && touch compiled\n"
        "[ $4 = long ] && while [ ! -e compiled ]; do sleep 0.01; done\n"
        'echo "$4 $VARVE_NATIVE $HYPOTHESIS_PROFILE"\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(pytest_runs, "LOOK_S", 0.05)
    monkeypatch.delenv("HYPOTHESIS_PROFILE", raising=False)
    monkeypatch.chdir(tmp_path)
    ends = pytest_runs.run_batches(
        [
            Batch(lambda: [["long"], ["short"]], "settled", "python", "off"),
            Batch(list, "fast", "nothing", "off"),
            Batch(lambda: [["compiled"]], "fast", "compiled", "require"),
        ],
        silent_s=60,
        at_once=2,
    )
    assert [(end.path, end.code, end.last) for end in ends] == [
        ("python", 0, b"long off settled, short off settled"),
        ("compiled", 0, b"compiled require fast"),
    ]


def test_a_batch_waits_until_it_may_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And is asked for its commands only then; one that is told to end waits no longer."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho $4\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(pytest_runs, "LOOK_S", 0.05)
    monkeypatch.setattr(pytest_runs, "POLL_S", 0.001)
    asked = iter([False, False, False, True])
    said: list[str] = []

    def commands() -> list[list[str]]:
        said.append("commands")
        return [["second"]]

    def is_ready() -> bool:
        said.append("asked")
        return next(asked)

    batches = [
        Batch(lambda: [["first"]], "fast", "python", "off"),
        Batch(commands, "fast", "compiled", "off", is_ready),
    ]
    ends = pytest_runs.run_batches(batches, silent_s=60, at_once=2)
    assert [end.last for end in ends] == [b"first", b"second"]
    assert said == ["asked"] * 4 + ["commands"]
    assert "-- compiled: waiting for what it needs\n" in capfd.readouterr().out

    def is_told_to_end() -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return False

    with pytest.raises(SystemExit):
        pytest_runs.run_batches(
            [Batch(commands, "fast", "python", "off", is_told_to_end)], silent_s=60
        )
    assert said.count("commands") == 1


def test_the_worst_end_is_that_of_all() -> None:
    """Another end than that of tests: nobody knows which tests have not run."""
    assert worst([0, NO_TESTS]) == 0
    assert worst([NO_TESTS, NO_TESTS]) == NO_TESTS
    assert worst([0, FAILED, 0]) == FAILED
    assert worst([FAILED, -9, 0]) == -9
    assert worst([FAILED, 3]) == 3
