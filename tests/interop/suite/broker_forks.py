"""Brokers by fork, out of a process that has imported all they need: a third of a start's work.

    python -m tests.interop.suite.broker_forks

Reads lines of standard input, `settings file<TAB>log`, and answers each with the process id of a
broker with these settings, which writes to that log. When standard input ends it kills those that
still run, so that none outlives the Java that wanted it. A broker's exit status is known to nobody.
"""

import importlib
import os
import signal
import sys
from types import FrameType
from typing import Final, NoReturn

from cli.main import main
from native.loader import prefer_compiled

IMPORTED: Final = ("cli.serve", "broker.app", "broker.controller.store.etcd.etcd_store", "uvloop")

_alive: Final[set[int]] = set()


def _reap(_signal: int, _frame: FrameType | None) -> None:
    """Let no dead one look alive."""
    while _alive:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            # By a signal in here the last one was reaped; or this is a child before it is a broker.
            return
        if pid == 0:
            return
        _alive.discard(pid)


def _become_broker(settings: str, log: str) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for own, descriptor in ((0, nothing), (1, output), (2, output)):
        os.dup2(own if own == descriptor else descriptor, own)
    code = 70
    try:
        code = main(["serve", "--config", settings])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run() -> None:
    """Serve standard input to its end."""
    # First of all, as in any program of ours: else what is compiled would be imported as Python.
    prefer_compiled()
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, _reap)
    for line in sys.stdin:
        settings, log = line.rstrip("\n").split("\t")
        # A child that ends before it is noted would stay noted.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if pid == 0:
            _become_broker(settings, log)
        _alive.add(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for pid in tuple(_alive):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    run()
