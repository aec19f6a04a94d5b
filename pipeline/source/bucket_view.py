"""The partitions asked for, as a bucket alone has them: `tier=bucket`, or no broker is given."""

from collections.abc import Iterable, Mapping, Sequence

from pipeline.plan.bucket import Bucket
from pipeline.plan.bucket_log import BucketTopic
from pipeline.plan.errors import TopicError
from pipeline.plan.listing import TopicSelection
from pipeline.plan.piece import PartitionName
from pipeline.source.bucket_topics import BucketTopics
from pipeline.source.data_loss import LOG
from pipeline.source.options.options import SourceOptions
from pipeline.source.options.topics import Assigned, Subscribed, SubscribedPattern, TopicChoice
from pipeline.source.partition_view import PartitionView
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid

Views = Mapping[TopicPartition, PartitionView]
"""By topic and partition, in their order."""


def selection_of(topics: TopicChoice) -> TopicSelection:
    """The same in the words of planning."""
    if isinstance(topics, Subscribed):
        return TopicSelection(names=tuple(topics.topics))
    if isinstance(topics, SubscribedPattern):
        return TopicSelection(pattern=topics.pattern)
    partitions: dict[str, set[int]] = {}
    for topic, partition in topics.partitions:
        partitions.setdefault(topic, set()).add(partition)
    return TopicSelection(
        partitions={topic: frozenset(numbers) for topic, numbers in partitions.items()}
    )


async def view_bucket(bucket: Bucket, options: SourceOptions, seen: BucketTopics) -> Views:
    """View the bucket.

    Raises:
        TopicError: A topic or partition that is named is not there, or is being deleted.
        RemoteStorageError: The bucket cannot be read now.
    """
    topics = await seen.view(bucket, selection_of(options.topics), options.topic_id)
    if isinstance(options.topics, SubscribedPattern):
        topics = {name: topic for name, topic in topics.items() if options.topics.matches(name)}
    else:
        check_topics(options.topics.topics, topics, f"in {bucket.store.name}")
    counts = {
        name: topic.partition_count
        for name, topic in topics.items()
        if not _is_left_out(topic, options)
    }
    wanted = partitions_of(options.topics, counts, f"in {bucket.store.name}")
    return {
        partition: _view(topics[partition.topic], partition, read_committed=options.read_committed)
        for partition in wanted
    }


def _is_left_out(topic: BucketTopic, options: SourceOptions) -> bool:
    """Whether a topic has no rows because it is being deleted.

    Raises:
        TopicError: So it is, and losses are errors.
    """
    if not topic.is_deleting:
        return False
    problem = (
        f"topic {topic.name} (id {format_uuid(topic.topic_id)}) is being deleted: what is left of "
        "it is no log"
    )
    if options.fail_on_data_loss:
        raise TopicError(problem)
    LOG.warning("%s; skipped (failOnDataLoss=false)", problem)
    return True


def check_topics(named: Iterable[str], there: Iterable[str], where: str) -> None:
    """A query that names a topic wants its rows: a missing topic is no empty one.

    Raises:
        TopicError: Some are not there.
    """
    known = set(there)
    absent = sorted(name for name in named if name not in known)
    if absent:
        noun = "is no topic" if len(absent) == 1 else "are no topics"
        raise TopicError(f"there {noun} {', '.join(absent)} {where}: deleted, or misspelt")


def partitions_of(
    topics: TopicChoice, counts: Mapping[str, int], where: str
) -> Sequence[TopicPartition]:
    """Partitions wanted of topics that are there and have a count, in order.

    Raises:
        TopicError: One that is assigned is beyond its topic's count.
    """
    if not isinstance(topics, Assigned):
        return [
            TopicPartition(name, number)
            for name, count in sorted(counts.items())
            for number in range(count)
        ]
    wanted = [one for one in topics.partitions if one.topic in counts]
    for topic, partition in wanted:
        if partition >= counts[topic]:
            raise TopicError(
                f"there is no {topic}-{partition} {where}: the topic has partitions "
                f"0 to {counts[topic] - 1}"
            )
    return sorted(wanted)


def _view(topic: BucketTopic, partition: TopicPartition, *, read_committed: bool) -> PartitionView:
    log = topic.partitions.get(partition.partition)
    name = PartitionName(topic.name, topic.topic_id, partition.partition)
    if log is None:
        return PartitionView(name, 0, 0)  # not copied yet
    end = log.end(read_committed=read_committed)
    return PartitionView(name, log.log_start_offset, end, log, end)
