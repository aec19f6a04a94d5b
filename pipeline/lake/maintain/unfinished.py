"""Uncommitted files that a job may still need: those of an unfinished batch.

A file of the table's topic is kept, however old it is,

- if it ends behind the table's offsets, or is a key bucket's of a later batch: that batch is
  planned, or was and may be in commits that were lost;
- if a stored plan names it that the table has not passed;
- if it is of a topic id of which the table has no rows.

Only what the table has passed is left over: of plans under other settings, of attempts that failed.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.lake.batch.batch_plan import FOLDER, BatchPlan, TaskRange, decode_plan
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import bucket_of, incarnation_of, range_of
from pipeline.lake.stores.table_store import StoredFile, TableStore


class StoredPlan(NamedTuple):
    """A plan that is there."""

    file: StoredFile
    plan: BatchPlan


def stored_plans(store: TableStore) -> list[StoredPlan]:
    """All of them.

    Raises:
        ForeignTableError: One cannot be read: what it protects is not known.
    """
    found = []
    for file in store.list(FOLDER):
        data = store.get(file.key)
        if data is None:
            # Its batch has just been committed.
            continue
        try:
            found.append(StoredPlan(file, decode_plan(data)))
        except ForeignTableError as error:
            raise ForeignTableError(f"{store.uri}/{file.key}: {error}") from error
    return found


class Unfinished:
    """Distinguishes left-over files from those of an unfinished batch; see the module."""

    def __init__(
        self, progress: Progress, keys: Iterable[str], plans: Sequence[StoredPlan]
    ) -> None:
        """As of one view.

        Args:
            progress: Of the table, from before its files were listed.
            keys: Of the table's files, those of its quarantine too.
            plans: That are stored.
        """
        self._progress = progress
        self._known = {progress.topic_id.hex[:8]} | {
            known for key in keys if (known := incarnation_of(key)) is not None
        }
        self._tasks = frozenset(
            (one.plan.base.topic_id.hex[:8], task)
            for one in plans
            if not self.has_passed(one.plan)
            for task in one.plan.tasks
        )

    def has_passed(self, plan: BatchPlan) -> bool:
        """Whether the plan's batch cannot be committed any more."""
        if plan.base.topic_id != self._progress.topic_id:
            return plan.base.topic_id.hex[:8] in self._known
        return plan.base.batch < self._progress.batch

    def is_left_over(self, key: str) -> bool:
        """Whether a data file that no commit has is not needed."""
        topic_id_start = incarnation_of(key)
        if topic_id_start is None or topic_id_start not in self._known:
            return False
        is_current = topic_id_start == self._progress.topic_id.hex[:8]
        bucket = bucket_of(key)
        if bucket is not None:
            return not is_current or bucket.batch <= self._progress.batch
        named = range_of(key)
        if named is None:
            return True
        if (topic_id_start, TaskRange(named.partition, named.start, named.end)) in self._tasks:
            return False
        return not is_current or named.end <= self._progress.offsets.get(named.partition, 0)
