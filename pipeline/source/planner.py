"""Planner of a read, on the driver: views, offsets, and the pieces that tasks read.

    with Planner(options) as planner:
        views = planner.view()                    what bucket and broker have, now
        spans = planner.batch_spans(views)        which offsets of it the options ask for
        plan = planner.plan(views, spans)         pieces for executors, and what is lost

No Spark session is needed: the data source's readers stand on this, and so do jobs.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pipeline.plan.bucket import Bucket, BucketOptions, open_bucket
from pipeline.plan.bucket_log import BucketTopic
from pipeline.plan.errors import PlanError
from pipeline.plan.piece import Piece
from pipeline.plan.time_offsets import offset_for_time
from pipeline.read.broker.client import NO_OFFSET, BrokerClient
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.bytes.store_thread import StoreThread
from pipeline.source.broker_view import BrokerView
from pipeline.source.bucket_topics import BucketTopics
from pipeline.source.bucket_view import Views, view_bucket
from pipeline.source.data_loss import PlanLosses
from pipeline.source.executor import broker_options
from pipeline.source.opening import check_openable
from pipeline.source.options.options import SourceOptions
from pipeline.source.partition_view import OffsetSpan, PartitionView
from pipeline.source.source_plan import plan_spans
from pipeline.source.spans import (
    ending_offsets,
    spans_between,
    starting_offsets,
    within_view,
)
from storage.types.topic_partition import TopicPartition
from tiered.errors import ObjectNotFoundError

T = TypeVar("T")

BucketOpener = Callable[[BucketOptions], Coroutine[Any, Any, Bucket]]
"""Opens a bucket on the loop that will use it."""


class SourcePlan(NamedTuple):
    """Pieces of a read, and the losses that were found.

    Attributes:
        pieces: By partition and offset.
        losses: Sentences about what is left out (`failOnDataLoss=false`).
    """

    pieces: Sequence[Piece]
    losses: PlanLosses


class Planner:
    """See the module. Synchronous; one thread of its own talks to bucket and broker."""

    def __init__(
        self,
        options: SourceOptions,
        opener: BucketOpener = open_bucket,
        connect: Callable[[BrokerOptions], BrokerClient] = BrokerClient,
    ) -> None:
        """Open nothing yet."""
        self._options = options
        self._opener = opener
        self._connect = connect
        self._client: BrokerClient | None = None
        self._seen = BucketTopics()
        self._thread = StoreThread()
        self._bucket: Bucket | None = None

    def __enter__(self) -> "Planner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back connections and the thread."""
        try:
            if self._client is not None:
                self._client.close()
            if self._bucket is not None:
                self._run(self._bucket.close())
        finally:
            self._thread.close()

    def view(self) -> Views:
        """Views of the requested partitions, as of now.

        Raises:
            PlanError: A topic is not there, the bucket's options are wrong, a key cannot be used.
            RemoteStorageError: The bucket cannot be read.
            BrokerError: The broker cannot be asked.
        """
        options = self._options
        broker = broker_options(options)
        if broker is None:
            return self._run(self._read_views())
        if self._client is None:
            self._client = self._connect(broker)
        view = BrokerView(self._client, options)
        in_bucket: Mapping[str, BucketTopic] = {}
        if options.bucket is not None:
            in_bucket = self._run(self._topics_of(view))
        return view.partitions(in_bucket)

    def starting(self, views: Views) -> dict[TopicPartition, int]:
        """Starting offsets by the options."""
        return self._run(
            starting_offsets(
                views,
                self._options.starting,
                self._start_for_time,
                latest_if_no_match=self._options.latest_if_no_match,
            )
        )

    def batch_spans(
        self, views: Views, losses: PlanLosses | None = None
    ) -> dict[TopicPartition, OffsetSpan]:
        """Offsets that a batch query reads.

        Raises:
            PlanError: The options do not name every partition, or a partition's start is after its
                end, or nothing is of the time to begin at.
            LostOffsetsError: A start is beyond the log's end, and losses are errors.
        """
        starting = within_view(views, self._options.starting, self.starting(views))
        ending = self._run(ending_offsets(views, self._options.ending, self._offset_for_time))
        return spans_between(views, starting, ending, losses or self._losses())

    def offset_for_time(self, view: PartitionView, time_ms: int) -> int | None:
        """The first offset whose record is of a time or later; None: no record is.

        That of a gap before it where the record may have been there.
        """
        return self._run(self._start_for_time(view, time_ms))

    def since(
        self, views: Views, spans: Mapping[TopicPartition, OffsetSpan], time_ms: int
    ) -> dict[TopicPartition, OffsetSpan]:
        """Spans without the offsets before the first record of a time or later."""
        return self._run(self._since(views, spans, time_ms))

    def plan(
        self,
        views: Views,
        spans: Mapping[TopicPartition, OffsetSpan],
        losses: PlanLosses | None = None,
    ) -> SourcePlan:
        """Pieces of spans.

        A segment that was removed since the view makes it view again, once: another copy may have
        its offsets, or the log begins later now.

        Raises:
            LostOffsetsError: Offsets are nowhere, and losses are errors.
            ReadError: An object that may hold offsets cannot be read, and losses are errors.
            PlanError: There would be too many pieces.
            RemoteStorageError: The bucket cannot be read, or a key pair is missing; names the pair.
        """
        try:
            return self._plan(views, spans, losses)
        except ObjectNotFoundError:
            return self._plan(self.view(), spans, losses)

    def _plan(
        self,
        views: Views,
        spans: Mapping[TopicPartition, OffsetSpan],
        losses: PlanLosses | None,
    ) -> SourcePlan:
        report = losses or self._losses()
        pieces = self._run(plan_spans(self._bucket, self._options, views, spans, report))
        if self._bucket is not None:
            self._run(check_openable(self._bucket, pieces))
        return SourcePlan(pieces, report)

    def _losses(self) -> PlanLosses:
        return PlanLosses(fail=self._options.fail_on_data_loss)

    async def _since(
        self, views: Views, spans: Mapping[TopicPartition, OffsetSpan], time_ms: int
    ) -> dict[TopicPartition, OffsetSpan]:
        result: dict[TopicPartition, OffsetSpan] = {}
        for partition, span in spans.items():
            first = None
            if span.start < span.end:
                first = await self._start_for_time(views[partition], time_ms)
            start = span.end if first is None else min(max(span.start, first), span.end)
            result[partition] = OffsetSpan(start, span.end)
        return result

    async def _read_views(self) -> Views:
        bucket = await self._opened()
        return await view_bucket(bucket, self._options, self._seen)

    async def _topics_of(self, view: BrokerView) -> Mapping[str, BucketTopic]:
        return await view.in_bucket(await self._opened(), self._seen)

    async def _opened(self) -> Bucket:
        if self._bucket is None:
            if self._options.bucket is None:
                raise PlanError("no bucket is given")
            self._bucket = await self._opener(self._options.bucket)
        return self._bucket

    async def _offset_for_time(self, view: PartitionView, time_ms: int) -> int | None:
        if view.has_broker:
            return self._offset_at_broker(view, time_ms)
        if view.log is None:
            return None
        bucket = await self._opened()
        return await offset_for_time(
            bucket, view.log, time_ms, read_committed=self._options.read_committed
        )

    async def _start_for_time(self, view: PartitionView, time_ms: int) -> int | None:
        """Where to begin for a time.

        Where the first record that is found is the first behind a gap, there may be earlier ones in
        the gap: it is begun there, so that what is lost is reported.
        """
        found = await self._offset_for_time(view, time_ms)
        if found is None or view.has_broker or view.log is None:
            return found
        return next((gap.start for gap in view.log.gaps if gap.end == found), found)

    def _offset_at_broker(self, view: PartitionView, time_ms: int) -> int | None:
        """The broker searches tiered segments as well; nothing is fetched for it."""
        assert self._client is not None
        partition = TopicPartition(view.name.topic, view.name.partition)
        found = self._client.list_offsets(
            {partition: time_ms}, read_committed=self._options.read_committed
        )[partition]
        return None if found.offset == NO_OFFSET else found.offset

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(call)
