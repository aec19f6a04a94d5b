"""Side files of a segment in the bucket, and what it means when they cannot be had.

What is gone is remembered by the bucket (`Bucket.gone`): the next plan must not contain it
by a history that does not know yet.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import DamagedBucketError
from pipeline.plan.listing import KEYS
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.object_keys import SegmentKeys
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.manifest_cache import OpenManifest
from tiered.tier import SideFile


class SegmentFiles(NamedTuple):
    """The side files of a segment that were read.

    Attributes:
        keys: Of its objects.
        opened: Its manifest.
        files: Side files; one that the segment has not is not among them.
    """

    keys: SegmentKeys
    opened: OpenManifest
    files: dict[SideFile, bytes]


async def read_segment_files(
    bucket: Bucket, metadata: RemoteLogSegmentMetadata, kinds: Sequence[SideFile]
) -> SegmentFiles:
    """A segment's manifest and some side files.

    Raises:
        DamagedBucketError: They are not what was written; names the object.
        ObjectNotFoundError: The segment was removed.
        RemoteStorageError: The store cannot give them, or a key pair is missing.
    """
    keys = KEYS.segment_keys(metadata)
    try:
        opened = await bucket.reader.opened(metadata, keys)
        files = await bucket.reader.read_side_files(opened, keys, kinds)
    except ObjectNotFoundError:
        bucket.forget(metadata.id)
        raise
    except CorruptRemoteDataError as error:
        raise DamagedBucketError(error.key, error.position, error.problem) from error
    return SegmentFiles(keys, opened, files)
