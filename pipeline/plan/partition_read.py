"""Reading what a bucket has of one partition: by its history object, by listing, or what is new.

    read_partition     history, and a listing of its end; else all is listed
    follow_partition   a log that is known, and what has come since: one request where nothing has

A new leader may copy segments that begin before the last one's start, so a listing of the end goes
back by some segments: as many as cost no second request.

Either way the newest segment decides, with the leader epochs and the producer snapshot that were
stored with it; what is known beside it is only believed as far as it fits (`history`).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pipeline.plan.bucket import Bucket
from pipeline.plan.empty_gaps import without_empty_gaps
from pipeline.plan.history import continues, read_history, read_summary, tiered_partition
from pipeline.plan.layout import (
    FoundSegment,
    Gap,
    LaidSegment,
    Layout,
    found,
    lay_out,
    newest_first,
)
from pipeline.plan.listing import KEYS, ListedPartition, list_partition
from pipeline.plan.manifests import ManifestFacts, read_manifests
from pipeline.plan.partition_log import DamagedObject, PartitionLog
from pipeline.plan.piece import PartitionName
from pipeline.plan.tail import stable_end
from storage.checkpoints.checkpoint_files import decode_epochs
from storage.errors import CorruptFileError
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.metadata.history import HistoryState, HistorySummary
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import SideFile, TopicFacts

LISTED_BACK: Final = 300
"""Segments at the end of a history that are listed with what follows: three objects each, and a
part of a listing has a thousand."""

FOLLOWED_BACK: Final = 30
"""Likewise of a log that is followed, time and again."""


class _Known(NamedTuple):
    """A log of which something is recorded.

    Attributes:
        segments: Some or all of it, at least one; ascending by start offset.
        leader_epochs: Of it.
        end_offset: Of the segments, exclusive.
        gaps: That it had.
        damaged: That could not be read.
    """

    segments: Sequence[FoundSegment]
    leader_epochs: Sequence[tuple[int, int]]
    end_offset: int
    gaps: tuple[Gap, ...] = ()
    damaged: tuple[DamagedObject, ...] = ()


class _Decided(NamedTuple):
    """The log according to its newest readable segment."""

    newest: FoundSegment
    leader_epochs: Sequence[tuple[int, int]]
    stable_end_offset: int
    topic: TopicFacts
    layout: Layout


async def read_partition(
    bucket: Bucket, partition: PartitionName, *, use_history: bool = True
) -> PartitionLog:
    """A partition's log, of which nothing is known yet.

    Args:
        bucket: Where.
        partition: Which.
        use_history: Believe the history's segments; else all is listed. Its log start counts in
            any case.

    Raises:
        RemoteStorageError: The bucket cannot be read now, or a key pair is missing, as far as
            that shows: of all segments when they were listed, else of the first and the newest.
    """
    history, damaged = await read_history(bucket, partition)
    summary = None if history is None else history.summary
    if history is not None and history.segments and use_history:
        known = _Known(
            [found(one, one.event_timestamp_ms) for one in history.segments],
            history.summary.leader_epochs,
            max(one.end_offset for one in history.segments) + 1,
        )
        back = _start_of_last(history.segments, LISTED_BACK)
        listed = await list_partition(bucket, partition, back)
        log = await _continued(bucket, partition, known, listed, back, summary)
        if log is not None and await _is_readable(bucket, log.segments[:1]):
            return _remember(log, listed)
    damages = () if damaged is None else (damaged,)
    log = await _read_listed(bucket, partition, summary, damages)
    if summary is not None and _lacks_end(log, summary):
        # Was it removed after the history was read? Then there is a later one.
        again, damaged = await read_summary(bucket, partition)
        damages = () if damaged is None else (damaged,)
        log = await _read_listed(bucket, partition, again, damages)
        if again is not None and _lacks_end(log, again):
            key = KEYS.history_key(tiered_partition(partition))
            problem = (
                f"it names offsets up to {again.end_offset - 1}, and no segment has those from "
                f"{log.end_offset} on"
            )
            lost = DamagedObject(key, -1, problem, log.end_offset)
            log = log._replace(damaged=(*log.damaged, lost))
    return log


async def _read_listed(
    bucket: Bucket,
    partition: PartitionName,
    summary: HistorySummary | None,
    damages: Sequence[DamagedObject],
) -> PartitionLog:
    """By a listing of everything."""
    listed = await list_partition(bucket, partition)
    facts, damaged = await read_manifests(bucket, listed.segments)
    damaged += damages
    decided = await _decide(bucket, [one.segment for one in facts], damaged, summary)
    if decided is not None:
        await _check_key_pairs(bucket, facts, decided.layout)
    return _remember(_log(partition, decided, damaged, summary), listed)


def _lacks_end(log: PartitionLog, summary: HistorySummary) -> bool:
    """Whether a history is of the same log, and has more of it than there is.

    The end of a log is never removed but with its topic: what is not there was lost.
    """
    return (
        summary.state is HistoryState.LIVE
        and summary.end_offset > log.end_offset
        and (
            not log.segments
            or continues(
                log.leader_epochs, log.end_offset, summary.leader_epochs, summary.end_offset
            )
        )
    )


async def follow_partition(bucket: Bucket, log: PartitionLog) -> PartitionLog:
    """A log that was read before, as it is now; the same object where nothing has changed.

    That costs one request, however many segments there are. What was removed at the front is known
    by the history object; without one it shows when it is read: whatever meets an
    ObjectNotFoundError follows the log again, and then all is listed.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    if not log.segments:
        return await read_partition(bucket, log.partition)
    back = _start_of_last([one.metadata for one in log.segments], FOLLOWED_BACK)
    listed = await list_partition(bucket, log.partition, back)
    ids = {one.segment_id.id for one in listed.segments}
    is_stale = bucket.misses(one.metadata.id for one in log.segments)
    if listed.history == log.history_stamp and ids == log.listed_ids and not is_stale:
        return log
    summary, damaged = log.summary, None
    if listed.history is not None and listed.history != log.history_stamp:
        summary, damaged = await read_summary(bucket, log.partition)
    known = _Known(
        [found(one.metadata, one.metadata.event_timestamp_ms) for one in log.segments],
        log.leader_epochs,
        log.segments[-1].end_offset,
        log.gaps,
        log.damaged,
    )
    followed = None
    if damaged is None:
        followed = await _continued(bucket, log.partition, known, listed, back, summary)
    if followed is not None:
        followed = _remember(followed, listed)
    else:
        followed = await read_partition(bucket, log.partition)
    # The listing came before the object was read: what was written in between shows next time.
    return followed._replace(history_stamp=listed.history)


def _remember(log: PartitionLog, listed: ListedPartition) -> PartitionLog:
    """With the segments that a listing of its end would find again."""
    back = _start_of_last([one.metadata for one in log.segments], FOLLOWED_BACK)
    ids = {one.segment_id.id for one in listed.segments if one.start_offset >= back}
    return log._replace(listed_ids=frozenset(ids))


async def _check_key_pairs(bucket: Bucket, facts: Sequence[ManifestFacts], layout: Layout) -> None:
    """A missing key pair is reported before anything is read.

    Raises:
        RemoteStorageError: It names the pair.
    """
    pairs = {one.segment.whole.id: one.pair_id for one in facts if one.pair_id}
    first = {pairs[one.metadata.id]: one for one in layout.segments if one.metadata.id in pairs}
    for one in first.values():
        await _is_readable(bucket, [one])


async def _is_readable(bucket: Bucket, segments: Sequence[LaidSegment]) -> bool:
    """Whether the manifests are there and whole.

    Raises:
        RemoteStorageError: The key pair is missing, and named.
    """
    for one in segments:
        try:
            await bucket.reader.opened(one.metadata, KEYS.segment_keys(one.metadata))
        except (ObjectNotFoundError, CorruptRemoteDataError):
            return False
    return True


def _start_of_last(segments: Sequence[RemoteLogSegmentMetadata], count: int) -> int:
    """Where the last so many segments begin."""
    return segments[-count].start_offset if len(segments) > count else 0


async def _continued(
    bucket: Bucket,
    partition: PartitionName,
    known: _Known,
    listed: ListedPartition,
    back: int,
    summary: HistorySummary | None,
) -> PartitionLog | None:
    """What is known and what was listed from an offset on; None: list all."""
    ids = {one.segment_id.id for one in listed.segments}
    end = {one.whole.id for one in known.segments if one.whole.start_offset >= back}
    if not end <= ids or bucket.misses(one.whole.id for one in known.segments):
        return None  # removed since, and perhaps others with them
    new = [one for one in listed.segments if one.segment_id.id not in end]
    facts, damaged = await read_manifests(bucket, new)
    damaged += [one for one in known.damaged if 0 <= one.start_offset < back]
    segments = [*known.segments, *(one.segment for one in facts)]
    decided = await _decide(bucket, segments, damaged, summary)
    if decided is None or not continues(
        known.leader_epochs,
        known.end_offset,
        decided.leader_epochs,
        decided.newest.whole.end_offset + 1,
    ):
        return None
    if any(not _is_known(gap, known.gaps) for gap in decided.layout.gaps):
        return None
    log = _log(partition, decided, damaged, summary)
    return None if summary is not None and _lacks_end(log, summary) else log


def _is_known(gap: Gap, known: Iterable[Gap]) -> bool:
    """Whether it is one of those, or what the log start has left of one."""
    return any(other.start <= gap.start and gap.end <= other.end for other in known)


async def _decide(
    bucket: Bucket,
    segments: Sequence[FoundSegment],
    damaged: list[DamagedObject],
    summary: HistorySummary | None,
) -> _Decided | None:
    """Let the newest decide; one whose side files cannot be read is added to `damaged`."""
    waiting = newest_first(segments)
    while waiting:
        newest = waiting.pop(0)
        keys = KEYS.segment_keys(newest.whole)
        try:
            opened = await bucket.reader.opened(newest.whole, keys)
            kinds = (SideFile.PRODUCER_SNAPSHOT, SideFile.LEADER_EPOCH)
            files = await bucket.reader.read_side_files(opened, keys, kinds)
            epochs = decode_epochs(files[SideFile.LEADER_EPOCH], keys.indexes)
            start = None if summary is None else summary.log_start_offset
            layout = lay_out(newest, waiting, epochs, start)
            layout = await without_empty_gaps(bucket, layout)
            stable = stable_end(
                files[SideFile.PRODUCER_SNAPSHOT], layout.log_start_offset, layout.end_offset
            )
        except ObjectNotFoundError:
            continue  # removed after it was listed
        except CorruptRemoteDataError as error:
            start = newest.whole.start_offset
            damaged.append(DamagedObject(error.key, error.position, error.problem, start))
        except CorruptFileError as error:
            start = newest.whole.start_offset
            damaged.append(DamagedObject(keys.indexes, -1, str(error), start))
        else:
            return _Decided(newest, epochs, stable, opened.manifest.topic, layout)
    return None


def _log(
    partition: PartitionName,
    decided: _Decided | None,
    damaged: Sequence[DamagedObject],
    summary: HistorySummary | None,
) -> PartitionLog:
    start = 0 if summary is None else summary.log_start_offset
    count = 0 if summary is None else summary.partition_count
    cluster_id = "" if summary is None else summary.cluster_id
    if decided is None:
        return PartitionLog(
            partition,
            start,
            start,
            start,
            damaged=tuple(damaged),
            cluster_id=cluster_id,
            partition_count=count,
            summary=summary,
        )
    layout = decided.layout
    stable = decided.stable_end_offset
    if summary is not None and continues(
        summary.leader_epochs, summary.end_offset, decided.leader_epochs, layout.end_offset
    ):
        # Its leader saw how transactions ended that are open in the bucket.
        stable = max(stable, summary.stable_end_offset)
    return PartitionLog(
        partition,
        layout.log_start_offset,
        layout.end_offset,
        stable,
        layout.leader_epochs,
        layout.segments,
        layout.gaps,
        tuple(damaged),
        decided.topic.cluster_id or cluster_id,
        max(decided.topic.partitions, count),
        decided.newest.whole.id,
        summary,
    )
