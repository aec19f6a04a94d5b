"""A broker whose event loop is watched from inside: how long was it held, at most?

    python -m bench.loop_watch FILE serve --set ...

runs `varve serve` with a timer of one millisecond on its loop. Who comes while the loop is held
waits for that long, whether one callback holds it or many that are due at once. On a machine that
has other work to do the loop's thread also waits for a core, so its CPU time in between is noted
beside the time on the clock. The longest of both are kept in FILE, two doubles that the reader sets
back to zero. Watching costs about 1% of a core.
"""

import asyncio
import mmap
import struct
import sys
import time
from pathlib import Path
from typing import NamedTuple

PERIOD_S = 0.001
_TIMES = struct.Struct("dd")


class Hold(NamedTuple):
    """The longest time the loop did not look at its timers, and the most CPU time it took."""

    wall_s: float
    cpu_s: float


class LongestHold:
    """What the file says, seen by both processes."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_TIMES.pack(0.0, 0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _TIMES.size)

    def note(self, wall_s: float, cpu_s: float) -> None:
        """The loop was held for so long."""
        longest = Hold(*_TIMES.unpack_from(self._memory))
        if wall_s > longest.wall_s or cpu_s > longest.cpu_s:
            _TIMES.pack_into(
                self._memory, 0, max(wall_s, longest.wall_s), max(cpu_s, longest.cpu_s)
            )

    def take(self) -> Hold:
        """The longest since this was called last."""
        longest = Hold(*_TIMES.unpack_from(self._memory))
        _TIMES.pack_into(self._memory, 0, 0.0, 0.0)
        return longest


def watch(loop: asyncio.AbstractEventLoop, longest: LongestHold) -> None:
    """Note how late a timer comes, again and again."""

    def tick(armed_s: float, cpu_before_s: float) -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        wall_s = max(now - armed_s - PERIOD_S, 0.0)
        longest.note(wall_s, min(wall_s, cpu - cpu_before_s))
        loop.call_later(PERIOD_S, tick, time.perf_counter(), cpu)

    loop.call_soon(tick, time.perf_counter(), 0.0)


def main() -> int:
    """Run the command line behind the file's name."""
    from broker import app
    from cli.main import main as run_command

    longest = LongestHold(Path(sys.argv.pop(1)))
    make = app.new_loop

    def watched() -> asyncio.AbstractEventLoop:
        loop = make()
        watch(loop, longest)
        return loop

    app.new_loop = watched
    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
