"""Tasks in processes of this machine, without Spark: for tests, and for tables of one machine.

The same tasks, the same commit; only the runner differs. A worker that dies takes its batch with
it, which is then repeated. A driver that dies takes its workers with it, wherever they are.
"""

import multiprocessing
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar

from pipeline.lake.errors import TaskFailedError
from pipeline.lake.work.task import ReadPiece, Task, TaskResult, TaskSpec, run_task

T = TypeVar("T")
R = TypeVar("R")


class LocalRunner:
    """`Runner` without Spark; see the module."""

    def __init__(self, read_piece: ReadPiece, workers: int = 0) -> None:
        """`workers`: processes, each with one task at a time; 0: in this one, one by one."""
        self._read_piece = read_piece
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
        """In any order; the results are in that of the tasks."""
        return self.map(partial(run_task, spec=spec, read_piece=self._read_piece), tasks)

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """`work` of each item, in any order; the results are in that of the items.

        Raises:
            TaskFailedError: A process is gone.
            Exception: Whatever `work` raises.
        """
        if self._workers == 0:
            return [work(item) for item in items]
        if self._pool is None:
            # Not forked: this process may have threads, of which a fork would copy the locks only.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._workers, mp_context=context, initializer=_end_with_driver
            )
        waiting: list[Future[R]] = []
        try:
            waiting.extend(self._pool.submit(work, item) for item in items)
            return [future.result() for future in waiting]
        except BrokenProcessPool as error:
            self._pool.shutdown(wait=False)
            self._pool = None
            raise TaskFailedError("a worker process ended in the middle of its task") from error
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the processes; a task under way is waited for."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def _end_with_driver() -> None:
    """Of a killed driver the pool's workers would wait for work for ever, each with its memory."""
    driver = multiprocessing.parent_process()
    assert driver is not None

    def wait() -> None:
        driver.join()
        signal.raise_signal(signal.SIGKILL)

    threading.Thread(target=wait, name="end-with-driver", daemon=True).start()
