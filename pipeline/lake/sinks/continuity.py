"""Checks that a table is still what its job left: not lost, rolled back or replaced.

    while a job runs     the table is gone                  it waits for it
                         another one is in its place        stops
                         it has an earlier batch            warning; continues from there
    before a job's       rows of offsets that the table's   stops: a copy without its offsets, or
    first batch          offsets do not have                a snapshot that was cherry-picked
    before a table       files of a job in its folder       stops: its log or catalog entry is lost
    is made

A job that starts over in such a place would have rows twice, or lose those that its topic has no
more. What to do about it is a person's to say.
"""

import logging

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError, TableUnavailableError
from pipeline.lake.files.data_file import (
    NamedBucket,
    NamedRange,
    bucket_of,
    incarnation_of,
    range_of,
)
from pipeline.lake.schemas.columns import COORDINATES
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.stores.table_store import TableStore

LOGGER = logging.getLogger(__name__)

REPLAYED = "part-replay-"
"""Names of files with rows out of the quarantine; what they say of offsets is the quarantine's."""


class Continuity:
    """Continuity of one table, during the life of a process."""

    def __init__(self, name: str) -> None:
        """`name`: of the table, for people."""
        self._name = name
        self._known: Progress | None = None

    def checked(self, view: TableView) -> TableView:
        """The same view.

        Raises:
            TableUnavailableError: It was there and is gone.
            ForeignTableError: It is another one.
        """
        known, found = self._known, view.progress
        if known is not None and found is None:
            if view.schema is None:
                raise TableUnavailableError(
                    f"{self._name} was there and is gone: dropped, moved, or its store is away. "
                    "The job waits for it; one that is started again makes a new table"
                )
            raise ForeignTableError(
                f"{self._name} is another table than before: it has no offsets. A job that is "
                "started again fills it from the start of the log"
            )
        if (
            known is not None
            and found is not None
            and found.topic_id == known.topic_id
            and found.batch < known.batch
        ):
            LOGGER.warning(
                "%s was rolled back from batch %d to batch %d: the job resumes from there",
                *(self._name, known.batch, found.batch),
            )
        self._known = found
        return view


def refuse_leftovers(name: str, store: TableStore, folder: str, lost: str) -> None:
    """Before a table is made.

    Args:
        name: Of the table.
        store: Where its files will be.
        folder: In front of their keys.
        lost: What such files lack to be a table.

    Raises:
        ForeignTableError: There are files of a job.
    """
    for file in store.list(folder):
        if file.key.startswith("_"):
            continue
        if incarnation_of(file.key) is not None:
            raise ForeignTableError(
                f"{name}: there are files of a job, such as {store.uri}/{file.key}, and no table: "
                f"{lost}. Restore it, or remove these files to fill a new table from the start of "
                "the log"
            )


def check_offsets(sink: Sink, view: TableView) -> None:
    """Check that the table's offsets cover all its rows, by the names of its files.

    Raises:
        ForeignTableError: They do not: the job would add these rows a second time.
    """
    progress = view.progress
    if progress is None:
        return
    topic_id_start = progress.topic_id.hex[:8]
    for key in sink.keys(view):
        if key.rpartition("/")[2].startswith(REPLAYED):
            continue
        named: NamedRange | NamedBucket | None = range_of(key) or bucket_of(key)
        if named is None or named.topic_id_start != topic_id_start:
            continue
        if isinstance(named, NamedBucket):
            if named.batch > progress.batch:
                has = f"rows of batch {named.batch}"
                raise _beyond(sink.name, has, f"batch {progress.batch} is the last")
        elif named.end > progress.offsets.get(named.partition, 0):
            reached = progress.offsets.get(named.partition, 0)
            has = f"offsets up to {named.end - 1} of {progress.topic}-{named.partition}"
            raise _beyond(sink.name, has, f"{reached} is the next of it")


def check_columns(name: str, view: TableView) -> None:
    """That every row can say where it was.

    Raises:
        ForeignTableError: Such a column was dropped or renamed.
    """
    there = set() if view.schema is None else set(view.schema.names)
    if lost := [column for column in COORDINATES.names if column not in there]:
        raise ForeignTableError(
            f"{name} lacks {', '.join(lost)}, which a job has written and every row needs: they "
            "were dropped or renamed. Take that back (rename it, or roll the table back)"
        )


def _beyond(name: str, has: str, says: str) -> ForeignTableError:
    return ForeignTableError(
        f"{name} has {has}, and by its own offsets {says}: it is a copy that lacks them, or a "
        "snapshot was cherry-picked into it. Going on would double rows. Take it back to a state "
        "that a job has committed, or name another table"
    )
