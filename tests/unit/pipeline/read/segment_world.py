"""Segments in a bucket in memory, and what reads them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pipeline.plan.piece import AbortedRange, PartitionName, RemotePiece
from pipeline.read.byte_source import StoreBytes
from pipeline.read.open_segment import OpenSegment, open_segment
from pipeline.read.store_thread import StoreThread
from tests.unit.tiered.segments import TOPIC, Segment
from tests.unit.tiered.tier_worlds import PlainKeyRing, TierWorld, tier_world
from tiered.key_ring import KeyRing
from tiered.manifest_memory import ManifestMemory
from tiered.segment_metadata import RemoteLogSegmentMetadata

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


def aborted(producer_id: int, first: int, last: int) -> AbortedRange:
    return AbortedRange(producer_id, first, last)


class SegmentWorld:
    """A bucket, and a thread for its calls.

    Attributes:
        tier: Copies segments into `store`.
    """

    def __init__(self, thread: StoreThread, tier: TierWorld) -> None:
        self.thread = thread
        self.tier = tier
        self.store = tier.store
        self.manifests = ManifestMemory()

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
    """A new one; `settings` are FormatSettings."""
    thread = StoreThread()
    try:
        yield SegmentWorld(thread, tier_world(**settings))
    finally:
        thread.close()
