"""Topics in a bucket: incarnations, partitions, and the log of each.

    folders ─> topics and their ids ─> per topic the incarnation asked for, else the latest
            ─> its partitions ─> `partition_read`

Segments that Aiven's plugin wrote count like our own: nothing here needs what only ours have.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import TopicError
from pipeline.plan.history import read_summary
from pipeline.plan.in_parallel import PARTITIONS_AT_A_TIME, TOPICS_AT_A_TIME, in_parallel
from pipeline.plan.listing import TopicSelection, find_partitions, find_topics, list_partition
from pipeline.plan.manifests import ManifestFacts, read_manifest
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.partition_read import follow_partition, read_partition
from pipeline.plan.piece import PartitionName
from tiered.metadata.history import HistoryState

ALL_TOPICS: Final = TopicSelection()


class BucketTopic(NamedTuple):
    """One topic.

    Attributes:
        name, topic_id: Which incarnation.
        partition_count: As last recorded, at least one more than the greatest partition found. A
            partition of which nothing was copied yet is not in `partitions`.
        partitions: Logs by number, ascending.
        other_ids: Other incarnations that are in the bucket as well.
    """

    name: str
    topic_id: UUID
    partition_count: int
    partitions: Mapping[int, PartitionLog]
    other_ids: tuple[UUID, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Sentences about what cannot be read."""
        return [problem for log in self.partitions.values() for problem in log.problems]

    @property
    def is_deleting(self) -> bool:
        """It is being deleted: what is left of it is no log."""
        return any(log.is_deleting for log in self.partitions.values())


async def read_bucket_log(
    bucket: Bucket,
    selection: TopicSelection = ALL_TOPICS,
    topic_id: UUID | None = None,
    *,
    use_history: bool = True,
) -> dict[str, BucketTopic]:
    """The topics wanted, by name; one of which the bucket has nothing is not in it.

    Args:
        bucket: Where.
        selection: Which topics and partitions.
        topic_id: This incarnation; None: the latest of each.
        use_history: See `read_partition`.

    Raises:
        TopicError: No topic wanted has that id; names those there are.
        RemoteStorageError: The bucket cannot be read now.
    """
    ids: dict[str, list[UUID]] = {}
    for name, id_ in await find_topics(bucket, selection):
        ids.setdefault(name, []).append(id_)
    if topic_id is not None:
        chosen = {name: topic_id for name, there in ids.items() if topic_id in there}
        if ids and not chosen:
            there = ", ".join(f"{name} {id_}" for name, some in sorted(ids.items()) for id_ in some)
            raise TopicError(f"no topic with id {topic_id} is in {bucket.store.name}: {there}")
    else:
        chosen = {name: await _latest(bucket, name, there) for name, there in ids.items()}

    async def read(name: str) -> BucketTopic | None:
        topic = await _read_topic(bucket, name, chosen[name], selection, use_history=use_history)
        if topic is None:
            return None
        others = tuple(id_ for id_ in ids[name] if id_ != topic.topic_id)
        return topic._replace(other_ids=others)

    topics = await in_parallel(sorted(chosen), read, TOPICS_AT_A_TIME)
    return {topic.name: topic for topic in topics if topic is not None}


async def follow_topic(
    bucket: Bucket, topic: BucketTopic, selection: TopicSelection = ALL_TOPICS
) -> BucketTopic:
    """A topic that was read before, as it is now, of the same incarnation; new partitions too.

    Costs a request, and one for each partition of which there is nothing new.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    numbers = await find_partitions(bucket, topic.name, topic.topic_id)
    # Partitions whose last object has gone are read again, so that this is reported.
    wanted = sorted(
        {*topic.partitions, *(n for n in numbers if selection.has_partition(topic.name, n))}
    )

    async def follow(number: int) -> PartitionLog:
        log = topic.partitions.get(number)
        if log is not None:
            return await follow_partition(bucket, log)
        return await read_partition(bucket, PartitionName(topic.name, topic.topic_id, number))

    logs = await in_parallel(wanted, follow, PARTITIONS_AT_A_TIME)
    followed = _topic(topic.name, topic.topic_id, numbers, wanted, logs)
    count = max(followed.partition_count, topic.partition_count)
    return followed._replace(partition_count=count, other_ids=topic.other_ids)


async def _read_topic(
    bucket: Bucket, name: str, topic_id: UUID, selection: TopicSelection, *, use_history: bool
) -> BucketTopic | None:
    """Read an incarnation of a topic; None: its last object went meanwhile."""
    numbers = await find_partitions(bucket, name, topic_id)
    wanted = [number for number in numbers if selection.has_partition(name, number)]

    async def read(number: int) -> PartitionLog:
        partition = PartitionName(name, topic_id, number)
        return await read_partition(bucket, partition, use_history=use_history)

    logs = await in_parallel(wanted, read, PARTITIONS_AT_A_TIME)
    if any(log.is_absent for log in logs):
        # The end of a deletion between listing and reading, or a copy that is not finished: the
        # first is gone from the bucket now, and must not be taken for a live topic without records.
        numbers = await find_partitions(bucket, name, topic_id)
        if not numbers:
            return None
        there = frozenset(numbers)
        logs = [log for log in logs if not log.is_absent or log.partition.partition in there]
        wanted = [log.partition.partition for log in logs]
    topic = _topic(name, topic_id, numbers, wanted, logs)
    if not logs and numbers:
        # None of those wanted is there; their number is still to be reported.
        counted = (await read(numbers[-1])).partition_count
        topic = topic._replace(partition_count=max(topic.partition_count, counted))
    return topic


def _topic(
    name: str,
    topic_id: UUID,
    numbers: Sequence[int],
    wanted: Sequence[int],
    logs: Sequence[PartitionLog],
) -> BucketTopic:
    counts = [*(number + 1 for number in numbers), *(log.partition_count for log in logs)]
    return BucketTopic(name, topic_id, max(counts, default=0), dict(zip(wanted, logs, strict=True)))


async def _latest(bucket: Bucket, name: str, ids: Sequence[UUID]) -> UUID:
    """Of several incarnations one that is not being deleted, and was written to last."""
    if len(ids) == 1:
        return ids[0]
    ranks = {id_: await _last_written(bucket, name, id_) for id_ in ids}
    return max(ids, key=lambda id_: (ranks[id_], id_))


async def _last_written(bucket: Bucket, name: str, topic_id: UUID) -> tuple[bool, int]:
    """Whether a topic is live, and when it was written to, by histories and last segments."""

    async def of_partition(number: int) -> tuple[bool, int]:
        partition = PartitionName(name, topic_id, number)
        summary, _ = await read_summary(bucket, partition)
        if summary is not None:
            return summary.state is HistoryState.LIVE, summary.written_ms
        listed = await list_partition(bucket, partition)
        for one in reversed(listed.segments):
            facts = await read_manifest(bucket, one)
            if isinstance(facts, ManifestFacts):
                return True, facts.segment.created_ms
        return True, -1

    numbers = await find_partitions(bucket, name, topic_id)
    found = await in_parallel(numbers, of_partition, PARTITIONS_AT_A_TIME)
    return all(is_live for is_live, _ in found), max((time for _, time in found), default=-1)
