"""A whole broker in this process, and the table of what its requests cost.

What programs share that count a broker's work without sockets. They call `prefer_compiled` before
they import this.
"""

import argparse
import asyncio
import gc
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from bench.cost_meter import count_instructions
from broker.app import COLLECT_AFTER, new_loop
from broker.broker import Broker
from config.load import load
from native.loader import code_path

Measure = Callable[[int, str], Awaitable[dict[str, float]]]
"""Rounds, and a part of the names of rows, to CPU seconds of each row's request."""

Result = TypeVar("Result")


@asynccontextmanager
async def measured_broker(*more: str) -> AsyncIterator[Broker]:
    """A broker that has started, with an empty log directory; it is stopped at the end.

    `more`: settings, as `--set` takes them.
    """
    with tempfile.TemporaryDirectory(prefix="varve-costs-") as directory:
        assignments = [
            f"log.dirs={directory}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            "admin.listener=",
            *more,
        ]
        broker = Broker(load(assignments=assignments).broker)
        await broker.start()
        yield broker
        await broker.stop()


def freeze_memory() -> None:
    """Collect garbage as `varve serve` does when it has started, and as seldom from then on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def run_on_own_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to its end, on a loop of the kind that `varve serve` has."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)


def main(
    program: str,
    description: str | None,
    measure: Measure,
    *,
    width: int,
    requests_of: Callable[[str], int],
) -> None:
    """Measure as the command line says, and print a table.

    Args:
        program: The module that is run.
        description: For `--help`.
        measure: Its rows.
        width: Of their names.
        requests_of: How many requests a row counts together.
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="", help="rows whose name has this part")
    parser.add_argument("--callgrind", type=Path, help="a folder that exists")
    chosen = parser.parse_args()
    print(f"code {code_path().describe()}")
    if chosen.callgrind is not None:
        found = count_instructions(program, ["--only", chosen.only], chosen.callgrind)
        for name, total in found.items():
            print(f"{name:{width}} {total / requests_of(name):10,.0f} instructions")
        return

    async def run() -> dict[str, float]:
        return await measure(chosen.rounds, chosen.only)

    for name, seconds in run_on_own_loop(run()).items():
        print(f"{name:{width}} {seconds * 1e6:8.1f} us")
