"""Time on the event loop of look-ups in a partition with very many remote segments.

    python -m bench.remote_segments [--segments 50000]

Each is timed alone, over and over, in milliseconds: the median and the longest.

    expiry            one look of the expiry task at a partition of which nothing has expired
    expiry, changed   the same after another segment was copied
    verify            which segment is to be read again next
    aborts            which segment's transaction index a read_committed fetch has to look at next
    owned             whose the objects of one listed page are
    sums              one turn of making the sums when a leadership begins
"""

import argparse
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.environment.local_filesystem import LocalFilesystem
from storage.log.log import Log
from tiered.maintenance.scrub_pass import OwnedSegments
from tiered.maintenance.verified_position import Position
from tiered.maintenance.verifier import _first_finished
from tiered.metadata.lineage import Lineage
from tiered.metadata.readable_bytes import ReadableBytes
from tiered.metadata.segment_index import RemoteLogMetadataCache
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)
from tiered.tasks.expirer import STEPS_PER_SLICE
from tiered.tasks.expiry_plan import RetentionLimits, plan_expiry

PARTITION = TopicIdPartition(UUID(int=7), "t", 0)
PAGE_SEGMENTS = 333
"""Of which a listed page of 1,000 objects tells."""


def copy(cache: RemoteLogMetadataCache, at: int, last: int) -> None:
    """One more segment; none but the last has aborted transactions."""
    metadata = RemoteLogSegmentMetadata(
        RemoteLogSegmentId(PARTITION, UUID(int=at + 1)),
        *(at * 10, at * 10 + 9, at, 1, 0, 1 << 30, (SegmentEpoch(0, at * 10),)),
        txn_index_empty=at < last,
    )
    cache.add(metadata)
    cache.update(metadata.id.bytes, SegmentState.COPY_SEGMENT_FINISHED, 1, 0, None)


def timed(work: Callable[[], Any], times: int) -> tuple[float, float]:
    """Median and longest, in ms."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken), max(taken)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="looks at very many remote segments")
    parser.add_argument("--segments", type=int, default=50_000)
    count = parser.parse_args().segments
    cache = RemoteLogMetadataCache()
    for at in range(count):
        copy(cache, at, count - 1)
    epochs = LeaderEpochCache("/nonexistent/leader-epoch-checkpoint", LocalFilesystem())
    epochs._entries, epochs._starts = [0], [0]
    log = cast("Log", SimpleNamespace(leader_epochs=epochs, log_end_offset=count * 10 + 10**6))
    sums = ReadableBytes()
    turns = []
    done = False
    while not done:
        began = time.perf_counter()
        done = sums.advance(cache, log, STEPS_PER_SLICE)
        turns.append((time.perf_counter() - began) * 1000)

    def expiry() -> None:
        assert sums.advance(cache, log, STEPS_PER_SLICE)
        plan = plan_expiry(
            *(cache.segments(), cache.unfinished(), Lineage(epochs.entries(), log.log_end_offset)),
            *(RetentionLimits(-1, sums.bytes), sums),
            log_start_offset=0,
            leader_epoch=0,
            only_local_bytes=0,
            in_flight=(),
        )
        assert plan.is_empty

    added = iter(range(count, count + 10_000))

    def changed() -> None:
        copy(cache, next(added), 10**9)
        expiry()

    middle = Position.of(cache.segments()[count // 2])
    page = [UUID(int=at + 1) for at in range(count // 2, count // 2 + PAGE_SEGMENTS)]
    rows = {
        "expiry": timed(expiry, 200),
        "expiry, changed": timed(changed, 200),
        "verify": timed(lambda: _first_finished(cache.segments(), middle), 200),
        "aborts": timed(lambda: cache.find_next_with_transactions(0, 5), 200),
        "owned": timed(lambda: [one in OwnedSegments(cache) for one in page], 200),
        "sums": (statistics.median(turns), max(turns)),
    }
    print(f"{count} segments, ms      median  longest")
    for name, (median, longest) in rows.items():
        print(f"{name:24}{median:8.3f}{longest:9.3f}")


if __name__ == "__main__":
    main()
