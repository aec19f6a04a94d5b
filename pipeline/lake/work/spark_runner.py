"""Tasks on Spark: the JVM carries a number there and a message back, and never a row.

    range(tasks) ─> mapInArrow: one task a partition, in the Python worker ─> its result, pickled

What no other attempt would do better (a record that does not fit, a damaged object, offsets that
are gone) comes back as a result, so that Spark does not try it again; everything else fails the
attempt, and Spark's own limit of attempts counts.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from pipeline.lake.errors import LakeError, TableUnavailableError, TaskFailedError
from pipeline.lake.work.task import ReadPiece, Task, TaskResult, TaskSpec, run_task
from pipeline.plan.errors import PlanError
from pipeline.read.read_errors import ReadError
from pipeline.source.settled import settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT_SCHEMA: Final = "number long, result binary"

_ARROW: Final = pa.schema([pa.field("number", pa.int64()), pa.field("result", pa.binary())])

REASON_CHARACTERS: Final = 500

T = TypeVar("T")
R = TypeVar("R")


class SparkRunner:
    """`Runner` on a Spark session; see the module."""

    def __init__(self, session: "SparkSession", read_piece: ReadPiece) -> None:
        """The caller stops the session."""
        self._session = session
        self._read_piece = read_piece

    def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
        """One Spark job; the results are in the order of the tasks."""
        return self.map(partial(run_task, spec=spec, read_piece=self._read_piece), tasks)

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """`work` of each item: one Spark job; the results are in the order of the items.

        Raises:
            TaskFailedError: Spark has failed a task.
            LakeError, PlanError, ReadError: What a task found that repeating does not mend.
        """
        from pyspark.errors import PySparkException

        frame = self._session.range(0, len(items), 1, len(items))
        try:
            rows = frame.mapInArrow(_work(tuple(items), work), RESULT_SCHEMA).collect()
        except PySparkException as error:
            raise TaskFailedError(_reason(str(error))) from error
        except Exception as error:
            if type(error).__module__.startswith("py4j"):
                raise TaskFailedError(_reason(str(error))) from error
            raise
        results: dict[int, R] = {}
        for row in rows:
            # Of our own workers: no other bytes are unpickled.
            found = pickle.loads(bytes(row["result"]))
            if isinstance(found, Exception):
                raise found
            results[row["number"]] = found
        return [results[number] for number in range(len(items))]

    def close(self) -> None:
        """Nothing is held."""


def _work(
    items: tuple[T, ...], do: Callable[[T], R]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker does; a closure, since Spark calls it with batches only."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                data = attempted(do, items[number])
                settle()
                yield pa.record_batch([pa.array([number]), pa.array([data])], schema=_ARROW)

    return work


def attempt(task: Task, spec: TaskSpec, read_piece: ReadPiece) -> bytes:
    """A task's result, or the error that repeating it would give again; pickled."""
    return attempted(partial(run_task, spec=spec, read_piece=read_piece), task)


def attempted(do: Callable[[Any], object], item: object) -> bytes:
    """The result of `do` for an item, or an error that a retry would repeat; pickled."""
    found: object
    try:
        found = do(item)
    except (TableUnavailableError, TaskFailedError):
        raise
    except (LakeError, PlanError, ReadError) as error:
        found = error
    return pickle.dumps(found)


def _reason(text: str) -> str:
    """Of Spark's pages of text the line that says what it was."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if "Error: " in line or "Exception: " in line]
    reason = named[-1] if named else (lines[0] if lines else "no reason is given")
    return f"Spark gave up on a task: {reason[:REASON_CHARACTERS]}"
