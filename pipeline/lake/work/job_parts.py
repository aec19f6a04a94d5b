"""Settings of a lake job, and the interfaces of its runner and its columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa

from pipeline.lake.schemas.spec import ConverterSpec, Mode
from pipeline.lake.settings.start import Start
from pipeline.lake.work.task import Task, TaskResult, TaskSpec

T = TypeVar("T")
R = TypeVar("R")


class JobSettings(NamedTuple):
    """Settings that decide how a batch is made.

    Attributes:
        name: Of the job.
        start: Where partitions begin of which the table has nothing.
        max_bytes: Of a batch, in the log.
        task_bytes: Of a task, in the log.
        fail_on_data_loss: Offsets that are gone end the job.
        new_incarnation: Continue with a topic that was deleted and recreated.
        new_quarantine: Go on where the quarantine has lost records.
        mode: Whether every record is a row, or the last one of each key.
        buckets: Of keys, in a table that is kept by key.
        facts: All else that decides what files are like; part of the fingerprint.
    """

    name: str
    start: Start = "earliest"
    max_bytes: int = 4 << 30
    task_bytes: int = 128 << 20
    fail_on_data_loss: bool = True
    new_incarnation: bool = False
    mode: Mode = "append"
    buckets: int = 16
    facts: Mapping[str, str] = {}
    new_quarantine: bool = False


class Runner(Protocol):
    """Runs tasks somewhere."""

    def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
        """All of them; TaskFailedError when one cannot be done."""
        ...

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """`work` of each item, all of it pickled; TaskFailedError when one cannot be done."""
        ...

    def close(self) -> None:
        """Give back processes."""
        ...


class Columns(Protocol):
    """Knows what the table's columns are, or have to become."""

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        """For a table of these columns; None: it is made now, from a sample if need be."""
        ...

    def evolved(self, spec: ConverterSpec, behind: frozenset[int]) -> ConverterSpec:
        """With columns for all that the schemas `behind` have."""
        ...
