"""Valid end of a remote segment: the offset where this log's lineage leaves the segment's.

After an unclean election a past leader may have copied offsets that its successor wrote again:

    lineage     epoch 0 @ 0 ────────────── epoch 3 @ 180 ─────────
    segment     epoch 0 @ 151 ────────────────────── last 220
                                           ^ valid end: 180

Two logs that have the same epoch at an offset are the same up to there (KIP-101), so checking the
segment's last offset is enough in the usual case.
"""

from storage.checkpoints.leader_epochs import LeaderEpochCache
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition


def find_segment(
    manager: RemoteLogMetadataManager,
    partition: TopicIdPartition,
    epochs: LeaderEpochCache,
    offset: int,
) -> RemoteLogSegmentMetadata | None:
    """The finished segment that holds an offset as this lineage knows it, None without one.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    epoch = epochs.epoch_for_offset(offset)
    return None if epoch is None else manager.find(partition, epoch, offset)


def valid_end(metadata: RemoteLogSegmentMetadata, epochs: LeaderEpochCache) -> int:
    """Offset, exclusive, up to which the segment holds the records of this lineage.

    The segment's first offset or less if it holds none of them.
    """
    end = metadata.end_offset + 1
    last_epoch = metadata.segment_leader_epochs[-1].epoch
    if epochs.epoch_for_offset(metadata.end_offset) == last_epoch:
        return end
    ours = epochs.entries()
    valid = metadata.start_offset
    theirs = metadata.segment_leader_epochs
    for at, (epoch, start) in enumerate(theirs):
        stop = theirs[at + 1].offset if at + 1 < len(theirs) else end
        for place, (our_epoch, our_start) in enumerate(ours):
            if our_epoch == epoch:
                our_stop = ours[place + 1][1] if place + 1 < len(ours) else end
                if max(start, our_start) < min(stop, our_stop):
                    valid = min(stop, our_stop)
    return valid
