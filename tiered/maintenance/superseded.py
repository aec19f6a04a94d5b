"""Superseded copies: whole, unknown to the metadata, and all they hold is in copies it knows.

A broker that was paused or cut off may finish an upload after the next leader has given that copy
up, and die before it removes it (`tiered.tasks.segment_copy`). The next leader has copied the same
records again. So such a copy is no history that the metadata has lost: for each of its offsets, in
the epoch that wrote it, there is a finished segment, and its objects are there.
"""

from collections.abc import Callable

from tiered.deadline import Deadline
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.manifest import SegmentManifest
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import Tier


async def is_superseded(
    manifest_key: str,
    tier: Tier,
    metadata: RemoteLogMetadataManager,
    deadline: Callable[[int, str], Deadline],
) -> bool:
    """Whether the copy that a manifest describes is held by others, whole.

    Args:
        manifest_key: Its name.
        tier: Where it lies.
        metadata: Of the segments that are known.
        deadline: Makes one for so many calls to the store, with a text for its error.

    Raises:
        RemoteStorageError: The store does not answer.
        RemoteStorageNotReadyError: The partition's metadata is not visible.
    """
    async with deadline(1, f"read of {manifest_key}"):
        try:
            data = await tier.get_object(manifest_key)
        except ObjectNotFoundError:
            return False
    try:
        copy = SegmentManifest.from_json(data, manifest_key).metadata
    except CorruptRemoteDataError:
        return False
    others = held_by(copy, metadata)
    for other in others:
        async with deadline(2, f"check of {other.id}"):
            if not await tier.is_complete(other):
                return False
    return bool(others)


def held_by(
    copy: RemoteLogSegmentMetadata, metadata: RemoteLogMetadataManager
) -> list[RemoteLogSegmentMetadata]:
    """Finished segments that together have all records of a copy; empty: some are in none."""
    epochs = copy.segment_leader_epochs
    found: list[RemoteLogSegmentMetadata] = []
    for at, (epoch, start) in enumerate(epochs):
        end = epochs[at + 1].offset if at + 1 < len(epochs) else copy.end_offset + 1
        offset = max(start, copy.start_offset)
        while offset < end:
            other = metadata.find(copy.partition, epoch, offset)
            if other is None or other.id == copy.id:
                return []
            found.append(other)
            offset = _end_of_epoch(other, epoch)
    return found


def _end_of_epoch(segment: RemoteLogSegmentMetadata, epoch: int) -> int:
    """Where the records of an epoch end in a segment that has some of it, exclusive."""
    later = [offset for number, offset in segment.segment_leader_epochs if number > epoch]
    return min(later, default=segment.end_offset + 1)
