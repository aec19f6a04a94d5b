"""A streaming query: offsets are those of Spark's Kafka source, so a checkpoint can move both ways.

Beside them a checkpoint has the topics' ids: a topic that was deleted and recreated while no query
ran has other records at its offsets.

    initialOffset ─> latestOffset ─> partitions ─> (executors: read) ─> latestOffset ─> ...
                       ^ limits        ^ plans what the write-ahead log has, also after a restart

Nothing rests on `commit`: Spark does not call it for the last batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from typing_extensions import override

from pipeline.plan.errors import TopicError
from pipeline.plan.piece import Piece
from pipeline.source.admission import is_delayed, limited_by_bytes, limited_by_offsets
from pipeline.source.broker_view import remade_topics
from pipeline.source.bucket_view import Views
from pipeline.source.data_loss import PlanLosses, warn_of_options
from pipeline.source.executor import rows_of
from pipeline.source.options.offsets import (
    OffsetDict,
    offset_dict,
    offsets_of,
    topic_ids_of,
)
from pipeline.source.options.options import SourceOptions
from pipeline.source.partition_view import OffsetSpan
from pipeline.source.planner import Planner
from storage.environment.clock import Clock, SystemClock, sleep_ms
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL, format_uuid

if TYPE_CHECKING:
    import pyarrow as pa

Offsets = Mapping[TopicPartition, int]

END_ATTEMPTS: Final = 3
"""Further looks at logs that end below what the query has read, before that is believed."""

END_PAUSE_MS: Final = 1_000.0
"""Before each of them: a broker that was paused learns within it that it leads no more."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """See the module. Pickled to executors before the driver's side of it has been used."""

    def __init__(
        self,
        options: SourceOptions,
        new_planner: Callable[[SourceOptions], Planner] = Planner,
        new_clock: Callable[[], Clock] = SystemClock,
        sleep: Callable[[float], None] = sleep_ms,
    ) -> None:
        """Open nothing yet: executors get a copy."""
        self._options = options
        self._sleep = sleep
        self._new_planner = new_planner
        self._clock = new_clock()
        self._planner: Planner | None = None
        self._views: Views = {}
        self._target: dict[TopicPartition, int] | None = None
        self._triggered_ms: float | None = None

    # -- the driver's side ---------------------------------------------------------------------

    @override
    def initialOffset(self) -> dict[str, Any]:
        """Starting offsets of a query without a checkpoint."""
        views = self._read_views()
        return dict(offset_dict(self._driver().starting(views), _topic_ids(views)))

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit that the options name; `latestOffset` heeds all of them together."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        if limits.min_offsets is not None:
            return ReadMinRows(limits.min_offsets)
        return ReadAllAvailable()

    @override
    def latestOffset(self, start: OffsetDict, limit: ReadLimit) -> dict[str, Any]:
        """End offsets of the next micro-batch; its start if there is nothing, or too little."""
        begun = offsets_of(start)
        views = self._views_up_to(begun)
        _check_ids(start, views)
        losses = PlanLosses(fail=self._options.fail_on_data_loss)
        latest = self._latest(views, begun, losses)
        losses.warn()
        if isinstance(limit, ReadAllAvailable):
            return dict(offset_dict(latest, _topic_ids(views)))
        starts = {
            partition: begun.get(partition, views[partition].start)
            for partition in latest
            if partition in views
        }
        return dict(offset_dict(self._limited(views, starts, latest), _topic_ids(views)))

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The last offsets seen, for the lag in Spark's progress."""
        if not self._views:
            return None
        return dict(offset_dict({partition: view.end for partition, view in self._views.items()}))

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        """Go no further than what is there now."""
        self._target = {partition: view.end for partition, view in self._read_views().items()}

    @override
    def partitions(self, start: OffsetDict, end: OffsetDict) -> Sequence[InputPartition]:
        """One a piece of a micro-batch, planned now or before a restart."""
        begun, ended = offsets_of(start), offsets_of(end)
        if begun == ended:
            return []
        views = self._views
        if any(
            partition not in views or views[partition].end < offset
            for partition, offset in ended.items()
        ):
            views = self._views_up_to(ended)
        for offsets in (start, end):
            _check_ids(offsets, views)
        losses = PlanLosses(fail=self._options.fail_on_data_loss)
        spans = self._spans(views, begun, ended, losses)
        plan = self._driver().plan(views, spans, losses)
        losses.warn()
        return [InputPartition(piece) for piece in plan.pieces]

    @override
    def commit(self, end: OffsetDict) -> None:
        """Nothing is kept that could go now."""

    @override
    def stop(self) -> None:
        """Give back connections."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def _driver(self) -> Planner:
        if self._planner is None:
            warn_of_options(self._options.without_effect)
            self._planner = self._new_planner(self._options)
        return self._planner

    def _read_views(self) -> Views:
        views = self._driver().view()
        remade = remade_topics(self._views, views)
        if remade:
            raise TopicError(
                f"topic {', '.join(remade)} was deleted and recreated while the query ran: its "
                "offsets are those of other records; begin a query with a new checkpoint"
            )
        self._views = views
        return views

    def _views_up_to(self, offsets: Offsets) -> Views:
        """What there is now; looked at again where a broker's log ends below these offsets.

        A leader that was paused, and was replaced meanwhile, gives the end it knew. One that is
        believed either ends the query, or has it read rows again (`failOnDataLoss=false`).
        """
        views = self._read_views()
        for _ in range(END_ATTEMPTS):
            if not any(
                partition in views and views[partition].has_broker and views[partition].end < offset
                for partition, offset in offsets.items()
            ):
                break
            self._sleep(END_PAUSE_MS)
            views = self._read_views()
        return views

    def _latest(
        self, views: Views, begun: Offsets, losses: PlanLosses
    ) -> dict[TopicPartition, int]:
        """Ends of all partitions; what the query has read must still be below them."""
        latest = {partition: view.end for partition, view in views.items()}
        if self._target is not None:
            latest = {
                partition: min(offset, latest.get(partition, offset))
                for partition, offset in self._target.items()
            }
        gone = [partition for partition in begun if partition not in views]
        if gone:
            losses.unreadable(f"{', '.join(map(str, gone))}: deleted since the query read them")
        for partition, offset in begun.items():
            view = views.get(partition)
            if view is not None and view.end < offset:
                losses.lost(
                    view.name,
                    view.end,
                    offset,
                    f"the query has read up to offset {offset} and the log ends at {view.end}: "
                    "a node was restored, or the broker is not asked any more",
                )
        return latest

    def _limited(self, views: Views, start: Offsets, latest: Offsets) -> Offsets:
        limits = self._options.limits
        now_ms = self._clock.monotonic_ms()
        if limits.min_offsets is not None and self._target is None:
            waited = (
                limits.max_delay_ms if self._triggered_ms is None else now_ms - self._triggered_ms
            )
            if is_delayed(limits.min_offsets, start, latest, waited, limits.max_delay_ms):
                return start
            self._triggered_ms = now_ms
        ends = dict(latest)
        if limits.max_offsets is not None:
            ends = limited_by_offsets(limits.max_offsets, start, ends)
        if limits.max_bytes is not None:
            ends = limited_by_bytes(limits.max_bytes, views, start, ends)
        return ends

    def _spans(
        self, views: Views, begun: Offsets, ended: Offsets, losses: PlanLosses
    ) -> dict[TopicPartition, OffsetSpan]:
        gone = [partition for partition in begun if partition not in ended]
        gone += [partition for partition in ended if partition not in views]
        if gone:
            losses.unreadable(f"{', '.join(map(str, gone))}: deleted since the query read them")
        spans: dict[TopicPartition, OffsetSpan] = {}
        for partition, end in ended.items():
            view = views.get(partition)
            if view is None:
                continue
            start = begun.get(partition)
            if start is None:
                losses.lost(view.name, 0, min(view.start, end), "the partition is new to the query")
                start = min(view.start, end)
            if start > end:
                losses.lost(view.name, end, start, f"the log was seen to end at offset {end}")
                start = end
            spans[partition] = OffsetSpan(start, end)
        return spans

    # -- the executors' side -------------------------------------------------------------------

    @override
    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """A piece's rows."""
        piece: Piece | None = partition.value
        return rows_of(piece, self._options)


def _topic_ids(views: Views) -> dict[str, UUID]:
    """Ids of the topics, as far as they are known."""
    return {
        partition.topic: view.name.topic_id
        for partition, view in views.items()
        if view.name.topic_id != NIL
    }


def _check_ids(offsets: OffsetDict, views: Views) -> None:
    """Offsets of a checkpoint must be those of the topics that are viewed.

    Raises:
        TopicError: One was recreated.
    """
    now = _topic_ids(views)
    for topic, topic_id in topic_ids_of(offsets).items():
        if now.get(topic, topic_id) != topic_id:
            raise TopicError(
                f"topic {topic} was deleted and recreated since the query read it: the checkpoint "
                f"has offsets of the id {format_uuid(topic_id)}, and now it has the id "
                f"{format_uuid(now[topic])}; begin a query with a new checkpoint"
            )
