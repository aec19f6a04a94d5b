"""Contents of a bucket that can be restored, from its manifests alone.

    list all objects ─> manifests of the topics wanted ─> read each, compare with what is listed
    ─> their histories (`tiered.metadata.history`): where logs start, which topics were being
    deleted
    ─> per partition: the newest decides, its leader epochs and producer snapshot are read
    ─> `tiered.restore.restore_plan` chooses
    ─> partitions of which only a history is left (all has expired, or was deleted) go on where they
    ended: their offsets are not given out again

Nothing is written here, neither in the bucket nor anywhere else. A manifest of which one bit has
flipped is repaired (`tiered.format.manifest_repair`); the restore writes it back. What cannot be
read is reported as a problem, and the rest goes on without it: what is left out stays in the
bucket.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from storage.checkpoints.checkpoint_files import decode_epochs
from storage.errors import CorruptFileError
from storage.producers.snapshot import decode_snapshot, encode_rows
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.manifest import SegmentManifest
from tiered.format.manifest_repair import repair_manifest
from tiered.format.object_keys import ObjectKeys, ObjectSuffix
from tiered.metadata.history import HistoryState, HistorySummary
from tiered.metadata.history_reader import histories_among, read_histories
from tiered.restore.restore_plan import (
    LeftOut,
    PartitionPlan,
    newest_first,
    plan_empty,
    plan_partition,
)
from tiered.segment_metadata import TopicIdPartition
from tiered.tier import SideFile, Tier, TopicFacts

READS_AT_A_TIME: Final = 16
"""Manifests that are read together."""

_KEYS: Final = ObjectKeys()


@dataclass(slots=True)
class RestoredPartition:
    """A partition and what its local log begins with.

    Attributes:
        plan: Its segments.
        producer_snapshot: As of their end; without producers where none can be read.
        history_epoch: The latest leader epoch that its history knows of; -1: none.
    """

    plan: PartitionPlan[SegmentManifest]
    producer_snapshot: bytes
    history_epoch: int = -1


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


async def read_manifests(
    tier: Tier,
    problems: list[str],
    topics: Collection[str] | None = None,
    repaired: dict[str, bytes] | None = None,
    objects: dict[str, int] | None = None,
) -> list[SegmentManifest]:
    """Manifests of whole segments, in the order of their names.

    Args:
        tier: Reads the bucket.
        problems: Gets those that are damaged, and segments that are not whole.
        topics: Only these; None: all.
        repaired: Gets those that could be repaired, by name; None: they are problems.
        objects: Gets the size of every object that was listed, by name.

    Raises:
        RemoteStorageError: The bucket cannot be listed, or an object not be read now.
    """
    sizes: dict[str, int] = {}
    names: list[str] = []
    async for key, size in _listing(tier, topics):
        if objects is not None:
            objects[key] = size
        parsed = _KEYS.parse(key)
        if parsed is None or (
            topics is not None and parsed.segment_id.partition.topic not in topics
        ):
            continue
        if parsed.suffix is ObjectSuffix.MANIFEST:
            names.append(key)
        else:
            sizes[key] = size
    found: list[SegmentManifest] = []
    for start in range(0, len(names), READS_AT_A_TIME):
        part = names[start : start + READS_AT_A_TIME]
        read = await asyncio.gather(
            *(_read_manifest(tier, key, problems, repaired) for key in part)
        )
        found += [one for one in read if one is not None and _is_whole(one, sizes, problems)]
    return found


async def _listing(tier: Tier, topics: Collection[str] | None) -> AsyncIterator[tuple[str, int]]:
    prefixes = [""] if topics is None else sorted(f"{topic}-" for topic in topics)
    for prefix in prefixes:
        continuation: str | None = None
        while True:
            page = await tier.list_objects(prefix, continuation)
            for one in page.objects:
                yield one.key, one.size
            continuation = page.continuation
            if continuation is None:
                break


async def _read_manifest(
    tier: Tier, key: str, problems: list[str], repaired: dict[str, bytes] | None
) -> SegmentManifest | None:
    try:
        data = await tier.get_object(key)
    except ObjectNotFoundError:
        return None  # deleted meanwhile
    try:
        return SegmentManifest.from_json(data, key)
    except CorruptRemoteDataError as error:
        mended = None if repaired is None else repair_manifest(data, key)
        if mended is None or repaired is None:
            problems.append(f"{error.key}: {error.problem}")
            return None
        manifest, repaired[key] = mended
        return manifest


def _is_whole(one: SegmentManifest, sizes: dict[str, int], problems: list[str]) -> bool:
    keys = _KEYS.segment_keys(one.metadata)
    for key, size in ((keys.log, one.log_size), (keys.indexes, one.indexes_size)):
        listed = sizes.get(key)
        if listed != size:
            there = "is missing" if listed is None else f"has {listed} bytes"
            problems.append(f"{key} {there}, its manifest says {size}")
            return False
    return True


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
        restored = await _partition(
            tier,
            partition,
            segments,
            histories.get(partition),
            content.problems,
            allow_gaps=allow_gaps,
        )
        if restored is not None:
            content.topics[partition.topic].partitions[partition.partition] = restored
            content.notes += await _unsettled(tier, restored.plan)
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


async def _partition(
    tier: Tier,
    partition: TopicIdPartition,
    segments: list[SegmentManifest],
    history: HistorySummary | None,
    problems: list[str],
    *,
    allow_gaps: bool,
) -> RestoredPartition | None:
    unusable: list[LeftOut] = []
    decided = await _decide(tier, segments, history, problems, unusable, allow_gaps=allow_gaps)
    if decided is not None:
        plan, snapshot = decided
        plan = plan._replace(left_out=(*plan.left_out, *unusable))
        problems += _missing(plan)
        if history is not None:
            problems += _lost_end(history, plan.leader_epochs, plan.end_offset)
        return RestoredPartition(plan, snapshot, -1 if history is None else history.leader_epoch)
    if history is None:
        return None
    problems += _lost_end(history, (), history.log_start_offset)
    empty: PartitionPlan[SegmentManifest] = plan_empty(
        partition, history.leader_epochs, history.end_offset, unusable
    )
    return RestoredPartition(empty, encode_rows((), 0), history.leader_epoch)


async def _decide(
    tier: Tier,
    segments: Iterable[SegmentManifest],
    history: HistorySummary | None,
    problems: list[str],
    unusable: list[LeftOut],
    *,
    allow_gaps: bool,
) -> tuple[PartitionPlan[SegmentManifest], bytes] | None:
    """The plan by the newest segment that can be read, and its producer snapshot."""
    waiting = newest_first(segments)
    while waiting:
        newest = waiting.pop(0)
        try:
            data = await tier.fetch_side_file(newest.metadata, SideFile.LEADER_EPOCH)
            epochs = decode_epochs(data, "leader epochs")
            snapshot = await tier.fetch_side_file(newest.metadata, SideFile.PRODUCER_SNAPSHOT)
        except (CorruptRemoteDataError, CorruptFileError, ObjectNotFoundError) as error:
            problems.append(f"{newest.metadata.partition}: {error}")
            unusable.append(LeftOut(newest.metadata, "its side files cannot be read"))
            continue
        plan = plan_partition(
            newest,
            waiting,
            epochs,
            allow_gaps=allow_gaps,
            log_start_offset=0 if history is None else history.log_start_offset,
            copied_from=_copied_from(history),
            empty_from=lambda one: one.empty_from,
        )
        return plan, snapshot
    return None


def _missing(plan: PartitionPlan[SegmentManifest]) -> list[str]:
    return [
        f"{plan.partition}: offsets {gap.start} to {gap.end - 1} are missing" for gap in plan.gaps
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
        decided = await _decide(tier, its, history, [], [], allow_gaps=True)
        if decided is not None:
            found += _missing(decided[0])
    return found


async def _unsettled(tier: Tier, plan: PartitionPlan[SegmentManifest]) -> list[str]:
    """Sentences about records before a gap whose transactions may have been aborted in it.

    Whether they were is told by the transaction index of the segment that has the marker, and
    nothing else; so brokers give them to read_committed consumers.
    """
    sentences = []
    for gap in plan.gaps:
        before = [one for one in plan.segments if one.metadata.end_offset < gap.start]
        if not before:
            continue
        try:
            data = await tier.fetch_side_file(before[-1].metadata, SideFile.PRODUCER_SNAPSHOT)
            producers = decode_snapshot(data, "of the segment before a gap")
        except (CorruptRemoteDataError, CorruptFileError, ObjectNotFoundError):
            first = before[-1].metadata.start_offset
        else:
            open_at = [one.txn_first_offset for one in producers if one.txn_first_offset >= 0]
            if not open_at:
                continue
            first = max(min(open_at), plan.log_start_offset)
        sentences.append(
            f"{plan.partition}: transactions that were open before offset {gap.start}, from offset "
            f"{first} on, may have been aborted in what is missing: read_committed consumers get "
            "their records"
        )
    return sentences


def _copied_from(history: HistorySummary | None) -> int | None:
    """Where the copies begin that a history names; None where it names none.

    One that names none may be older than the first copies behind its end, and these may have
    expired since: only what a history names goes after it was written anew.
    """
    if history is None or history.log_start_offset >= history.end_offset:
        return None
    return history.log_start_offset


def _lost_end(
    history: HistorySummary, leader_epochs: Sequence[tuple[int, int]], end_offset: int
) -> list[str]:
    """A sentence where a history has more of a log than there is: its end is never removed.

    A later leader may have overwritten that end, and the history may be from before that: then
    there are leader epochs which it does not know.
    """
    known = max((epoch for epoch, _ in history.leader_epochs), default=-1)
    if history.end_offset <= end_offset or any(epoch > known for epoch, _ in leader_epochs):
        return []
    return [f"{history.partition}: offsets {end_offset} to {history.end_offset - 1} are missing"]
