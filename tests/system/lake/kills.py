"""Jobs in processes that die at random steps, while a watcher compares the table all the time.

The processes are real and the signals are SIGKILL (or SIGSTOP: a process that wakes up behind
another one is a zombie).
"""

import multiprocessing
import os
import random
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from pipeline.lake.errors import TableUnavailableError
from tests.fakes.lake.hooks import Hook
from tests.fakes.lake.tables import open_catalog

Context = multiprocessing.context.ForkServerContext

MANY = 25


class Watcher(ABC):
    """Compares a table all the time; `problems` are moments at which it was wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.looks = 0
        self.stopped = threading.Event()

    @abstractmethod
    def look(self) -> bool:
        """Compare it once; False: there is nothing to compare, or it is locked."""

    def run(self) -> None:
        try:
            while not self.stopped.wait(0.02):
                self.looks += self.look()
        except Exception as error:  # noqa: BLE001 -- whatever a reader met, the test tells
            self.problems.append(repr(error))


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        yield
    finally:
        watcher.stopped.set()
        thread.join()
    assert watcher.problems == []
    assert watcher.looks > 0


def killed(process: BaseProcess) -> bool:
    """Wait for its end; False: it had done its work."""
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode != 0


def until_asleep(process: BaseProcess) -> None:
    """Until it has stopped itself; it may not end before."""
    deadline = time.monotonic() + 60
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def faults(chance: random.Random, share: float) -> Hook:
    """A store that is away now and then, before it does something, or behind that."""

    def hook(call: str, after: bool) -> None:
        if chance.random() < share:
            raise TableUnavailableError(f"{call} {'did not answer' if after else 'is away'}")

    return hook


@dataclass(frozen=True)
class KilledJob:
    """A kind of job, and how its table is judged.

    Attributes:
        name: Part of the seed of what is drawn.
        keep: The process' work: kind, root, end of the log, step at which it dies; 0: it does not.
        per_round: Records, or offsets, that the log grows by between two kills.
        steps_max: Of a round without a kill there are about so many.
        zombie_steps_max: A zombie falls asleep before this one.
        zombie_sleeps_s: For so long at the most, else until the other one has done its work.
        watcher: Watches the table at a root, whose log ends there at the most.
        check: Fails unless the table is that of the whole log.
    """

    name: str
    keep: Callable[..., None]
    per_round: int
    steps_max: int
    zombie_steps_max: int
    zombie_sleeps_s: float
    watcher: Callable[[str, Path, int], Watcher]
    check: Callable[[str, Path, int], None]

    def start(
        self, context: Context, kind: str, root: Path, end: int, steps: int, **more: object
    ) -> BaseProcess:
        """A process that does the work up to a step."""
        process = context.Process(target=self.keep, args=(kind, str(root), end, steps), kwargs=more)
        process.start()
        return process

    def kill_at_steps(self, context: Context, kind: str, root: Path, kills: int) -> None:
        """Each process dies at a random step of its work, or is done before it gets there."""
        chance = random.Random(f"{self.name}{kind} {kills}")
        # Two that make the catalog's own tables at once are SQLite's affair.
        open_catalog(root)
        done = rounds = 0
        with watched(self.watcher(kind, root, self.per_round * 10 * kills)):
            while done < kills:
                rounds += 1
                assert rounds < 10 * kills
                steps = chance.randrange(1, self.steps_max)
                done += killed(self.start(context, kind, root, self.per_round * rounds, steps))
        self.keep(kind, str(root), self.per_round * rounds, 0)
        self.check(kind, root, self.per_round * rounds)

    def zombies(self, context: Context, kind: str, root: Path, rounds: int) -> None:
        """One sleeps at a random step; others make its batches; it wakes up and goes on."""
        chance = random.Random(f"{self.name}zombies {kind}")
        open_catalog(root)
        with watched(self.watcher(kind, root, self.per_round * rounds)):
            for number in range(1, rounds + 1):
                end = self.per_round * number
                steps = chance.randrange(1, self.zombie_steps_max)
                sleeper = self.start(context, kind, root, end, steps, number=signal.SIGSTOP)
                assert sleeper.pid is not None
                until_asleep(sleeper)
                other = self.start(context, kind, root, end, 0)
                other.join(self.zombie_sleeps_s)
                os.kill(sleeper.pid, signal.SIGCONT)
                assert not killed(other)
                assert not killed(sleeper)
        self.check(kind, root, self.per_round * rounds)

    def two_at_once(self, context: Context, kind: str, root: Path) -> None:
        """Two work side by side, and both are killed, round for round."""
        chance = random.Random(f"{self.name}two {kind}")
        open_catalog(root)
        end = 0
        with watched(self.watcher(kind, root, self.per_round * MANY)):
            for number in range(1, 13):
                end = self.per_round * number
                both = [
                    self.start(context, kind, root, end, chance.randrange(1, 2 * self.steps_max))
                    for _ in range(2)
                ]
                for process in both:
                    killed(process)
        self.keep(kind, str(root), end, 0)
        self.check(kind, root, end)
