"""What a process asks for itself, asked by a child of the test."""

import os
import signal
import subprocess
import sys

import pytest

from tiered.worker.own_process import NAME, NICE, OOM_SCORE

linux = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")


def run(code: str) -> list[str]:
    """Lines that a child prints."""
    done = subprocess.run(
        [sys.executable, "-c", "from tiered.worker.own_process import *\n" + code],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.splitlines()


@linux
def test_name_priority_and_cpu() -> None:
    cpu = min(os.sched_getaffinity(0))
    lines = run(
        f"print(settle([{cpu}]))\n"
        "print(open('/proc/self/comm').read().strip())\n"
        "print(os.nice(0), open('/proc/self/oom_score_adj').read().strip())\n"
        "print(sorted(os.sched_getaffinity(0)))"
    )
    nice = os.nice(0) + NICE
    assert lines == ["[]", NAME, f"{min(nice, 19)} {OOM_SCORE}", f"[{cpu}]"]


@linux
def test_what_cannot_be_had_is_told_and_no_more() -> None:
    (line,) = run("print(settle([4095]))")
    assert "CPUs [4095]" in line


def test_no_affinity_is_any_cpu() -> None:
    (line,) = run("print([problem for problem in settle([]) if 'CPU' in problem])")
    assert line == "[]"


CHILD = """
from tiered.worker.own_process import *
die_with_parent()
print(os.getpid(), flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""

PARENT = f"""
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
print(int(child.stdout.readline()), flush=True)
os.waitid(os.P_PID, child.pid, os.WSTOPPED)
os.kill(os.getpid(), signal.SIGKILL)
"""


@linux
def test_dies_with_the_parent_even_while_stopped() -> None:
    """The end of standard error is waited for, which the stopped child holds open."""
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            parent.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.kill(child, signal.SIGKILL)
            raise


def test_leave_does_not_wait_for_threads() -> None:
    lines = run(
        "import threading\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "print('left', flush=True)\nleave(0)"
    )
    assert lines == ["left"]
