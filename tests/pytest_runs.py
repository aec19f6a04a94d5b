"""Runs pytest in processes of their own, side by side, and passes on what they print."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Final, NamedTuple

from native.loader import VARIABLE

LOOK_S: Final = 5
"""How often a silent process is looked at."""

POLL_S: Final = 0.1
"""How often is asked, where nothing else runs, whether what comes next may begin."""

FAILED: Final = 1
"""Exit code of pytest when all tests were run, and some failed."""

NO_TESTS: Final = 5
"""Exit code of pytest when nothing was to be run."""

TAIL: Final = 4096
"""Bytes of what a process printed last that are kept: its summary is among them."""


class End(NamedTuple):
    """How a run of pytest on one path went.

    Attributes:
        path: The path's name in the summary.
        code: Exit code of pytest; of several processes the worst.
        last: The last line that it printed; of several processes theirs, one after the other.
        seconds: How long it took.
        second_try: Tests that failed, and passed when they were tried again.
    """

    path: str
    code: int
    last: bytes
    seconds: float
    second_try: tuple[str, ...] = ()


def worst(codes: Iterable[int]) -> int:
    """Of all parts of a run: an end that is none of tests, else `FAILED`, else 0.

    Returns:
        `NO_TESTS` if no part had a test.
    """
    left = [code for code in codes if code != NO_TESTS]
    if not left:
        return NO_TESTS
    return next((code for code in left if code not in (0, FAILED)), max(left))


class Batch(NamedTuple):
    """Runs of pytest on one path.

    Attributes:
        commands: Arguments of pytest, of each process; asked for when it begins.
        profile: How much properties try.
        path: The path's name in the summary.
        variable: What `VARVE_NATIVE` is for it.
        is_ready: Whether it may begin.
    """

    commands: Callable[[], Sequence[list[str]]]
    profile: str
    path: str
    variable: str
    is_ready: Callable[[], bool] = lambda: True


def run(
    commands: Sequence[list[str]],
    profile: str,
    path: str,
    variable: str,
    silent_s: float,
    at_once: int = 1,
) -> End:
    """Run pytest once on one path, and pass on what it prints; see `Batch` and `run_batches`."""
    (end,) = run_batches([Batch(lambda: commands, profile, path, variable)], silent_s, at_once)
    return end


def run_batches(batches: Iterable[Batch], silent_s: float, at_once: int = 1) -> list[End]:
    """Run them one after the other, and pass on what they print.

    A process that has ended makes room for the next one, also for the first one of the next batch:
    what cannot begin yet waits for as long as others run.

    Args:
        batches: What is run; one without commands is left out.
        silent_s: After so long without a word a process is told to end, after as long again killed.
        at_once: So many processes run side by side; the next one begins when one has ended.

    Returns:
        How each went; the times of two overlap.
    """
    with ExitStack() as stack:
        # What ends this run from outside may know of this process only.
        processes: list[_Process] = []
        ended = stack.enter_context(_passed_on(processes))
        begun: dict[int, list[_Process]] = {}

        def started() -> Iterator[_Process | None]:
            has_said = False
            for index, batch in enumerate(batches):
                while not batch.is_ready() and not ended:
                    if any(not each.has_ended for each in processes):
                        yield None  # Not yet.
                    else:
                        if not has_said:
                            _show(f"-- {batch.path}: waiting for what it needs\n".encode())
                        has_said = True
                        time.sleep(POLL_S)
                if ended:
                    return
                commands = batch.commands()
                environment = _environment(batch)
                for command in commands:
                    if ended:
                        return
                    words = [sys.executable, "-m", "pytest", "-q", *command]
                    process = stack.enter_context(
                        subprocess.Popen(words, stdout=subprocess.PIPE, env=environment)
                    )
                    processes.append(_Process(process, batch.path, is_alone=len(commands) == 1))
                    begun.setdefault(index, []).append(processes[-1])
                    if ended:
                        process.terminate()  # It may have come before this one was known.
                    yield processes[-1]

        _pass_on_all(started(), silent_s, at_once)
    return [_end(each) for each in begun.values()]


def _environment(batch: Batch) -> dict[str, str]:
    environment = {"HYPOTHESIS_PROFILE": batch.profile, **os.environ, VARIABLE: batch.variable}
    # Without bytecode of its own each process compiles all tests, and rewrites what they assert.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _end(processes: "Sequence[_Process]") -> End:
    """Of one batch; it has ended."""
    last = b", ".join(process.last_line() for process in processes)
    seconds = max(each.ended for each in processes) - min(each.began for each in processes)
    return End(processes[0].path, worst(each.code() for each in processes), last, seconds)


class _Process:
    """One process of a run, and what it prints.

    Of several, whole lines are passed on, and what follows the tests' dots (failures, summary)
    when it has ended: else nobody knew which line is whose.
    """

    def __init__(self, started: "subprocess.Popen[bytes]", path: str, *, is_alone: bool) -> None:
        assert started.stdout is not None
        self.pipe = started.stdout.fileno()
        self.path: Final = path
        self.began: Final = time.monotonic()
        self.ended = self.began
        self.has_ended = False
        self._started = started
        self._is_alone = is_alone
        self._tail = b""
        self._kept = b""
        self._is_held = False
        self._heard = time.monotonic()
        self._endings = iter([signal.SIGTERM])
        self._was_over = False

    def read(self) -> bool:
        """Take what it has printed; False: that was all."""
        self._heard = time.monotonic()
        said = os.read(self.pipe, 65536)
        self._tail = (self._tail + said)[-TAIL:]
        if self._is_alone:
            _show(said)
        else:
            self._kept += said
            self._show_lines()
        return bool(said)

    def is_over(self, silent_s: float) -> bool:
        """Looks at one that says nothing: whether it has ended; told to, if that takes too long.

        A program that a test has left behind may keep the pipe open. What was printed just before
        the end is read first: over is what was so at the last look, and was silent since.
        """
        if self._was_over:
            return True
        self._was_over = self._started.poll() is not None
        if time.monotonic() - self._heard >= silent_s and not self._was_over:
            _show(f"\n-- nothing has ended for {silent_s:.0f} s\n".encode())
            self._heard = time.monotonic()
            self.signal(next(self._endings, signal.SIGKILL))
        return False

    def end(self) -> None:
        """It has said all: show what was held back."""
        self.has_ended, self.ended = True, time.monotonic()
        _show(self._kept)
        self._kept = b""

    def signal(self, number: int) -> None:
        self._started.send_signal(number)

    def code(self) -> int:
        """Its exit code; it has ended."""
        return self._started.returncode

    def last_line(self) -> bytes:
        """The last one that says something."""
        return next((line for line in reversed(self._tail.splitlines()) if line.strip()), b"")

    def _show_lines(self) -> None:
        while not self._is_held and b"\n" in self._kept:
            line, _, rest = self._kept.partition(b"\n")
            if line.startswith(b"==="):
                self._is_held = True
            else:
                _show(line + b"\n")
                self._kept = rest


def _pass_on_all(started: Iterator[_Process | None], silent_s: float, at_once: int) -> None:
    with selectors.DefaultSelector() as selector:

        def fill() -> None:
            while len(selector.get_map()) < at_once and (process := next(started, None)):
                selector.register(process.pipe, selectors.EVENT_READ, process)

        fill()
        while waited_for := list(selector.get_map().values()):
            ready = {key.data for key, _ in selector.select(min(LOOK_S, silent_s))}
            for key in waited_for:
                process = key.data
                if not process.read() if process in ready else process.is_over(silent_s):
                    selector.unregister(key.fileobj)
                    process.end()
            fill()


@contextmanager
def _passed_on(processes: list[_Process]) -> Iterator[list[int]]:
    """SIGTERM, to the processes of a run; when these have ended, this one ends.

    Yields:
        What is not empty once it has come.
    """
    ended: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        ended.append(number)
        for process in processes:
            process.signal(number)

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield ended
    finally:
        signal.signal(signal.SIGTERM, before)
    if ended:
        sys.exit(128 + signal.SIGTERM)


def _show(said: bytes) -> None:
    sys.stdout.buffer.write(said)
    sys.stdout.buffer.flush()


__all__ = ["FAILED", "NO_TESTS", "Batch", "End", "run", "run_batches", "worst"]
