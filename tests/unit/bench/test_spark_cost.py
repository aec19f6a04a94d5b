"""Costs of processes stay in their column, and stay there when the processes end."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from bench.perf_counters import CPU_SECONDS
from bench.spark_cost import ProcessCost

PARENT = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as PySpark's daemon: nobody waits for a child
def work(count):
    for _ in range(count):
        pass
for line in sys.stdin:
    who, count = line.split()
    if who == "child":
        child = os.fork()
        if not child:
            work(int(count))
            os._exit(0)
        try:
            os.waitpid(child, 0)
        except ChildProcessError:
            pass
    else:
        work(int(count))
    print("done", flush=True)
"""
WORK = 5_000_000


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[str]"]:
    """A process that works, or has a child work that ends."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def work(process: "subprocess.Popen[str]", who: str) -> None:
    """Have it done."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{who} {WORK}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def opened(pid: int, *, own: bool = False) -> ProcessCost:
    try:
        return ProcessCost(pid, CPU_SECONDS, own=own)
    except OSError as error:
        pytest.skip(str(error))


def test_a_child_that_has_ended_counts_in_the_tree_and_not_in_its_parent(
    parent: "subprocess.Popen[str]",
) -> None:
    whole, own = opened(parent.pid), opened(parent.pid, own=True)
    work(parent, "child")
    by_child, beside = whole.used(), own.used()
    assert by_child > 4 * beside
    work(parent, "parent")
    assert own.used() - beside > by_child / 4
    # Read in this order, so that what is used in between counts for the whole.
    alone = own.used() - beside
    assert whole.used() - by_child >= alone - 0.001
    whole.close()
    own.close()


def test_a_process_goes_on_after_its_counters_were_opened(parent: "subprocess.Popen[str]") -> None:
    opened(parent.pid).close()
    work(parent, "parent")


def test_sleeping_costs_next_to_nothing() -> None:
    cost = opened(os.getpid(), own=True)
    before = cost.used()
    time.sleep(0.05)
    assert cost.used() - before < 0.04
    cost.close()
