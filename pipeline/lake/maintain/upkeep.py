"""Upkeep of a job's table and its quarantine: `varve pipeline maintain`.

    table        compact ─> trim ─> remove what is left over ─> fold
    quarantine              trim ─> remove what is left over ─> fold

Files of the quarantine keep their names, by which jobs and replays find what is in them. Rows and
offsets of both stay what they are at every step; a process that is killed between two leaves
nothing but files that the next run removes.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.files.data_file import NamedRange, range_of
from pipeline.lake.job.quarantine import is_replayed
from pipeline.lake.maintain.compaction import Compacted, Compaction, Mapper
from pipeline.lake.maintain.groups import Group
from pipeline.lake.maintain.history import History, Times
from pipeline.lake.maintain.left_over import Ages, find_left_over, remove, unknown
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.stores.table_store import TableStore
from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

CLOCK: str = "_varve/clock"
"""A file whose time is the store's."""


class Kept(NamedTuple):
    """One table, and what knows its states."""

    sink: Sink
    history: History


class Maintained(NamedTuple):
    """Result of the maintenance of one table, or its preview.

    Attributes:
        table: Its name.
        groups: Of files to put together.
        compacted: What became of them; nothing in a dry run.
        states: That were ended.
        folded: Objects of the table's own metadata that went.
        expired, orphans, plans: Files that were removed; see `LeftOver`.
        removed_bytes: Of them.
        others: Names of files that no job may remove.
    """

    table: str
    groups: int
    compacted: Compacted
    states: int
    folded: int
    expired: int
    orphans: int
    plans: int
    removed_bytes: int
    others: tuple[str, ...]


class Upkeep:
    """Keeps a job's tables in shape; see the module."""

    def __init__(
        self,
        rows: Kept,
        quarantine: Kept | None,
        compaction: Callable[[Callable[[TableView], frozenset[str]]], Compaction] | None,
        ages: Ages,
        clock: Clock,
    ) -> None:
        """Makes no request yet.

        Args:
            rows: The job's table.
            quarantine: That of records that do not fit, if there is one.
            compaction: Makes what puts files together, from what says which stay; None: all stay.
            ages: What is old.
            clock: This machine's.
        """
        self._rows = rows
        self._quarantine = quarantine
        self._compaction = None if compaction is None else compaction(self._stay)
        self._ages = ages
        self._clock = clock

    def groups(self) -> list[Group]:
        """Of files to put together."""
        return [] if self._compaction is None else self._compaction.groups()

    def run(
        self, groups: Sequence[Group], runner: Mapper | None, *, dry_run: bool = False
    ) -> list[Maintained]:
        """Do it: both tables, one after the other.

        Args:
            groups: What `groups` gave.
            runner: Puts them together; None where there are none.
            dry_run: Change nothing.

        Raises:
            NothingRemovedError: Files are put together, and nothing was removed.
            LakeError: What stores and catalogs do not do.
        """
        compacted = Compacted()
        if groups and not dry_run and self._compaction is not None:
            assert runner is not None
            compacted = self._compaction.run(groups, runner)
        done = [self._tidy(self._rows, dry_run)._replace(groups=len(groups), compacted=compacted)]
        if self._quarantine is not None and self._quarantine.sink.view().progress is not None:
            done.append(self._tidy(self._quarantine, dry_run))
        return done

    def _tidy(self, table: Kept, dry_run: bool) -> Maintained:
        times = self._times(self._rows.sink.store, dry_run)
        progress = self._progress()
        with unknown(table.sink):
            states = table.history.trim(times, self._ages.keep_ms, dry_run=dry_run)
        found = find_left_over(
            table.sink, table.history, progress, self._rows.sink, times, self._ages
        )
        folded = 0
        if not dry_run:
            remove(table.sink, found.all)
            folded = table.history.fold(table.sink.view(), times, self._ages.keep_ms)
        return Maintained(
            table.sink.name,
            0,
            Compacted(),
            states,
            folded,
            len(found.expired),
            len(found.orphans),
            len(found.plans),
            sum(file.size for file in found.all),
            found.others,
        )

    def _progress(self) -> Progress:
        progress = self._rows.sink.view().progress
        if progress is None:
            raise ForeignTableError(f"{self._rows.sink.name} has nothing: run the job first")
        return progress

    def _times(self, store: TableStore, dry_run: bool) -> Times:
        """Both clocks; a dry run writes nothing, and takes this machine's for the store's."""
        machine_ms = self._clock.now_ms()
        if dry_run:
            return Times(machine_ms, machine_ms)
        store.put(CLOCK, b"")
        for file in store.list(CLOCK):
            return Times(file.modified_ms, machine_ms)
        raise CommitConflictError(f"{store.uri}/{CLOCK} was put and is not there")

    def _stay(self, view: TableView) -> frozenset[str]:
        """Files of replays that the quarantine may still be asked about, by their names.

        The quarantine is read after the table: a replay commits to the table first.
        """
        replayed = [key for key in self._rows.sink.keys(view) if is_replayed(key)]
        if not replayed or self._quarantine is None:
            return frozenset(replayed)
        sink = self._quarantine.sink
        held = [named for key in sink.keys(sink.view()) if (named := range_of(key)) is not None]
        return frozenset(key for key in replayed if _meets(range_of(key), held))


def _meets(named: NamedRange | None, held: Sequence[NamedRange]) -> bool:
    """Whether a file that has lost its name would be missed; without a range it is."""
    return named is None or any(
        named[:2] == other[:2] and named.start < other.end and other.start < named.end
        for other in held
    )
