"""Runs in processes of their own, several at a time; their outcomes come in order.

A run's process ends with it: what the run leaves behind, a graph of a million objects, is given
back by the system instead of being collected. All come from one that has made a run before, so that
none has to import or compile anything.

Processes share no queue and no lock, and are killed where nobody waits for them any more. A
`multiprocessing.Pool` asks its workers to end with SIGTERM, while each may wait for a lock that one
ended before it has held: where SIGTERM is handled in Python, as it may be after a fork, that worker
never ends.
"""

import multiprocessing
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any, Final, TypeVar

from tests.simulation.run import run
from tests.simulation.shape import Shape

T = TypeVar("T")

FORK: Final = multiprocessing.get_context("fork")


def warm_up() -> None:
    """Import and compile what a run needs."""
    run(0, 1.0, shape=Shape(), plan=[])


def in_order(
    workers: int, jobs: Iterator[tuple[Any, ...]], work: Callable[..., T]
) -> Generator[T, None, None]:
    """What `work` returns for each job, in their order; jobs are taken as workers are free.

    Raises:
        Exception: What `work` has raised.
        EOFError: A process ended without an outcome; its own words are in what it printed.
    """
    running: deque[tuple[ForkProcess, Connection]] = deque()
    try:
        for job in jobs:
            if len(running) == workers:
                yield _outcome(*running[0])
                running.popleft()
            running.append(_start(work, job))
        while running:
            yield _outcome(*running[0])
            running.popleft()
    finally:
        for process, _ in running:
            process.kill()
        for process, connection in running:
            process.join()
            connection.close()


def _start(work: Callable[..., T], job: tuple[Any, ...]) -> tuple[ForkProcess, Connection]:
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_run, args=(theirs, work, job))
    process.start()
    # Only the process has it now, so that its end is the end of the pipe.
    theirs.close()
    return process, ours


def _run(connection: Connection, work: Callable[..., T], job: tuple[Any, ...]) -> None:
    try:
        connection.send((work(*job), None))
    except Exception as error:  # noqa: BLE001  because whoever waits raises it
        # A traceback does not go through a pipe.
        error.add_note("".join(traceback.format_exception(error)))
        connection.send((None, error))


def _outcome(process: ForkProcess, connection: Connection) -> Any:
    outcome, error = connection.recv()
    if error is not None:
        raise error
    process.join()
    connection.close()
    return outcome
