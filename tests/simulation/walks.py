"""Walks over crash points: scripted failovers in which a broker dies at every point, one at a time.

A run is played once. At each point it forks: in the child the broker dies there, and the run goes
on to its end; in the parent nothing happens, and the run goes on to the next point. So no run is
played twice up to its point. What a child finds is what a run with that crash point finds.
"""

import os
import pickle
import traceback
from asyncio import events
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.faults.crash_points import CrashPoint
from tests.simulation.faults.nemesis import Fault
from tests.simulation.outcome import Outcome
from tests.simulation.run import run
from tests.simulation.shape import Shape

SHAPE: Final = Shape(partitions=1, transactional=1, members=1, pause_s=1.0)
LENGTH_S: Final = 14.0
PLANS: Final = {
    "a leader is killed": [Fault(2.0, "kill", 1, 2, 3.0, 0), Fault(8.0, "kill", 2, 3, 2.0, 0)],
    "a leader stops": [Fault(2.0, "stop", 1, 2, 3.0, 0), Fault(8.0, "stop", 2, 3, 2.0, 0)],
    "two leaders follow": [Fault(2.0, "two changes", 1, 2, 1.0, 5)],
    "a leader is cut off": [Fault(2.0, "isolate", 1, 2, 5.0, 0)],
}


@dataclass(frozen=True)
class Ended:
    """How a run with a crash at a point ended."""

    point: CrashPoint
    trace: int
    violation: str | None
    has_crashed: bool


@dataclass
class Walk:
    """One run that forks at its points; `play` it.

    Attributes:
        workers: Children at a time.
        every: Each so many-eth point is tried, the others are passed.
        ended: What children have found, in the order of their points.
    """

    seed: int
    plan: str
    workers: int = 1
    every: int = 1
    ended: list[Ended] = field(default_factory=list)
    _passed: int = 0
    _mine: CrashPoint | None = None
    _report: int = -1
    _children: deque[tuple[int, int]] = field(default_factory=deque)

    def play(self) -> Outcome:
        """The run without a crash, once all children have ended."""
        try:
            outcome = play(self.plan, None, seed=self.seed, choose=self._choose, collects=False)
        except BaseException:
            if self._mine is not None:
                traceback.print_exc()
                os._exit(1)
            raise
        if self._mine is not None:
            ended = Ended(self._mine, outcome.trace, outcome.violation, outcome.has_crashed)
            with open(self._report, "wb") as file:
                pickle.dump(ended, file)
            os._exit(0)
        while self._children:
            self._await_first()
        return outcome

    def _choose(self, node_id: int, kind: str, number: int) -> CrashPoint | None:
        if self._mine is not None:
            return None
        for forgets in (False, True):
            self._passed += 1
            if (self._passed + self.seed) % self.every == 0:
                point = CrashPoint(node_id, kind, number, forgets)
                if self._fork(point):
                    return point
        return None

    def _fork(self, point: CrashPoint) -> bool:
        """Whether this is the child."""
        while len(self._children) >= self.workers:
            self._await_first()
        reads, writes = os.pipe()
        loop = events._get_running_loop()
        process = os.fork()
        if process == 0:
            # asyncio forgets which loop runs when the process is another.
            events._set_running_loop(loop)
            os.close(reads)
            self._mine, self._report = point, writes
            return True
        os.close(writes)
        self._children.append((process, reads))
        return False

    def _await_first(self) -> None:
        process, reads = self._children.popleft()
        with open(reads, "rb") as file:
            found = file.read()
        os.waitpid(process, 0)
        if not found:
            raise ChildProcessError(f"a run of {self.plan!r} ended without a word")
        self.ended.append(pickle.loads(found))


def play(
    plan: str,
    point: CrashPoint | None,
    *,
    seed: int,
    choose: Callable[[int, str, int], CrashPoint | None] | None = None,
    collects: bool = True,
) -> Outcome:
    """A plan's run, with a crash at a point."""
    return run(
        seed,
        LENGTH_S,
        shape=SHAPE,
        plan=PLANS[plan],
        crash=point,
        choose=choose,
        collects=collects,
    )


def walk(first: int, seeds: int, *, workers: int, every: int) -> int:
    """Walk all plans over some seeds, print how it went; 1 when a run has failed."""
    tried, failed = 0, 0
    for seed in range(first, first + seeds):
        for plan in PLANS:
            taken = Walk(seed, plan, workers, every)
            outcome = taken.play()
            wrong = [one for one in taken.ended if one.violation is not None]
            wrong += [one for one in taken.ended if not one.has_crashed]
            tried, failed = tried + len(taken.ended), failed + len(wrong)
            failed += outcome.violation is not None
            points = 2 * sum(outcome.points.values())
            print(
                f"seed {seed}, {plan}: {len(taken.ended)} of {points} crash points, "
                f"{len(wrong)} violations {outcome.violation or ''}",
                flush=True,
            )
            for one in wrong:
                print(f"  {one.point}: {one.violation or 'the point was not reached'}", flush=True)
    print(f"{tried} crash points, {failed} violations")
    return 1 if failed or not tried else 0
