"""Let the loop turn until something holds: what passes through a socket pair is there next turn."""

import asyncio
from collections.abc import Callable
from uuid import UUID

from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)
from tiered.tier import SegmentFiles, TopicFacts

TURNS_MAX = 5_000


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(TURNS_MAX):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


async def settled(turns: int = 30) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


SEGMENT = RemoteLogSegmentMetadata(
    segment_id=RemoteLogSegmentId(TopicIdPartition(UUID(int=1), "topic", 3), UUID(int=2)),
    start_offset=10,
    end_offset=99,
    max_timestamp_ms=1_700_000_000_000,
    broker_id=1,
    event_timestamp_ms=1_700_000_000_001,
    segment_size_bytes=1_000_000,
    segment_leader_epochs=(SegmentEpoch(0, 10), SegmentEpoch(4, 50)),
    state=SegmentState.COPY_SEGMENT_FINISHED,
    custom_metadata=b"\x00\xff",
    txn_index_empty=True,
)

FILES = SegmentFiles(
    "/d/a.log", "/d/a.index", "/d/a.timeindex", "/d/b.snapshot", None, b"0\n\xff", 7
)
FACTS = TopicFacts(7, {"retention.ms": "1"}, "cluster")
