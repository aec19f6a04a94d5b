"""The partitions asked for, as a broker has them, and what of each the bucket gives instead.

Begin and end are the broker's: it knows what was deleted and what is committed. Below the handover
(`pipeline.plan.handover`) the bucket gives the rows; what it lacks, the broker is asked for.

    Metadata ─> the bucket's logs of these incarnations ─> OffsetForLeaderEpoch ─> ListOffsets

The bucket is read first: what is copied meanwhile must not be taken for another history.
"""

from collections.abc import Mapping, Sequence

from pipeline.plan.bucket import Bucket
from pipeline.plan.bucket_log import BucketTopic
from pipeline.plan.errors import TopicError
from pipeline.plan.handover import BrokerLog, EpochEnd, epoch_to_ask, hand_over
from pipeline.plan.listing import TopicSelection
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import PartitionName
from pipeline.read.broker.client import EARLIEST, LATEST, BrokerClient
from pipeline.read.broker.cluster import TopicFacts
from pipeline.source.bucket_topics import BucketTopics
from pipeline.source.bucket_view import check_topics, partitions_of
from pipeline.source.options.options import SourceOptions
from pipeline.source.options.topics import Assigned, SubscribedPattern
from pipeline.source.partition_view import PartitionView
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL, format_uuid


class BrokerView:
    """One view of a broker; see the module. Blocks its caller, but for the bucket's part."""

    def __init__(self, client: BrokerClient, options: SourceOptions) -> None:
        """Ask which topics there are.

        Raises:
            TopicError: One that is named is not there, or is another incarnation.
            BrokerError: The broker cannot be asked.
        """
        self._client = client
        self._options = options
        self._where = f"at {client.options.bootstrap_servers}"
        self._topics = self._read_topics()

    def _read_topics(self) -> Mapping[str, TopicFacts]:
        options = self._options
        if isinstance(options.topics, SubscribedPattern):
            found = self._client.topics()
            return {
                name: facts
                for name, facts in found.items()
                if not facts.is_internal and options.topics.matches(name)
            }
        topics = self._client.topics(options.topics.topics)
        check_topics(options.topics.topics, topics, self._where)
        for name, facts in topics.items():
            if options.topic_id not in (None, facts.topic_id) and facts.topic_id != NIL:
                raise TopicError(
                    f"topic {name} has the id {format_uuid(facts.topic_id)} {self._where}, which "
                    "is not topicId: it was deleted and recreated, and tier=bucket reads what is "
                    "left of the other"
                )
        return topics

    async def in_bucket(self, bucket: Bucket, seen: BucketTopics) -> Mapping[str, BucketTopic]:
        """The broker's topics in the bucket; some may be missing there.

        Raises:
            RemoteStorageError: The bucket cannot be read now.
        """
        found: dict[str, BucketTopic] = {}
        for name, facts in self._topics.items():
            topic_id = facts.topic_id if facts.topic_id != NIL else None
            try:
                found.update(await seen.view(bucket, self._selection(name), topic_id))
            except TopicError:
                continue  # the bucket has an earlier incarnation only
        return found

    def _selection(self, name: str) -> TopicSelection:
        topics = self._options.topics
        if not isinstance(topics, Assigned):
            return TopicSelection(names=(name,))
        numbers = frozenset(one.partition for one in topics.partitions if one.topic == name)
        return TopicSelection(partitions={name: numbers})

    def partitions(
        self, in_bucket: Mapping[str, BucketTopic]
    ) -> dict[TopicPartition, PartitionView]:
        """Begin, end and handover of each.

        Raises:
            TopicError: A partition that is assigned is not there.
            BrokerError: The broker cannot be asked.
        """
        counts = {name: len(facts.partitions) for name, facts in self._topics.items()}
        wanted = partitions_of(self._options.topics, counts, self._where)
        committed = self._options.read_committed
        logs = {
            partition: in_bucket[partition.topic].partitions.get(partition.partition)
            for partition in wanted
            if partition.topic in in_bucket
        }
        epochs = self._epoch_ends(logs)
        starts = self._client.list_offsets(dict.fromkeys(wanted, EARLIEST), read_committed=False)
        ends = self._client.list_offsets(dict.fromkeys(wanted, LATEST), read_committed=committed)
        views: dict[TopicPartition, PartitionView] = {}
        for partition in wanted:
            topic, number = partition
            start = starts[partition].offset
            broker = BrokerLog(
                PartitionName(topic, self._topics[topic].topic_id, number),
                start,
                max(start, ends[partition].offset),
                ends[partition].leader_epoch,
                epochs.get(partition),
            )
            views[partition] = _view(logs.get(partition), broker, read_committed=committed)
        return views

    def _epoch_ends(
        self, logs: Mapping[TopicPartition, PartitionLog | None]
    ) -> dict[TopicPartition, EpochEnd]:
        """Where the broker's log has the epochs that the bucket's parts end in, by one request."""
        committed = self._options.read_committed
        asked: dict[tuple[str, int], int] = {}
        for partition, log in logs.items():
            epoch = None if log is None else epoch_to_ask(log, read_committed=committed)
            if epoch is not None:
                asked[partition] = epoch
        ends = self._client.epoch_ends(asked) if asked else {}
        return {TopicPartition(*partition): EpochEnd(*end) for partition, end in ends.items()}


def _view(log: PartitionLog | None, broker: BrokerLog, *, read_committed: bool) -> PartitionView:
    handover = hand_over(log, broker, read_committed=read_committed)
    return PartitionView(
        broker.partition,
        handover.start_offset,
        handover.end_offset,
        None if handover.problem else log,
        handover.offset,
        True,
        handover.leader_epoch,
        handover.problem,
    )


def remade_topics(
    before: Mapping[TopicPartition, PartitionView], now: Mapping[TopicPartition, PartitionView]
) -> Sequence[str]:
    """Topics that were deleted and recreated between two views."""
    return sorted(
        {
            partition.topic
            for partition, view in now.items()
            if partition in before and before[partition].name.topic_id != view.name.topic_id
        }
    )
