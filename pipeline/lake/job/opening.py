"""Opening of a job's tables: created where missing, refused where they belong to another job.

no table            made, empty, when the log has anything; its quarantine with it
ours                continues
of another topic    ForeignTableError
of the old, recreated topic
TopicReplacedError, or with `new_incarnation` continues with the new one
"""

from typing import NamedTuple

from pipeline.lake.batch.first_offsets import FirstOffsets
from pipeline.lake.batch.log_view import LogSource, TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError, TopicReplacedError
from pipeline.lake.job.quarantine_commit import BatchQuarantine
from pipeline.lake.keyed.table import KeyedTable
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.sinks.continuity import check_columns
from pipeline.lake.values.converter import Converter
from pipeline.lake.work.job_parts import Columns, JobSettings


class OpenTable(NamedTuple):
    """A table that a batch can be made for.

    Attributes:
        view, progress: Of the table, which is there.
        topic: The log, viewed after the table.
        spec: For the table's columns.
    """

    view: TableView
    progress: Progress
    topic: TopicView
    spec: ConverterSpec


class TableOpener:
    """Opens the tables of one job; see the module."""

    def __init__(
        self,
        settings: JobSettings,
        source: LogSource,
        sink: Sink,
        quarantine: BatchQuarantine,
        columns: Columns,
        first: FirstOffsets,
        keyed: KeyedTable | None,
    ) -> None:
        """Makes no request yet."""
        self._settings = settings
        self._source = source
        self._sink = sink
        self._quarantine = quarantine
        self._columns = columns
        self._first = first
        self._keyed = keyed
        self._reached = -1

    def view(self) -> tuple[TopicView, Progress | None]:
        """The log and what the table has of it; changes nothing.

        Raises:
            ForeignTableError: The table is of another topic.
            TopicReplacedError: They are of two incarnations, and `new_incarnation` is not set.
        """
        view = self._sink.view()
        topic = self._source.view()
        return topic, self._continued(view, topic)

    def _continued(self, view: TableView, topic: TopicView) -> Progress | None:
        known = view.progress
        if known is None:
            return None
        if known.topic != topic.topic:
            raise ForeignTableError(
                f"{self._sink.name} holds the topic {known.topic}, not {topic.topic}"
            )
        if known.topic_id != topic.topic_id:
            if not self._settings.new_incarnation:
                raise TopicReplacedError(topic.topic, known.topic_id, topic.topic_id)
            return None
        return known

    def open(self, evolved: ConverterSpec | None) -> OpenTable | None:
        """The table, made if it is missing; None where there is nothing to make it from yet.

        Args:
            evolved: Columns that were found before; None: those of the table, or of its settings.

        Raises:
            ForeignTableError, TopicReplacedError: See `view`.
            CommitConflictError: Another job created it at the same time: view again.
        """
        view = self._sink.view()
        topic = self._source.view()
        known = self._continued(view, topic)
        if known is None and all(p.start == p.end for p in topic.partitions.values()):
            # Where it ends now is what is the latest for a table that begins there.
            self._first.of(topic)
            return None
        spec = evolved or self._columns.spec(view.schema)
        if known is not None and known.batch:
            check_columns(self._sink.name, view)
        batch = -1 if known is None else known.batch
        if not 0 <= self._reached <= batch:
            # The first view, or the table was rolled back.
            self._sink.check(view)
        self._reached = batch
        if known is None:
            view = self._made(view, topic, spec)
        progress = view.progress
        assert progress is not None
        if progress.batch == 0 and self._settings.start != "earliest":
            # A table that does not begin at the log's start has that in a commit of its own.
            begun = progress.advanced(self._first.of(topic))
            if self._keyed is not None:
                begun = self._keyed.begun(begun, spec)
            self._sink.commit(view, Converter(spec).row_schema, (), begun)
            view = self._sink.view()
            assert view.progress is not None
            progress = view.progress
        self._check_mode(progress, spec)
        self._quarantine.open(
            self._settings.name, topic, progress, anew=self._settings.new_quarantine
        )
        return OpenTable(view, progress, topic, spec)

    def _check_mode(self, progress: Progress, spec: ConverterSpec) -> None:
        if self._keyed is not None:
            self._keyed.state(progress, spec)
        elif progress.keyed:
            raise ForeignTableError(
                f"{self._sink.name} has the last record of each key, the job says mode: append: "
                "set mode back, or name a new table in sink.table"
            )

    def _made(self, view: TableView, topic: TopicView, spec: ConverterSpec) -> TableView:
        is_anew = view.progress is not None
        if is_anew and self._keyed is not None:
            raise ForeignTableError(
                f"{self._sink.name} is kept by key and cannot continue with a topic that was "
                "recreated: name a new table in sink.table"
            )
        begun = Progress(self._settings.name, topic.topic, topic.topic_id, 0, {})
        self._sink.create(Converter(spec).row_schema, begun)
        made = self._sink.view()
        if made.progress is None or self._continued(made, topic) is None:
            raise CommitConflictError(f"{self._sink.name} was created by another writer")
        if is_anew:
            self._first.forget(topic)
        return made
