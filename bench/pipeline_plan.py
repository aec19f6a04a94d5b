"""What it costs to plan a read of a partition with many segments, in seconds and in requests.

    python -m bench.pipeline_plan [--segments 100000] [--listed 2000]

Makes a bucket in a directory: one partition whose history object tells of so many segments, the
last few and the first of which are there with all their objects. Then, in a process that knows
nothing of it:

    by history    the log of the partition, as a batch query's driver reads it
    pieces        the whole log cut into pieces, no segment larger than a piece
    following     a micro-batch's look at it: the first one reads the history once more
    once more     the next ones, while nothing is new
    by listing    the same without a history, of so many segments; a manifest each

`requests` are calls of the object store. `memory` is what the process has taken since it began.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from struct import pack
from typing import Final, TypeVar
from uuid import UUID

from config.tier import TierConfig
from pipeline.plan.bucket import Bucket, BucketOptions, open_bucket
from pipeline.plan.partition_read import follow_partition, read_partition
from pipeline.plan.piece import PartitionName
from pipeline.plan.splits import OffsetRange, plan_pieces
from protocol.records.builder import build_batch
from storage.checkpoints.checkpoint_files import encode_epochs
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.producers.snapshot import encode_rows
from tiered.format.key_ring import KeyRing
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.history import HistoryState, HistorySummary, PartitionHistory, encode_history
from tiered.object_store.filesystem import FilesystemObjectStore
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager
from tiered.tier import SegmentFiles, TopicFacts

T = TypeVar("T")

TOPIC_ID: Final = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)
OFFSETS_EACH: Final = 1000
COPIED_WITH_HISTORY: Final = 400
"""As many as a listing of the history's end tells."""


class Maker:
    """Writes the bucket."""

    def __init__(self, directory: Path, topic: str) -> None:
        self.partition = TopicIdPartition(TOPIC_ID, topic, 0)
        self._files = directory / f"{topic}-files"
        self._files.mkdir()
        self._randomness = SeededRandomness(1)
        filesystem, clock = LocalFilesystem(), SystemClock()
        self.store = FilesystemObjectStore(
            filesystem, str(directory / "bucket"), clock, self._randomness
        )
        self.tier = RemoteStorageManager(
            self.store,
            TierConfig(),
            KeyRing("", {}, self._randomness),
            environment=Environment.without_loop(
                filesystem=filesystem, clock=clock, randomness=self._randomness
            ),
            spool_directory=str(directory / "spool"),
            software="bench",
        )

    def metadata(self, number: int) -> RemoteLogSegmentMetadata:
        """Of the segment with that number."""
        start = number * OFFSETS_EACH
        return RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(self.partition, self._randomness.uuid4()),
            start_offset=start,
            end_offset=start + OFFSETS_EACH - 1,
            max_timestamp_ms=1_700_000_000_000 + start,
            broker_id=1,
            event_timestamp_ms=1_700_000_000_000 + start,
            segment_size_bytes=100 << 20,
            segment_leader_epochs=(SegmentEpoch(number // 1000, start),),
            state=SegmentState.COPY_SEGMENT_FINISHED,
            txn_index_empty=True,
        )

    async def copy(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        """Its objects: small ones, and one batch for all of its offsets."""
        batch = bytearray(build_batch([(None, b"x", (), metadata.max_timestamp_ms)] * OFFSETS_EACH))
        last_epoch = metadata.segment_leader_epochs[0].epoch
        # Neither is in the batch's sum.
        batch[:8] = metadata.start_offset.to_bytes(8, "big")
        batch[12:16] = last_epoch.to_bytes(4, "big")
        named: dict[str, bytes | bytearray] = {
            "log": batch,
            "index": b"",
            "timeindex": pack(">qi", metadata.max_timestamp_ms, OFFSETS_EACH - 1),
            "snapshot": encode_rows((), 0),
        }
        for suffix, data in named.items():
            (self._files / f"s.{suffix}").write_bytes(data)
        small = replace(metadata, segment_size_bytes=len(batch))
        await self.tier.copy_segment(
            small,
            SegmentFiles(
                log=str(self._files / "s.log"),
                offset_index=str(self._files / "s.index"),
                time_index=str(self._files / "s.timeindex"),
                producer_snapshot=str(self._files / "s.snapshot"),
                transaction_index=None,
                leader_epochs=encode_epochs(
                    (epoch, epoch * 1000 * OFFSETS_EACH) for epoch in range(last_epoch + 1)
                ),
            ),
            TopicFacts(1, {}, "bench"),
        )
        return small

    async def write_history(self, segments: list[RemoteLogSegmentMetadata]) -> int:
        """The history object; its bytes."""
        end = segments[-1].end_offset + 1
        summary = HistorySummary(
            self.partition,
            "bench",
            1,
            HistoryState.LIVE,
            0,
            1_700_000_000_000,
            0,
            end,
            end,
            tuple(
                (epoch, epoch * 1000 * OFFSETS_EACH)
                for epoch in range(segments[-1].segment_leader_epochs[0].epoch + 1)
            ),
        )
        data = encode_history(PartitionHistory(summary, tuple(segments)))
        await self.store.put(ObjectKeys().history_key(self.partition), data)
        return len(data)


def requests(bucket: Bucket) -> int:
    """Calls of its store so far."""
    return sum(counters.calls for counters in bucket.store.statistics.by_call.values())


async def timed(name: str, bucket: Bucket, work: Callable[[], Awaitable[T]]) -> T:
    """Print what it took."""
    before = requests(bucket)
    cpu, wall = time.process_time(), time.perf_counter()
    result = await work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    after = requests(bucket)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<12} {wall:7.3f} s wall {cpu:7.3f} s CPU {after - before:7,} requests"
        f" {memory:6.0f} MiB"
    )
    return result


async def make(segments: int, listed: int, directory: Path) -> None:
    """Both partitions' objects."""
    known = Maker(directory, "known")
    all_of_it = [known.metadata(number) for number in range(segments)]
    for number in range(max(segments - COPIED_WITH_HISTORY, 0), segments):
        all_of_it[number] = await known.copy(all_of_it[number])
    # The first one's manifest is looked at, too.
    all_of_it[0] = await known.copy(all_of_it[0])
    size = await known.write_history(all_of_it)
    print(f"a history of {segments:,} segments has {size:,} bytes", flush=True)
    other = Maker(directory, "listed")
    for number in range(listed):
        await other.copy(other.metadata(number))


async def measure(segments: int, listed: int, directory: Path) -> None:
    """Plan, as a driver does."""
    options = BucketOptions(f"file://{directory}/bucket")
    name = PartitionName("known", TOPIC_ID, 0)
    async with await open_bucket(options) as bucket:
        log = await timed("by history", bucket, lambda: read_partition(bucket, name))
        assert len(log.segments) == segments, len(log.segments)
        wanted = OffsetRange(log, log.log_start_offset, log.end_offset)
        pieces = await timed(
            "pieces", bucket, lambda: plan_pieces(bucket, [wanted], read_committed=True)
        )
        assert len(pieces) == segments
        del pieces
        followed = await timed("following", bucket, lambda: follow_partition(bucket, log))
        await timed("once more", bucket, lambda: follow_partition(bucket, followed))
    name = PartitionName("listed", TOPIC_ID, 0)
    async with await open_bucket(options) as bucket:
        print(f"{listed:,} segments without a history")
        log = await timed("by listing", bucket, lambda: read_partition(bucket, name))
        assert len(log.segments) == listed, len(log.segments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--listed", type=int, default=2_000)
    parser.add_argument("--make", type=Path, help="only make the bucket, in this directory")
    arguments = parser.parse_args()
    counts = arguments.segments, arguments.listed
    if arguments.make:
        asyncio.run(make(*counts, arguments.make))
        return
    with tempfile.TemporaryDirectory(prefix="varve-bench-") as directory:
        # In a process of its own: what making them takes is none of the planner's memory.
        words = [f"--segments={counts[0]}", f"--listed={counts[1]}", f"--make={directory}"]
        subprocess.run([sys.executable, "-m", "bench.pipeline_plan", *words], check=True)
        asyncio.run(measure(*counts, Path(directory)))


if __name__ == "__main__":
    main()
