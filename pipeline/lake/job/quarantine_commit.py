"""Commit of a batch's quarantined records, made before the rows, with offsets of its own.

Killed between the two, the next attempt finds there which records are quarantined already, and its
tasks leave those out, whatever the settings say by now.
"""

from collections.abc import Mapping

from pipeline.lake.batch.batch_plan import BatchPlan, TaskRange
from pipeline.lake.batch.log_view import TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.schemas.columns import QUARANTINE_SCHEMA
from pipeline.lake.sinks.base import Sink, TableView, offsets_of


class PutAside:
    """The records of one batch in the quarantine, at one view.

    Attributes:
        skipped: Per task, ascending offsets that an earlier attempt has quarantined.
        batch: Number of the quarantine's last batch; None: there is no quarantine.
    """

    def __init__(
        self,
        sink: Sink | None,
        view: TableView | None,
        skipped: Mapping[TaskRange, tuple[int, ...]],
    ) -> None:
        self.skipped = skipped
        self._sink = sink
        self._view = view
        progress = None if view is None else view.progress
        self.batch = None if progress is None else progress.batch

    def commit(self, plan: BatchPlan, files: tuple[DataFile, ...]) -> None:
        """Files of the batch, with its offsets; nothing where there are none.

        Raises:
            CommitConflictError: Another job has quarantined records since.
        """
        if not files:
            return
        assert self._sink is not None
        assert self._view is not None
        assert self._view.progress is not None
        progress = self._view.progress.advanced(plan.ends())
        self._sink.commit(self._view, QUARANTINE_SCHEMA, files, progress)
        self.batch = progress.batch


class BatchQuarantine:
    """The quarantine of one job, batch by batch; see the module."""

    def __init__(self, sink: Sink | None) -> None:
        """`sink`: None: there is none, and what does not fit ends the job."""
        self._sink = sink

    @property
    def folder(self) -> str:
        """In front of the keys of its files."""
        return "" if self._sink is None else self._sink.folder

    def open(self, job: str, topic: TopicView, table: Progress, *, anew: bool) -> None:
        """Created with the table, so that it always exists and tasks know where it is.

        Args:
            job: Its name.
            topic: Of the table.
            table: Progress of the table that it is beside.
            anew: Continue although it has lost what it had.

        Raises:
            ForeignTableError: It has less than it had when the table was committed.
        """
        if self._sink is None:
            return
        known = self._sink.view().progress
        has = known.batch if known is not None and known.topic_id == topic.topic_id else 0
        if has < table.quarantine and not anew:
            raise ForeignTableError(
                f"{self._sink.name} has batch {has} as its last, and had {table.quarantine} when "
                "the table was committed: it was dropped or rolled back, and quarantined records "
                "are missing from it. Restore it; with --new-quarantine the job continues without "
                "them, and `reconcile` shows which they are"
            )
        if known is None or known.topic_id != topic.topic_id:
            begun = Progress(job, topic.topic, topic.topic_id, 0, {})
            self._sink.create(QUARANTINE_SCHEMA, begun)

    def view(self, plan: BatchPlan) -> PutAside:
        """Records of a batch in the quarantine, from an earlier attempt.

        Raises:
            CommitConflictError: Another job is creating it.
        """
        if self._sink is None:
            return PutAside(None, None, {})
        view = self._sink.view()
        known = view.progress
        if known is None or known.topic_id != plan.base.topic_id:
            raise CommitConflictError(f"{self._sink.name} is being created by another writer")
        skipped = {
            task: offsets_of(self._sink, view, known.topic_id, task.partition, task.start, task.end)
            for task in plan.tasks
            if known.offsets.get(task.partition, 0) > task.start
        }
        return PutAside(self._sink, view, skipped)
