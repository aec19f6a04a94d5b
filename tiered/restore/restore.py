"""Contents of a bucket that can be restored, from its manifests alone.

    manifests of the topics wanted (`tiered.restore.bucket_manifests`)
    ─> their histories (`tiered.metadata.history`): where logs start, which topics were being
    deleted
    ─> per partition (`tiered.restore.restored_partition`): the newest segment decides, its leader
    epochs and producer snapshot are read, `tiered.restore.restore_plan` chooses
    ─> partitions of which only a history is left (all has expired, or was deleted) go on where they
    ended: their offsets are not given out again

Nothing is written here, neither in the bucket nor anywhere else. A manifest of which one bit has
flipped is repaired (`tiered.format.manifest_repair`); the restore writes it back. What cannot be
read is reported as a problem, and the rest goes on without it: what is left out stays in the
bucket.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tiered.format.manifest import SegmentManifest
from tiered.metadata.history import HistoryState, HistorySummary
from tiered.metadata.history_reader import histories_among, read_histories
from tiered.restore.bucket_manifests import read_manifests
from tiered.restore.restored_partition import (
    RestoredPartition,
    decide,
    missing_in,
    restored_partition,
    unsettled_before_gaps,
)
from tiered.segment_metadata import TopicIdPartition
from tiered.tier import Tier, TopicFacts


@dataclass(slots=True)
class RestoredTopic:
    """One topic of the bucket.

    Attributes:
        name, topic_id: Which incarnation.
        facts: As the latest manifest has them.
        partitions: Those that have segments, or had.
    """

    name: str
    topic_id: UUID
    facts: TopicFacts
    partitions: dict[int, RestoredPartition] = field(default_factory=dict)


@dataclass(slots=True)
class BucketContent:
    """What can be restored from a bucket.

    Attributes:
        topics: By name.
        cluster_ids: Of all manifests read.
        problems: Sentences about what cannot be given back.
        notes: Sentences about what is given back, but otherwise than it was.
        repaired: Manifests that were damaged, by name: as they were before.
    """

    topics: dict[str, RestoredTopic] = field(default_factory=dict)
    cluster_ids: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repaired: dict[str, bytes] = field(default_factory=dict)


async def read_bucket(
    tier: Tier, *, topics: Collection[str] | None = None, allow_gaps: bool = False
) -> BucketContent:
    """See the module.

    Args:
        tier: Reads the bucket.
        topics: Only these; None: all.
        allow_gaps: See `plan_partition`.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    content = BucketContent()
    objects: dict[str, int] = {}
    manifests = await read_manifests(tier, content.problems, topics, content.repaired, objects)
    histories = await read_histories(tier, histories_among(objects, topics), content.problems)
    manifests = _without_deleted(manifests, histories.values(), content.notes)
    # Another program's manifests do not name a cluster.
    content.cluster_ids = {one.topic.cluster_id for one in manifests} - {""}
    for topic in _latest_incarnations(manifests, content.problems, content.notes):
        content.topics[topic.name] = topic
    by_partition: dict[TopicIdPartition, list[SegmentManifest]] = {
        partition: [] for partition in histories if _is_kept(content, partition)
    }
    for one in manifests:
        if _is_kept(content, one.metadata.partition):
            by_partition.setdefault(one.metadata.partition, []).append(one)
    for partition, segments in sorted(by_partition.items(), key=lambda item: item[0][1:]):
        restored = await restored_partition(
            tier,
            partition,
            segments,
            histories.get(partition),
            content.problems,
            allow_gaps=allow_gaps,
        )
        if restored is not None:
            content.topics[partition.topic].partitions[partition.partition] = restored
            content.notes += await unsettled_before_gaps(tier, restored.plan)
    content.notes += _without_segments(content, histories.values())
    for name in set(topics or ()) - content.topics.keys():
        content.problems.append(f"topic {name} is not in the bucket")
    return content


def _latest_incarnations(
    manifests: Iterable[SegmentManifest], problems: list[str], notes: list[str]
) -> list[RestoredTopic]:
    """Of topics that were deleted and made again, the one that was written to last."""
    latest: dict[tuple[str, UUID], SegmentManifest] = {}
    for one in manifests:
        partition = one.metadata.partition
        key = (partition.topic, partition.topic_id)
        if key not in latest or one.created_ms > latest[key].created_ms:
            latest[key] = one
    chosen: dict[str, SegmentManifest] = {}
    for (name, _), one in latest.items():
        other = chosen.get(name)
        if other is None:
            chosen[name] = one
            continue
        older, newer = sorted((one, other), key=lambda manifest: manifest.created_ms)
        chosen[name] = newer
        problems.append(
            f"topic {name} is in the bucket twice: {older.metadata.partition.topic_id} is left out"
        )
    # What is known of a topic's settings is in the latest manifest of ours.
    facts: dict[tuple[str, UUID], SegmentManifest] = {}
    for one in manifests:
        partition = one.metadata.partition
        key = (partition.topic, partition.topic_id)
        if one.has_sums and (key not in facts or one.created_ms > facts[key].created_ms):
            facts[key] = one
    topics = []
    for name, one in chosen.items():
        topic_id = one.metadata.partition.topic_id
        known = facts.get((name, topic_id))
        if known is None:
            notes.append(
                f"topic {name}: another program copied it, and its settings are not known: nothing "
                "of it expires (retention.ms=-1, retention.bytes=-1) until they are given"
            )
        topics.append(RestoredTopic(name, topic_id, (known or one).topic))
    return topics


def _without_deleted(
    manifests: list[SegmentManifest], histories: Iterable[HistorySummary], notes: list[str]
) -> list[SegmentManifest]:
    """Leave out topics that were being deleted."""
    deleting = {
        one.partition.topic_id: one.partition.topic
        for one in histories
        if one.state is HistoryState.DELETING
    }
    notes += [
        f"topic {topic} ({topic_id}) was being deleted: what is left of it is not restored"
        for topic_id, topic in deleting.items()
    ]
    return [one for one in manifests if one.metadata.partition.topic_id not in deleting]


def _is_kept(content: BucketContent, partition: TopicIdPartition) -> bool:
    """Whether it is of an incarnation that is restored."""
    topic = content.topics.get(partition.topic)
    return topic is not None and topic.topic_id == partition.topic_id


def _without_segments(content: BucketContent, histories: Iterable[HistorySummary]) -> list[str]:
    """Sentences about topics of which nothing but histories is left: no settings, either."""
    found = [*histories]
    deleting = {one.partition.topic_id for one in found if one.state is HistoryState.DELETING}
    names = {one.partition.topic for one in found if one.partition.topic_id not in deleting}
    return [
        f"topic {name} is not restored: the object store has no readable segment of it, and so not "
        "its settings"
        for name in sorted(names - content.topics.keys())
    ]


async def missing_offsets(
    tier: Tier,
    segments: Iterable[SegmentManifest],
    histories: Mapping[TopicIdPartition, HistorySummary],
) -> list[str]:
    """Sentences about offsets of partitions that none of their segments has.

    A segment ends where the next one of its log begins, so that only what the manifest behind a gap
    says to be empty has been without a record. What lies below the log start is not missing, nor
    is anything of a topic that is being deleted.

    Args:
        tier: Reads the bucket.
        segments: All of the partitions'.
        histories: Those there are, read after the segments were listed.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    by_partition: dict[TopicIdPartition, list[SegmentManifest]] = {}
    for one in _without_deleted([*segments], histories.values(), []):
        by_partition.setdefault(one.metadata.partition, []).append(one)
    found: list[str] = []
    for partition, its in sorted(by_partition.items(), key=lambda item: item[0][1:]):
        history = histories.get(partition)
        decided = await decide(tier, its, history, [], [], allow_gaps=True)
        if decided is not None:
            found += missing_in(decided[0])
    return found
