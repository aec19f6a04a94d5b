"""What a bucket says of topics: which incarnation, which partitions, and the log of each.

    list ─> per topic the latest incarnation ─> per partition the manifests of its segments
    ─> the newest one's leader epochs and producer snapshot ─> `layout`, `tail`

Segments that Aiven's plugin wrote count like our own: nothing here needs what only ours have.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import TopicError
from pipeline.plan.in_parallel import PARTITIONS_AT_A_TIME, in_parallel
from pipeline.plan.layout import FoundSegment, lay_out, newest_first
from pipeline.plan.listing import (
    KEYS,
    Listed,
    ListedPartition,
    TopicSelection,
    list_partitions,
)
from pipeline.plan.manifests import ManifestFacts, read_manifest, read_manifests
from pipeline.plan.partition_log import DamagedObject, PartitionLog
from pipeline.plan.piece import PartitionName
from pipeline.plan.tail import stable_end
from storage.checkpoints import decode_epochs
from storage.errors import CorruptFileError
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.tier import SideFile

ALL_TOPICS: Final = TopicSelection()


class BucketTopic(NamedTuple):
    """One topic.

    Attributes:
        name, topic_id: Which incarnation.
        partition_count: As the latest manifest has it, at least one more than the greatest
            partition found. A partition of which nothing was copied yet is not in `partitions`.
        partitions: Logs by number, ascending.
        other_ids: Earlier incarnations that are in the bucket as well.
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


async def read_bucket_log(
    bucket: Bucket, selection: TopicSelection = ALL_TOPICS, topic_id: UUID | None = None
) -> dict[str, BucketTopic]:
    """The topics wanted, by name; one of which the bucket has nothing is not in it.

    Args:
        bucket: Where.
        selection: Which topics and partitions.
        topic_id: This incarnation; None: the latest of each.

    Raises:
        TopicError: No topic wanted has that id; names those there are.
        RemoteStorageError: The bucket cannot be read now.
    """
    listed = {
        topic: partitions
        for topic, partitions in (await list_partitions(bucket, selection.prefixes())).items()
        if selection.has_topic(topic[0])
    }
    chosen = await _incarnations(bucket, listed, topic_id)
    topics = {}
    for name, chosen_id in sorted(chosen.items()):
        partitions = listed[name, chosen_id]
        others = tuple(id_ for topic, id_ in listed if topic == name and id_ != chosen_id)
        topics[name] = await _read_topic(bucket, name, chosen_id, partitions, selection, others)
    return topics


async def _incarnations(bucket: Bucket, listed: Listed, topic_id: UUID | None) -> dict[str, UUID]:
    """Of each topic the one asked for, else the one that was copied to last."""
    if topic_id is not None:
        fitting = {name: id_ for name, id_ in listed if id_ == topic_id}
        if listed and not fitting:
            there = ", ".join(sorted(f"{name} {id_}" for name, id_ in listed))
            raise TopicError(f"no topic with id {topic_id} is in {bucket.store.name}: {there}")
        return fitting
    by_name: dict[str, list[UUID]] = {}
    for name, id_ in listed:
        by_name.setdefault(name, []).append(id_)
    chosen = {}
    for name, ids in by_name.items():
        last = ids[0]
        if len(ids) > 1:
            times = {id_: await _last_copied_ms(bucket, listed[name, id_]) for id_ in ids}
            last = max(ids, key=lambda id_: (times[id_], id_))
        chosen[name] = last
    return chosen


async def _last_copied_ms(bucket: Bucket, partitions: Mapping[int, ListedPartition]) -> int:
    """When an incarnation was copied to last, by the last segment of each partition."""
    times = [-1]
    for listed in partitions.values():
        for one in reversed(listed.segments):
            facts = await read_manifest(bucket, one)
            if isinstance(facts, ManifestFacts):
                times.append(facts.segment.created_ms)
                break
    return max(times)


async def _read_topic(
    bucket: Bucket,
    name: str,
    topic_id: UUID,
    listed: Mapping[int, ListedPartition],
    selection: TopicSelection,
    others: tuple[UUID, ...],
) -> BucketTopic:
    wanted = sorted(number for number in listed if selection.has_partition(name, number))

    async def read(number: int) -> tuple[PartitionLog, int]:
        partition = PartitionName(name, topic_id, number)
        return await read_partition(bucket, partition, listed[number])

    logs = await in_parallel(wanted, read, PARTITIONS_AT_A_TIME)
    counts = [max(listed) + 1, *(count for _, count in logs)]
    return BucketTopic(
        name,
        topic_id,
        max(counts),
        {number: log for number, (log, _) in zip(wanted, logs, strict=True)},
        others,
    )


async def read_partition(
    bucket: Bucket, partition: PartitionName, listed: ListedPartition
) -> tuple[PartitionLog, int]:
    """A partition's log from its listed segments, and how many partitions its topic had then.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    facts, damaged = await read_manifests(bucket, listed.segments)
    topics = {one.segment.whole.id: one.topic for one in facts}
    waiting = newest_first([one.segment for one in facts])
    while waiting:
        newest = waiting.pop(0)
        try:
            epochs, snapshot = await _history_of(bucket, newest)
            laid = lay_out(newest, waiting, epochs)
            stable = stable_end(snapshot, laid.log_start_offset, laid.end_offset)
        except ObjectNotFoundError:
            continue  # removed after it was listed
        except (CorruptRemoteDataError, CorruptFileError) as error:
            damaged.append(_damaged(newest, error))
            continue
        log = PartitionLog(
            partition,
            laid.log_start_offset,
            laid.end_offset,
            stable,
            laid.leader_epochs,
            laid.segments,
            laid.gaps,
            tuple(damaged),
            topics[newest.whole.id].cluster_id,
            newest.whole.id,
        )
        return log, max(one.partitions for one in topics.values())
    return PartitionLog(partition, 0, 0, 0, damaged=tuple(damaged)), 0


async def _history_of(bucket: Bucket, newest: FoundSegment) -> tuple[list[tuple[int, int]], bytes]:
    """Leader epochs of the log up to a segment's end, and the producer snapshot there."""
    keys = KEYS.segment_keys(newest.whole)
    opened = await bucket.reader.opened(newest.whole, keys)
    kinds = (SideFile.PRODUCER_SNAPSHOT, SideFile.LEADER_EPOCH)
    files = await bucket.reader.read_side_files(opened, keys, kinds)
    return decode_epochs(files[SideFile.LEADER_EPOCH], keys.indexes), files[
        SideFile.PRODUCER_SNAPSHOT
    ]


def _damaged(one: FoundSegment, error: CorruptRemoteDataError | CorruptFileError) -> DamagedObject:
    if isinstance(error, CorruptRemoteDataError):
        return DamagedObject(error.key, error.position, error.problem, one.whole.start_offset)
    return DamagedObject(
        KEYS.segment_keys(one.whole).indexes, -1, str(error), one.whole.start_offset
    )
