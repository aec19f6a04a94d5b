"""Reading manifests for a plan, and saying of each that cannot be read what is wrong with it.

A byte that the network flipped is fetched a second time. A manifest that is gone by now was removed
after it was listed, and its segment with it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.plan.bucket import Bucket
from pipeline.plan.in_parallel import in_parallel
from pipeline.plan.layout import FoundSegment, found
from pipeline.plan.listing import KEYS, ListedSegment
from pipeline.plan.partition_log import DamagedObject
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.manifest import MANIFEST_BYTES_MAX, SegmentManifest
from tiered.tier import TopicFacts


class ManifestFacts(NamedTuple):
    """The part of a manifest that is kept: a plan may have a hundred thousand.

    Attributes:
        segment: Where it is in the log.
        topic: Of the topic; with 0 partitions where another program wrote it.
        pair_id: Of the key pair that its data key needs; "": it is not encrypted.
    """

    segment: FoundSegment
    topic: TopicFacts
    pair_id: str


class ReadManifests(NamedTuple):
    """Manifests that were read, and those that could not be read."""

    facts: list[ManifestFacts]
    damaged: list[DamagedObject]


async def read_manifests(bucket: Bucket, listed: Iterable[ListedSegment]) -> ReadManifests:
    """Manifests of listed segments, in their order.

    Raises:
        RemoteStorageError: The store cannot give one now.
    """

    async def read(one: ListedSegment) -> ManifestFacts | DamagedObject | None:
        return await read_manifest(bucket, one)

    read_all: Sequence[ManifestFacts | DamagedObject | None] = await in_parallel(listed, read)
    return ReadManifests(
        [one for one in read_all if isinstance(one, ManifestFacts)],
        [one for one in read_all if isinstance(one, DamagedObject)],
    )


async def read_manifest(
    bucket: Bucket, listed: ListedSegment
) -> ManifestFacts | DamagedObject | None:
    """One manifest, what is wrong with it, or None: it is gone.

    Raises:
        RemoteStorageError: The store cannot give it now.
    """
    key = listed.manifest_key
    manifest = None
    for attempt in (1, 2):
        try:
            data = await bucket.store.get(key, max_bytes=MANIFEST_BYTES_MAX)
            manifest = SegmentManifest.from_json(data, key)
            break
        except ObjectNotFoundError:
            return None
        except CorruptRemoteDataError as error:
            if attempt == 2:
                return DamagedObject(key, error.position, error.problem, listed.start_offset)
    assert manifest is not None
    metadata = manifest.metadata
    if (metadata.segment_id, metadata.start_offset) != (listed.segment_id, listed.start_offset):
        problem = f"the manifest is of {metadata.segment_id.id}, {metadata.start_offset}"
        return DamagedObject(key, -1, problem, listed.start_offset)
    keys = KEYS.segment_keys(metadata)
    for name, there, expected in (
        (keys.log, listed.log_size, manifest.log_size),
        (keys.indexes, listed.indexes_size, manifest.indexes_size),
    ):
        if there != expected:
            how = "it is missing" if there < 0 else f"it has {there} bytes"
            problem = f"{how}, its manifest says {expected}"
            return DamagedObject(name, max(there, 0), problem, listed.start_offset)
    pair_id = "" if manifest.encryption is None else manifest.encryption.pair_id
    return ManifestFacts(found(metadata, manifest.created_ms), manifest.topic, pair_id)
