"""The log of a job, by the data source's planner: the bucket, and a broker for what it lacks.

A task's ends are laid where pieces end, so that no task reads bytes of which it gives no row; a
plan that is repeated keeps its tasks, wherever pieces would end now.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.lake.batch.batch_plan import Span, TaskRange
from pipeline.lake.batch.log_view import PartitionView, TopicView
from pipeline.lake.settings.config import JobConfig
from pipeline.plan.piece import Piece
from pipeline.source.bucket_view import Views
from pipeline.source.data_loss import PlanLosses
from pipeline.source.options.options import Query, SourceOptions, parse_options
from pipeline.source.partition_view import OffsetSpan
from pipeline.source.partition_view import PartitionView as SourceView
from pipeline.source.planner import Planner
from storage.types.topic_partition import TopicPartition

PIECE_BYTES: Final = 32 * 1024 * 1024
"""Of the log, about: tasks are made of whole pieces."""

RECORD_BYTES: Final = 1024
"""Assumed size of a record where no segment gives one: on a broker, when the bucket is empty."""


class PlannedLog:
    """`LogSource` by a planner; see the module."""

    def __init__(self, options: SourceOptions, planner: Planner) -> None:
        """The caller closes the planner."""
        self._options = options
        self._planner = planner
        self._views: Views = {}

    def view(self) -> TopicView:
        """The topic as bucket and broker have it now."""
        self._views = self._planner.view()
        first = next(iter(self._views.values())).name
        return TopicView(
            first.topic,
            first.topic_id,
            {
                view.name.partition: _view(view)
                for view in self._views.values()
                # Without a broker, a partition that has no segment in the bucket is unknown: it
                # may be new, or all its segments may have expired.
                if view.log is not None or view.has_broker
            },
        )

    def aligned(self, tasks: Sequence[TaskRange]) -> Sequence[TaskRange]:
        """Each end inside of a range moved to where a piece ends, if one does."""
        cuts: dict[int, list[int]] = {}
        for piece in self._pieces(tasks):
            cuts.setdefault(piece.partition.partition, []).append(piece.end_offset)
        moved: list[TaskRange] = []
        for task in tasks:
            before = moved[-1] if moved else None
            start = task.start
            if before is not None and before.partition == task.partition:
                if before.end >= task.end:
                    continue
                start = max(start, before.end)
            end = _next(cuts.get(task.partition, ()), task.end, _limit(tasks, task))
            moved.append(TaskRange(task.partition, start, end))
        return moved

    def pieces(self, tasks: Sequence[TaskRange]) -> Sequence[tuple[Piece, ...]]:
        """The pieces to read for each range, of the log as it was at the last `view`.

        Raises:
            ReadError: Offsets are nowhere any more.
        """
        found: dict[int, list[Piece]] = {}
        for piece in self._pieces(tasks):
            found.setdefault(piece.partition.partition, []).append(piece)
        return [
            tuple(
                piece._replace(
                    start_offset=max(piece.start_offset, task.start),
                    end_offset=min(piece.end_offset, task.end),
                )
                for piece in found.get(task.partition, ())
                if piece.start_offset < task.end and piece.end_offset > task.start
            )
            for task in tasks
        ]

    def offset_for_time(self, partition: int, time_ms: int) -> int | None:
        """By the segments' times and their time indexes, or by the broker where one is given."""
        view = self._views[TopicPartition(next(iter(self._views)).topic, partition)]
        return self._planner.offset_for_time(view, time_ms)

    def _pieces(self, tasks: Sequence[TaskRange]) -> Sequence[Piece]:
        topic = next(iter(self._views)).topic
        spans: dict[TopicPartition, OffsetSpan] = {}
        for task in tasks:
            partition = TopicPartition(topic, task.partition)
            known = spans.get(partition, OffsetSpan(task.start, task.end))
            spans[partition] = OffsetSpan(min(known.start, task.start), max(known.end, task.end))
        losses = PlanLosses(fail=self._options.fail_on_data_loss)
        plan = self._planner.plan(self._views, spans, losses)
        losses.warn()
        return plan.pieces


def _limit(tasks: Sequence[TaskRange], task: TaskRange) -> int:
    """How far the end of a task may be moved: to the end of what is contiguous behind it."""
    end = task.end
    for other in tasks:
        if other.partition == task.partition and other.start == end:
            end = other.end
    return end


def _next(cuts: Sequence[int], offset: int, limit: int) -> int:
    """The first cut from `offset` on, at most `limit`."""
    return min((cut for cut in cuts if offset <= cut <= limit), default=offset)


def _view(view: SourceView) -> PartitionView:
    spans = []
    per_record = RECORD_BYTES
    newest_ms = -1
    reached = view.start
    if view.log is not None:
        bucket_end = min(view.end, view.handover)
        for laid in view.log.segments_of(view.start, bucket_end):
            metadata = laid.metadata
            count = metadata.end_offset + 1 - metadata.start_offset
            start, end = max(laid.start_offset, view.start), min(laid.end_offset, bucket_end)
            size = metadata.segment_size_bytes * (end - start) // count
            per_record = max(1, metadata.segment_size_bytes // count)
            if view.has_broker and reached < start:
                spans.append(Span(reached, start, (start - reached) * per_record))
            newest_ms = max(newest_ms, metadata.max_timestamp_ms)
            spans.append(Span(start, end, size, newest_ms))
            reached = end
    tail = max(reached, view.handover, view.start)
    if view.has_broker and view.log is not None and reached < view.handover:
        spans.append(Span(reached, min(view.handover, view.end), 0))
    if tail < view.end:
        spans.append(Span(tail, view.end, (view.end - tail) * per_record))
    return PartitionView(view.start, view.end, tuple(spans), newest_ms)


def source_options(config: JobConfig) -> SourceOptions:
    """The same as options of the data source.

    Raises:
        OptionsError: Every mistake that the settings' own check could not see.
    """
    return parse_options(option_texts(config), Query.BATCH)


def option_texts(config: JobConfig) -> Mapping[str, str]:
    """Names and texts; secrets included."""
    source = config.source
    store = source.store
    secret = store.secret_access_key
    columns = "key,value,topic,partition,offset,timestamp"
    texts = {
        "path": source.location,
        "subscribe": source.topic,
        "topicId": str(source.topic_id or ""),
        "kafka.bootstrap.servers": source.bootstrap,
        "isolationLevel": source.isolation,
        "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        "columns": f"{columns},headers" if source.headers else columns,
        "includeHeaders": str(source.headers).lower(),
        "keyPairs": ",".join(f"{name}={path}" for name, path in source.key_pairs.items()),
        "maxPartitionBytes": str(PIECE_BYTES),
        "tier": "" if source.location else "broker",
        "store.endpoint": store.endpoint,
        "store.region": store.region,
        "store.pathStyle": "true" if store.path_style else "",
        "store.credentialsFile": store.credentials_file,
        "store.profile": store.profile,
        "store.accessKeyId": store.access_key_id,
        "store.secretAccessKey": "" if secret is None else secret.get_secret_value(),
        **{f"kafka.{name.removeprefix('kafka.')}": text for name, text in source.kafka.items()},
    }
    return {name: text for name, text in texts.items() if text}
