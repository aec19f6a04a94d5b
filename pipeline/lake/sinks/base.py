"""Interface of a table that a job keeps exactly once: one commit for files and offsets.

    view    ->  the offsets in the table, and which state of it they were read from
    commit  ->  files and new offsets, if that state is still the last; else CommitConflictError

Nothing retries a commit by itself: after a conflict the job views again, since its rows may be in
the table by now.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import DataFile, range_of
from pipeline.lake.stores.table_store import TableStore


class TableView(NamedTuple):
    """A table at one moment.

    Attributes:
        progress: What of the topic it holds; None: nothing yet.
        schema: Its columns; None: there is no table.
        state: Which state of the table this is, in the sink's own terms.
    """

    progress: Progress | None
    schema: pa.Schema | None
    state: object


class TableFile(NamedTuple):
    """A file of a table, by the table's own metadata.

    Attributes:
        key: Below the table's folder.
        size: Bytes.
        rows: In it.
        values: Of the fields the table is partitioned by, as text; those of two files are equal
            where the files belong to the same part of the table.
        first_offset: Least of its rows.
        time_us: Of its first rows or, where the table does not record it, of its last.
        sealed: Why only its writer knows what its rows are, a sentence; empty: every reader does.
    """

    key: str
    size: int
    rows: int
    values: tuple[tuple[str, str], ...]
    first_offset: int
    time_us: int
    sealed: str = ""


class Sink(Protocol):
    """A table that a job keeps. Blocking calls.

    Attributes:
        name: For people.
        folder: In front of the keys of data files; empty or with a `/` at the end.
        keeps_partition_columns: Whether files hold columns that the table is partitioned by.
    """

    name: str
    folder: str
    keeps_partition_columns: bool

    @property
    def store(self) -> TableStore:
        """The store of its files; for Iceberg only once there is a table."""
        ...

    def view(self) -> TableView:
        """The table now.

        Raises:
            ForeignTableError: Another job keeps it.
            TableUnavailableError: Store or catalog do not answer.
        """
        ...

    def create(self, schema: pa.Schema, progress: Progress) -> None:
        """Create the table, empty, or begin to keep an existing one that no job keeps.

        With `progress` of another topic id than the table's: go on with the new incarnation.
        """
        ...

    def commit(
        self,
        view: TableView,
        schema: pa.Schema,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
    ) -> None:
        """Files and offsets in one step; see the module.

        Args:
            view: The last view.
            schema: All columns, those of the table first; columns that it lacks are added.
            files: To add; may be none.
            progress: To be found by the next view.
            remove: Keys of files that leave the table in the same step.

        Raises:
            CommitConflictError: Another commit was made since; nothing was done.
            TableUnavailableError: It may or may not be done: view again.
        """
        ...

    def replace(self, view: TableView, files: Sequence[DataFile], remove: Sequence[str]) -> None:
        """The same rows in other files, in one step; offsets stay as the view has them.

        Raises:
            CommitConflictError: Another commit was made since; nothing was done.
            TableUnavailableError: It may or may not be done: view again.
        """
        ...

    def keys(self, view: TableView) -> Sequence[str]:
        """Keys of the files that are the table, in no order."""
        ...

    def files(self, view: TableView) -> Sequence[TableFile]:
        """The files that are the table, in no order."""
        ...

    def check(self, view: TableView) -> None:
        """Before a job's first batch: whether the table is what its offsets say; may take a while.

        Raises:
            ForeignTableError: It lacks files, or has rows that its offsets do not cover.
        """
        ...


def offsets_of(
    sink: Sink, view: TableView, topic_id: UUID, partition: int, start: int, end: int
) -> tuple[int, ...]:
    """Offsets of [start, end) that a table has rows of, ascending.

    Reads files whose names say that they may have some, so not compacted ones.
    """
    found: set[int] = set()
    for key in sink.keys(view):
        named = range_of(key)
        if (
            named is None
            or named.partition != partition
            or named.topic_id_start != topic_id.hex[:8]
            or named.end <= start
            or named.start >= end
        ):
            continue
        data = sink.store.get(key)
        if data is None:
            raise ForeignTableError(f"{sink.name}: {key} is of the table, and is not there")
        rows = pq.read_table(pa.BufferReader(data), columns=["offset"])
        found.update(o for o in rows.column("offset").to_pylist() if start <= o < end)
    return tuple(sorted(found))
