"""How long a loop was held, told across processes by a file."""

import asyncio
import time
from pathlib import Path

from bench.loop_watch import Hold, LongestHold, watch


def test_reader_sees_the_longest_and_begins_anew(tmp_path: Path) -> None:
    writer, reader = LongestHold(tmp_path / "watch"), LongestHold(tmp_path / "watch")
    writer.note(0.25, 0.125)
    writer.note(0.125, 0.0625)
    writer.note(0.0, 0.5)
    assert reader.take() == Hold(0.25, 0.5)
    assert reader.take() == Hold(0.0, 0.0)
    writer.note(0.125, 0.0)
    assert reader.take() == Hold(0.125, 0.0)


def test_callback_that_holds_the_loop_is_noted(tmp_path: Path) -> None:
    longest = LongestHold(tmp_path / "watch")

    def hold() -> None:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    async def run() -> None:
        watch(asyncio.get_running_loop(), longest)
        held = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, hold)
        # Behind it, and behind the tick that notes it.
        loop.call_later(0.2, held.set)
        await held.wait()

    asyncio.run(run())
    found = longest.take()
    assert found.wall_s >= found.cpu_s >= 0.04
