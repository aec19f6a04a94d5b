"""Gaps: offsets that neither remote storage nor the local log has, and where reads go on.

A log has gaps where copies were lost and the loss was accepted (`varve tier restore --allow-gaps`,
`varve tier skip`), and where compaction had left a segment without records before it was copied:

    remote   [0 ..... 99]             [200 .... 299] [300 .... 399]
    local                                                               [450 ......
    read at 120 ──────────────────────> 200           read at 400 ─────> 450

As in a compacted log: the answer's batches begin at a higher offset than was asked for, and clients
go on from there. OFFSET_OUT_OF_RANGE would send a consumer back to the beginning, for ever, or past
everything, in silence.

Not everything that is not found is a gap. A copy of those offsets whose end is not known yet may
prove good; a segment that is being removed means that the log start is on its way up; and
where the metadata has never heard of a copy at all, it is the metadata that was lost.
"""

from typing import Final

from storage.log.log import Log
from tiered.errors import RemoteOffsetNotFoundError, RemoteStorageError
from tiered.metadata.epoch_bounds import valid_end
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition

GAPS_MAX: Final = 1000


def find_following(
    manager: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log, offset: int
) -> tuple[RemoteLogSegmentMetadata, int] | None:
    """The finished segment with the first offset of this lineage at or above `offset`.

    Returns:
        The segment, and that offset; None: remote storage has nothing from there on.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    epochs = log.leader_epochs
    epoch = epochs.epoch_for_offset(offset)
    while epoch is not None:
        following = epochs.next_epoch(epoch)
        end = None if following is None else epochs.start_offset_of(following)
        found = manager.find_at_or_after(partition, epoch, offset)
        if found is not None:
            first = max(offset, dict(found.segment_leader_epochs)[epoch])
            # What a past leader copied beyond that, its successor wrote again.
            if end is None or first < end:
                return found, first
        epoch = following
    return None


def offset_after_gap(
    manager: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log, offset: int
) -> int:
    """Where a read at `offset`, which no finished segment holds, goes on; at most the local start.

    Raises:
        RemoteOffsetNotFoundError: It is below the log start, or about to be.
        RemoteStorageError: It is unknown, so far, whether those records are gone.
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    epochs = log.leader_epochs
    epoch = epochs.epoch_for_offset(offset)
    if offset < log.log_start_offset:
        raise RemoteOffsetNotFoundError(partition, epoch, offset)
    if epoch is None:
        raise RemoteStorageError(f"{partition}: no leader epoch is known for offset {offset}")
    unfinished = manager.find_unfinished(partition, epoch, offset)
    if unfinished is not None:
        if unfinished.state is SegmentState.DELETE_SEGMENT_STARTED:
            raise RemoteOffsetNotFoundError(partition, epoch, offset)
        raise RemoteStorageError(
            f"{partition}: it is not known yet whether segment {unfinished.id} with offset "
            f"{offset} "
            "is complete"
        )
    if all(manager.highest_offset(partition, known) is None for known, _ in epochs.entries()):
        raise RemoteStorageError(
            f"{partition}: offset {offset} is neither local nor known to the remote log's "
            "metadata: "
            "that metadata is lost"
        )
    following = find_following(manager, partition, log, offset)
    local = log.local_log_start_offset
    return local if following is None else min(following[1], local)


def find_gaps(
    manager: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log
) -> list[tuple[int, int]]:
    """(start, end) of offsets from the log start on that are missing, ascending; `end` exclusive.

    Without those within a segment, which compaction may have left. At most `GAPS_MAX`. For the
    admin API: it walks over all segments.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    gaps: list[tuple[int, int]] = []
    local = log.local_log_start_offset
    offset = log.log_start_offset
    while offset < local and len(gaps) < GAPS_MAX:
        following = find_following(manager, partition, log, offset)
        start = local if following is None else min(following[1], local)
        if start > offset:
            gaps.append((offset, start))
        if following is None:
            break
        offset = max(valid_end(following[0], log.leader_epochs), start + 1)
    segments = log.segment_facts()
    for at, segment in enumerate(segments[:-1]):
        if not segment.size and len(gaps) < GAPS_MAX:
            first = max(segment.base_offset, log.log_start_offset)
            end = segments[at + 1].base_offset
            if gaps and gaps[-1][1] == first:
                gaps[-1] = (gaps[-1][0], end)
            elif first < end:
                gaps.append((first, end))
    return gaps
