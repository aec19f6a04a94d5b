"""A bucket of whole segments, as far as a restore reads it: names, sizes, manifests, side files.

bucket.add("t", 0, 0, 99)                             a segment of epoch 0
bucket.add("t", 0, 100, 149, epochs=[(1, 100)])       one of epoch 1; epoch 0 began at 0
"""

from array import array
from collections.abc import Mapping, Sequence
from uuid import UUID

from typing_extensions import override

from storage.checkpoints.checkpoint_files import encode_epochs
from storage.producers.entry import ProducerEntry
from tests.fakes.producer_snapshots import encode_snapshot
from tests.fakes.tiered.scripted_tier import FakeTier
from tiered.errors import ObjectNotFoundError
from tiered.format.chunk_index import FixedChunkIndex
from tiered.format.manifest import SegmentManifest, StoredSideFile
from tiered.format.object_keys import ObjectKeys
from tiered.object_store.base import ObjectInfo, ObjectPage
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)
from tiered.tier import SideFile, TopicFacts

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
TIERED = {"remote.storage.enable": "true", "local.retention.ms": "1000"}
PAGE = 5


def topic_id(name: str) -> UUID:
    """The id a topic has unless told otherwise."""
    return UUID(bytes=name.encode().ljust(16, b"\x01")[:16])


class ManifestBucket(FakeTier):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.side_files: dict[tuple[UUID, SideFile], bytes] = {}
        self._count = 0

    def add(
        self,
        topic: str,
        partition: int,
        start: int,
        last: int,
        *,
        epochs: Sequence[tuple[int, int]] | None = None,
        history: Sequence[tuple[int, int]] = ((0, 0),),
        producers: Sequence[ProducerEntry] = (),
        partitions: int = 2,
        overrides: Mapping[str, str] = TIERED,
        cluster_id: str = CLUSTER,
        incarnation: UUID | None = None,
        size: int = 1000,
        empty_from: int | None = None,
    ) -> RemoteLogSegmentMetadata:
        """A segment; `epochs` are its own, `history` where the log's began before it.

        `empty_from`: compaction had emptied the log from there up to `start`.
        """
        self._count += 1
        own = list(epochs or [(0, start)])
        metadata = RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(
                TopicIdPartition(incarnation or topic_id(topic), topic, partition),
                UUID(int=self._count << 64 | 7),
            ),
            start_offset=start,
            end_offset=last,
            max_timestamp_ms=1_700_000_000_000 + last,
            broker_id=1,
            event_timestamp_ms=1_700_000_000_000,
            segment_size_bytes=size,
            segment_leader_epochs=tuple(SegmentEpoch(*entry) for entry in own),
            state=SegmentState.COPY_SEGMENT_FINISHED,
            custom_metadata=b"c",
        )
        manifest = SegmentManifest(
            metadata=metadata,
            chunk_index=FixedChunkIndex(size, size, size, size),
            chunk_crcs=array("I", [1]),
            stored_crcs=array("I", [1]),
            side_files={
                kind: StoredSideFile(at * 30, 30, 2, at, 5)
                for at, kind in enumerate(SideFile)
                if kind is not SideFile.TRANSACTION
            },
            compression=False,
            encryption=None,
            topic=TopicFacts(partitions, overrides, cluster_id),
            created_ms=1_700_000_000_000 + self._count,
            software="test",
            empty_from=empty_from,
        )
        log, indexes, name = ObjectKeys().segment_keys(metadata)
        self.objects[log] = bytes(manifest.log_size)
        self.objects[indexes] = bytes(manifest.indexes_size)
        self.objects[name] = manifest.to_json()
        log_epochs = sorted({**dict(own), **dict(history)}.items())
        self.side_files[metadata.id, SideFile.LEADER_EPOCH] = encode_epochs(log_epochs)
        self.side_files[metadata.id, SideFile.PRODUCER_SNAPSHOT] = encode_snapshot(list(producers))
        return metadata

    @override
    async def fetch_side_file(self, metadata: RemoteLogSegmentMetadata, kind: SideFile) -> bytes:
        await self._enter("fetch_side_file", metadata, kind)
        try:
            return self.side_files[metadata.id, kind]
        except KeyError:
            raise ObjectNotFoundError(str(kind)) from None

    @override
    async def list_objects(self, prefix: str, continuation: str | None) -> ObjectPage:
        await self._enter("list_objects", prefix, continuation)
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        first = int(continuation or 0)
        page = [ObjectInfo(key, len(self.objects[key]), 17) for key in keys[first : first + PAGE]]
        following = first + PAGE
        return ObjectPage(page, str(following) if following < len(keys) else None)
