"""Detection of lost remote metadata, as opposed to a remote log that is really empty.

A log that begins before its first local segment had its head copied: local retention takes nothing
else. So somewhere there was a record of it, and what the metadata says now is compared with that:

    log start 0        local log start 800
    |                  |
    [ remote: ?        |=== local ===>

    segments, or a highest offset    the metadata remembers; what it says counts. Of a head whose
                                     segments have all expired it keeps the highest offset for good.
    neither                          the metadata is lost: the head is neither dropped nor expired
    some of the metadata is lost,    the same: what the metadata begins with may only be what is
    and it begins later than the log left of it

The leader epochs of the head are in no local batch either. A checkpoint that was lost or damaged
gets them back from the remote segments, before anything is computed from them: without them a whole
history would count as that of another log.
"""

from collections.abc import Iterable

from storage.log.log import Log
from tiered.metadata.lineage import find_log_start_offset
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition

HOW_TO_GO_ON = "`varve tier rebuild-metadata` publishes it again from the bucket's manifests"


def head_in_doubt(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log, *, lost: str
) -> str:
    """Why nothing may be concluded from what the metadata does not know; empty: it may.

    Args:
        metadata: What is copied.
        partition: Whose.
        log: Of the leader.
        lost: What is known to be lost of the metadata, a sentence; empty: nothing.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    start, local = log.log_start_offset, log.local_log_start_offset
    if start >= local:
        return ""
    if not metadata.segments(partition) and not _was_copied(metadata, partition, log):
        return (
            f"its offsets {start} to {local - 1} are not on this disk, and __remote_log_metadata "
            "does not know them: that metadata is lost. They are not served; no segment of the "
            "partition is "
            f"copied or deleted; {HOW_TO_GO_ON}"
        )
    if lost and find_log_start_offset(metadata, partition, log) > start:
        return (
            f"{lost}; what is left of it does not begin at the log start offset {start}. No "
            f"segment of the partition is copied or deleted; {HOW_TO_GO_ON}"
        )
    return ""


def _was_copied(metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log) -> bool:
    return any(
        metadata.highest_offset(partition, epoch) is not None
        for epoch, _ in log.leader_epochs.entries()
    )


def learn_epochs(metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log) -> bool:
    """Give a log back the leader epochs that only remote segments know; may wait for the disk.

    Returns:
        Whether any was missing, and was learnt.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
        DiskError: The checkpoint cannot be written.
    """
    epochs = log.leader_epochs
    earliest = epochs.earliest_entry
    if earliest is not None and earliest[1] <= log.log_start_offset:
        return False
    end = log.local_log_start_offset if earliest is None else earliest[1]
    epoch = None if earliest is None else earliest[0]
    learnt = epochs_before(metadata.segments(partition), epoch, end)
    if earliest is None:
        if learnt:
            epochs.replace(learnt)
        return bool(learnt)
    return epochs.extend_back(learnt)


def epochs_before(
    segments: Iterable[RemoteLogSegmentMetadata], epoch: int | None, end: int
) -> list[tuple[int, int]]:
    """(epoch, start offset), ascending, of what lies below `end`, from finished segments.

    Of histories that contradict each other the one of the latest epoch counts.

    Args:
        segments: In any state and order.
        epoch: That begins at `end`; None: any.
        end: First offset whose epoch is known.
    """
    finished = [s for s in segments if s.state is SegmentState.COPY_SEGMENT_FINISHED]
    finished.sort(key=lambda s: (s.segment_leader_epochs[-1].epoch, s.end_offset), reverse=True)
    found: dict[int, int] = {}
    for segment in finished:
        for one, start in reversed(segment.segment_leader_epochs):
            if start < end and (epoch is None or one <= epoch):
                found[one] = start
                epoch, end = one, start
    return sorted(found.items())
