"""The environment of a node: clock, timer, disk, randomness and threads as one value.

    clock          wall time and monotonic time
    timer          callbacks on the loop's thread, later
    filesystem     files and directories
    randomness     identifiers, jitter, key material
    run_blocking   a call that may wait for the disk, in a thread beside the loop

A program builds one at its edge (`broker.broker`, the tier process, a test) and passes it down. A
constructor that needs one or two of these things and never hands them on takes just those; one that
needs more, or builds parts that do, takes the environment.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.environment.off_loop import Run
from storage.environment.randomness import Randomness
from storage.environment.timer import Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """See the module. A part reads its fields once, when it is built."""

    clock: Clock
    timer: Timer
    filesystem: Filesystem
    randomness: Randomness
    run_blocking: Run

    @classmethod
    def without_loop(
        cls, *, clock: Clock, filesystem: Filesystem, randomness: Randomness
    ) -> "Environment":
        """The environment of a program that runs no event loop: an offline tool, a cleaner process.

        Its `timer` and `run_blocking` raise RuntimeError.
        """
        return cls(
            clock=clock,
            timer=_NoTimer(),
            filesystem=filesystem,
            randomness=randomness,
            run_blocking=_no_threads,
        )


class _NoTimer:
    __slots__ = ()

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> NoReturn:
        raise RuntimeError(f"no event loop to call {callback!r} in {delay_ms} ms")


async def _no_threads(function: Callable[..., Any], *_args: Any) -> NoReturn:
    raise RuntimeError(f"no event loop to run {function!r} beside")
