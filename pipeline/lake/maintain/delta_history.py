"""States of a Delta table: versions of its log, ended by retention.

    trim     the table's own retention is set as long as ours, so that a writer of a checkpoint
             keeps what says which files were removed (tombstones); then a checkpoint is written,
             and log files before it that are older go (deltalake's `cleanup_metadata`)
    expired  tombstones older than `keep_ms`, as deltalake's `vacuum` finds them

A view reads the last checkpoint and the log behind it, so a checkpoint keeps it short. Application
transactions, the job's offsets, are in every checkpoint.
"""

from typing import Any, Final

import pyarrow as pa

from pipeline.lake.maintain.history import Reach, Times
from pipeline.lake.sinks.base import TableView
from pipeline.lake.sinks.delta import DeltaSink
from pipeline.lake.sinks.library_errors import delta_refusals

HOUR_MS: Final = 3_600_000

SKEW_MAX_MS: Final = HOUR_MS
"""This machine ahead of the store by more: deltalake would take log files to be older."""

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"

TRIES: Final = 20
"""To commit beside jobs that commit, too."""


def _hours(duration_ms: int) -> int:
    return -(-duration_ms // HOUR_MS)


class DeltaHistory:
    """`History` of a Delta table; see the module."""

    def __init__(self, sink: DeltaSink) -> None:
        """Nothing is asked yet."""
        self._sink = sink

    def states(self) -> int:
        """Versions whose log files are there."""
        return sum(
            1
            for file in self._sink.store.list("_delta_log/")
            if file.key.removeprefix("_delta_log/").removesuffix(".json").isdecimal()
        )

    def trim(self, times: Times, keep_ms: int, *, dry_run: bool) -> int:
        """Retention, checkpoint, cleaning of the log."""
        if dry_run:
            return 0
        before = self.states()
        with delta_refusals(self._sink.name):
            self._keep(keep_ms)
            table: Any = self._sink.view().state
            table.create_checkpoint()
            if times.machine_ms - times.store_ms <= SKEW_MAX_MS:
                table.cleanup_metadata()
        return max(0, before - self.states())

    def _keep(self, keep_ms: int) -> None:
        """Write down how long files are kept.

        A job's commit comes between what was read and this one as often as it likes: then the
        table is read again.
        """
        from deltalake.exceptions import CommitFailedError

        wanted = f"interval {max(1, _hours(keep_ms))} hours"
        for tries_left in reversed(range(TRIES)):
            table: Any = self._sink.view().state
            known = table.metadata().configuration
            if known.get(FILES) == wanted and known.get(LOG) == wanted:
                return
            try:
                table.alter.set_table_properties(
                    {FILES: wanted, LOG: wanted},
                    raise_if_not_exists=False,
                    commit_properties=self._sink.commit_properties(),
                )
            except CommitFailedError:
                if not tries_left:
                    raise

    def reach(self, view: TableView, times: Times, keep_ms: int) -> Reach:
        """The version's files, and tombstones."""
        table: Any = view.state
        # Tombstones have the time of the machine that wrote them; ours may be ahead of it.
        ahead_ms = max(0, times.machine_ms - times.store_ms)
        with delta_refusals(self._sink.name):
            adds = frozenset(pa.table(table.get_add_actions()).column("path").to_pylist())
            removed = frozenset(self._removed(table, 0))
            expired = frozenset(self._removed(table, max(0, _hours(keep_ms + ahead_ms)))) - adds
        return Reach(adds | (removed - expired), expired)

    @staticmethod
    def _removed(table: Any, hours: int) -> list[str]:
        found: list[str] = table.vacuum(
            retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=False
        )
        return found

    def fold(self, view: TableView, times: Times, keep_ms: int) -> int:
        """Done by `trim`."""
        return 0

    def is_metadata(self, key: str) -> bool:
        """A commit that was begun on a file system and not renamed."""
        return key.startswith("_delta_log/_commit_")
