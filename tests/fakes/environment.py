"""An environment that tests move by hand: time, timers, disk, seeded randomness, no threads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from storage.environment.environment import Environment
from storage.environment.off_loop import Run
from storage.environment.randomness import Randomness, SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.timer import ManualTimer

T = TypeVar("T")


async def run_inline(function: Callable[..., T], *args: Any) -> T:
    """`storage.environment.off_loop.Run` without a thread."""
    return function(*args)


@dataclass(frozen=True, slots=True, init=False)
class FakeEnvironment(Environment):
    """`Environment` whose fields are fakes, and known to be.

    `timer.advance` moves timer and clock. What is not given is made: a timer on the clock, an empty
    disk with the clock's times, randomness of seed 1, and calls that run where they are made.
    """

    clock: ManualClock
    timer: ManualTimer
    filesystem: FakeFilesystem

    def __init__(
        self,
        *,
        clock: ManualClock | None = None,
        timer: ManualTimer | None = None,
        filesystem: FakeFilesystem | None = None,
        randomness: Randomness | None = None,
        run_blocking: Run = run_inline,
    ) -> None:
        timer = timer or ManualTimer(clock)
        super(FakeEnvironment, self).__init__(
            clock=clock or timer.clock,
            timer=timer,
            filesystem=filesystem or FakeFilesystem(timer.clock),
            randomness=randomness or SeededRandomness(1),
            run_blocking=run_blocking,
        )
