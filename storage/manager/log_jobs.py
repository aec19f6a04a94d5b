"""Jobs that touch one log each, run in one thread or in a few."""

from collections.abc import Callable, Sequence
from typing import Final

from storage.environment.thread_pool import ThreadPool

CLOSING_THREADS: Final = 8
"""Logs closed at a time at shutdown: disks serve waiting syncs together."""

Run = Callable[[Sequence[Callable[[], None]]], None]
"""Runs all jobs, in threads or not, and returns when all are done."""


def run_one_by_one(jobs: Sequence[Callable[[], None]]) -> None:
    """Run jobs in the calling thread."""
    for job in jobs:
        job()


def run_in_threads(jobs: Sequence[Callable[[], None]]) -> None:
    """Run jobs in a few threads; raises what one of them raised."""
    with ThreadPool(CLOSING_THREADS, "log-closing") as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()
