"""Segments in a bucket in memory, and what reads them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pipeline.plan.bucket import Bucket
from pipeline.plan.piece import PartitionName, RemotePiece
from pipeline.read.bytes.byte_source import StoreBytes
from pipeline.read.bytes.open_buckets import LentBucket
from pipeline.read.bytes.open_segment import OpenSegment, open_segment
from pipeline.read.bytes.store_thread import StoreThread
from protocol.records.batch import HEADER_SIZE
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.tiered.memory_object_store import StoredObject
from tests.unit.tiered.format.closed_segments import FIRST_TIME_MS, TOPIC, Segment, make_segment
from tests.unit.tiered.format.plugin_segments import objects_of
from tests.unit.tiered.storage_manager.memory_tier import PlainKeyRing, TierWorld, tier_world
from tiered.format.key_ring import KeyRing
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.manifest_cache import ManifestMemory

PARTITION: Final = PartitionName(TOPIC.topic, TOPIC.topic_id, TOPIC.partition)


def piece_of(metadata: RemoteLogSegmentMetadata, **changes: Any) -> RemotePiece:
    """All of a segment, unless told otherwise."""
    whole = RemotePiece(
        partition=PARTITION,
        segment_id=metadata.id,
        segment_start_offset=metadata.start_offset,
        position=0,
        end_position=metadata.segment_size_bytes,
        start_offset=metadata.start_offset,
        end_offset=metadata.end_offset + 1,
        aborted=(),
    )
    return whole._replace(**changes)


class SegmentWorld:
    """A bucket, and a thread for its calls.

    Attributes:
        tier: Copies segments into `store`.
    """

    def __init__(self, thread: StoreThread, tier: TierWorld) -> None:
        self.thread = thread
        self.tier = tier
        self.store = tier.store
        self.bucket = Bucket(
            self.store,
            self.key_ring,
            filesystem=tier.disk,
            clock=ManualClock(),
            randomness=SeededRandomness(3),
        )

    @property
    def lent(self) -> LentBucket:
        """As `OpenBuckets` would lend it."""
        return LentBucket(self.bucket, self.thread)

    @property
    def manifests(self) -> ManifestMemory:
        """Of the segments that are open."""
        return self.bucket.manifests

    @property
    def key_ring(self) -> KeyRing:
        """That the segments were encrypted with."""
        ring = self.tier.tier._reader._key_ring
        assert isinstance(ring, PlainKeyRing)
        return ring

    def copy(self, segment: Segment) -> RemotePiece:
        """Put a segment into the bucket; the piece is all of it."""
        asyncio.run(self.tier.copy(segment))
        self.store.log.clear()
        return piece_of(segment.metadata)

    def open(self, piece: RemotePiece) -> OpenSegment:
        return self.thread.run(open_segment(self.store, self.key_ring, self.manifests, piece))

    def source(self, opened: OpenSegment) -> StoreBytes:
        return StoreBytes(self.thread, self.store, opened.keys.log, opened.manifest.log_size)


@contextmanager
def segment_world(**settings: Any) -> Iterator[SegmentWorld]:
    """A new one; `settings` are those of `format_config`."""
    thread = StoreThread()
    world = SegmentWorld(thread, tier_world(**settings))
    try:
        yield world
    finally:
        thread.run(world.bucket.close())
        thread.close()


def record_segment(
    batches: int = 30,
    *,
    records: int = 10,
    value_bytes: int = 30,
    codec: Codec = Codec.NONE,
    **changes: Any,
) -> Segment:
    """A segment of real records: key, value and a header each."""
    payloads = []
    for number in range(batches):
        contents = [
            (
                b"key-%d" % at,
                (b"%d/%d " % (number, at) * value_bytes)[:value_bytes],
                [("h", b"x")],
                FIRST_TIME_MS,
            )
            for at in range(records)
        ]
        payloads.append(bytes(build_batch(contents, codec=codec)[HEADER_SIZE:]))
    return make_segment(payloads, records=records, codec=codec, **changes)


def plugin_objects_of(world: SegmentWorld, segment: Segment, **form: Any) -> RemotePiece:
    """Put a segment into the bucket as Aiven's plugin would; the piece is all of it."""
    for name, data in objects_of(segment, world.key_ring, **form).items():
        world.store.objects[name] = StoredObject(data, 0)
    return piece_of(segment.metadata)
