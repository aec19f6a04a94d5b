"""A bucket that is a directory, with a topic `t` of real segments, without a broker."""

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from pipeline.plan.bucket import BucketOptions
from storage.environment.randomness import SeededRandomness
from tests.unit.pipeline.plan.bucket_world import PARTITION, BucketWorld
from tests.unit.storage.log.log_model import NOW_MS, append, make_batch
from tiered.segment_metadata import TopicIdPartition


class LakeBucket:
    """Segments of JSON records; the directory is what a broker's tier would have written.

    Attributes:
        values: Of the rows that a consumer sees, by offset.
    """

    def __init__(self, directory: Path, *, topic_id: UUID | None = None) -> None:
        self.directory = directory
        self.world = BucketWorld()
        self.leader = self.world.replica("a")
        self.partition = PARTITION
        if topic_id is not None:
            self.partition = TopicIdPartition(topic_id, "t", 0)
            self.world.randomness = SeededRandomness(topic_id.int)
        self.values: dict[int, bytes] = {}

    @property
    def options(self) -> BucketOptions:
        return BucketOptions(f"file://{self.directory}")

    def write(self, values: Sequence[bytes], *, batch: int = 7) -> None:
        """Plain records, so many a batch."""
        for begin in range(0, len(values), batch):
            some = values[begin : begin + batch]
            start = self.leader.end
            self.values |= {start + at: value for at, value in enumerate(some)}
            times = NOW_MS - (1000 - start) * 3_600_000
            append(self.leader.log, make_batch(*some, timestamp_ms=times), leader_epoch=0)

    def abort(self, count: int) -> None:
        """A transaction that nobody sees."""
        self.leader.transaction(7, count)
        self.leader.finish(7, commit=False)

    async def copy(self) -> None:
        """Close the segment, and have what is closed in the directory."""
        self.leader.roll()
        await self.world.copy(self.leader, partition=self.partition)
        for key, stored in self.world.store.objects.items():
            path = self.directory / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored.data)


def record(number: int) -> bytes:
    """JSON; every 13th is none."""
    if number % 13 == 5:
        return b"{no json"
    return json.dumps({"id": number, "name": f"n{number}"}).encode()


async def orders_bucket(directory: Path) -> LakeBucket:
    """Three copies, one with an aborted transaction; the log rolls by time once more by itself."""
    bucket = LakeBucket(directory)
    bucket.write([record(n) for n in range(40)])
    await bucket.copy()
    bucket.write([record(n) for n in range(100, 130)])
    bucket.abort(12)
    bucket.write([record(n) for n in range(200, 210)])
    await bucket.copy()
    bucket.write([record(n) for n in range(300, 340)])
    await bucket.copy()
    return bucket
