"""A segment that is open for reading: its manifest, what restores its chunks, its names."""

from typing import NamedTuple

from pipeline.plan.piece import RemotePiece
from pipeline.read.read_errors import DamagedDataError
from storage.environment.randomness import SystemRandomness
from tiered.errors import CorruptRemoteDataError
from tiered.format.encryption import ChunkCipher
from tiered.format.key_ring import KeyRing
from tiered.format.manifest import MANIFEST_BYTES_MAX, SegmentManifest
from tiered.format.object_keys import ObjectKeys, SegmentKeys
from tiered.format.transform import ChunkTransform
from tiered.object_store.base import ObjectStore
from tiered.segment_metadata import RemoteLogSegmentId, TopicIdPartition
from tiered.storage_manager.manifest_cache import ManifestMemory, OpenManifest

_KEYS = ObjectKeys()


class OpenSegment(NamedTuple):
    """See the module.

    Attributes:
        opened: Manifest and transform.
        keys: Names of the segment's objects.
    """

    opened: OpenManifest
    keys: SegmentKeys

    @property
    def manifest(self) -> SegmentManifest:
        """The segment's manifest."""
        return self.opened.manifest


def keys_of(piece: RemotePiece) -> SegmentKeys:
    """Names of the objects of the segment that a piece is part of."""
    topic, topic_id, partition = piece.partition
    segment_id = RemoteLogSegmentId(TopicIdPartition(topic_id, topic, partition), piece.segment_id)
    return _KEYS.keys_of(segment_id, piece.segment_start_offset)


async def open_segment(
    store: ObjectStore, key_ring: KeyRing, manifests: ManifestMemory, piece: RemotePiece
) -> OpenSegment:
    """The segment of a piece; from memory if it was open before.

    A manifest that is damaged is fetched a second time, since the network may have done it.

    Args:
        store: Has it.
        key_ring: For the data keys of encrypted ones.
        manifests: Of this process.
        piece: Which.

    Raises:
        DamagedDataError: The manifest is damaged, of a newer version, or another segment's.
        ObjectNotFoundError: There is none.
        RemoteStorageError: The store cannot give it, or its data key needs a key pair that is not
            here; names the pair.
    """
    keys = keys_of(piece)
    opened = manifests.get(piece.segment_id)
    if opened is None:
        try:
            manifest = await _fetch(store, keys)
            opened = OpenManifest(manifest, _transform(manifest, key_ring))
        except CorruptRemoteDataError as error:
            raise DamagedDataError(error.key, error.position, error.problem) from error
        manifests.put(opened)
    metadata = opened.manifest.metadata
    if _KEYS.segment_keys(metadata) != keys:
        problem = f"the manifest is of {metadata.segment_id}, from offset {metadata.start_offset}"
        raise DamagedDataError(keys.manifest, -1, problem)
    if piece.end_position > metadata.segment_size_bytes:
        problem = (
            f"the segment's log has {metadata.segment_size_bytes} bytes by its manifest, the plan "
            f"knows of {piece.end_position}"
        )
        raise DamagedDataError(keys.manifest, -1, problem)
    return OpenSegment(opened, keys)


async def _fetch(store: ObjectStore, keys: SegmentKeys) -> SegmentManifest:
    try:
        data = await store.get(keys.manifest, max_bytes=MANIFEST_BYTES_MAX)
        return SegmentManifest.from_json(data, keys.manifest)
    except CorruptRemoteDataError:
        data = await store.get(keys.manifest, max_bytes=MANIFEST_BYTES_MAX)
        return SegmentManifest.from_json(data, keys.manifest)


def _transform(manifest: SegmentManifest, key_ring: KeyRing) -> ChunkTransform:
    cipher = None
    if manifest.encryption is not None:
        # Nothing is encrypted here: no randomness is drawn.
        cipher = ChunkCipher(key_ring.unwrap(manifest.encryption), SystemRandomness())
    return ChunkTransform(compression=manifest.compression, cipher=cipher)
