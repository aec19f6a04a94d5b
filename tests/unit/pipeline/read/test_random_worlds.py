"""Whatever a partition's life was: the bucket gives the rows of its log, each once.

Hundreds of lives from seeds (`random_world`), each planned and read at both isolation levels, whole
and in ranges, in pieces of any size, by every kernel, and compared with a plain reader of the log.
"""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.plan.bucket import Bucket, BucketOptions
from pipeline.plan.errors import TopicError
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import RemotePiece
from pipeline.plan.splits import OffsetRange, SplitLimits, plan_pieces
from pipeline.plan.time_offsets import offset_for_time
from pipeline.read.bytes.open_buckets import OpenBuckets
from pipeline.read.decode.kernels import KERNEL_NAMES, load_kernel
from pipeline.read.piece.piece_rows import PieceReader, ReadOptions
from storage.environment.clock import SystemClock
from tests.unit.pipeline.read.random_world import RandomWorld, Row
from tests.unit.storage.log.log_model import NOW_MS

SEEDS = range(40)
MANY_SEEDS = range(1_000, 2_000)
COLUMNS = ("offset", "timestamp", "key", "value", "headers")
NAME = "memory"


def kernels() -> Iterator[str]:
    for name in KERNEL_NAMES:
        try:
            load_kernel(name)
        except ValueError:
            continue
        yield name


class Reader:
    """Pieces of a random world's bucket, read as an executor does."""

    def __init__(self, world: RandomWorld) -> None:
        self._world = world
        # Whoever read it before has closed it.
        world.bucket.store.closed = False

        async def opener(_: BucketOptions) -> Bucket:
            return world.bucket.open()

        self._buckets = OpenBuckets(opener)
        self._lent = self._buckets.lend(BucketOptions(NAME))

    def log(self) -> PartitionLog | None:
        try:
            return asyncio.run(self._world.bucket.log())
        except (TopicError, KeyError):
            return None

    def pieces(
        self, log: PartitionLog, start: int, end: int, limits: SplitLimits, *, read_committed: bool
    ) -> list[RemotePiece]:
        bucket, thread = self._lent
        call = plan_pieces(
            bucket, [OffsetRange(log, start, end)], limits, read_committed=read_committed
        )
        return thread.run(call)

    def rows(
        self,
        pieces: list[RemotePiece],
        kernel: str,
        *,
        read_committed: bool,
        fail_on_data_loss: bool = True,
    ) -> list[Row]:
        options = ReadOptions(
            BucketOptions(NAME),
            columns=COLUMNS,
            read_committed=read_committed,
            fail_on_data_loss=fail_on_data_loss,
            kernel=kernel,
        )
        reader = PieceReader(options, self._buckets, self._world.bucket.disk, SystemClock())
        return [row for piece in pieces for batch in reader.rows(piece) for row in _rows_of(batch)]

    def offset_for_time(self, log: PartitionLog, time_ms: int) -> int | None:
        bucket, thread = self._lent
        return thread.run(offset_for_time(bucket, log, time_ms, read_committed=False))

    def close(self) -> None:
        self._buckets.close()


def _rows_of(batch: Any) -> Iterator[Row]:
    stamps = batch.column(1).cast(pa.int64()).to_pylist()
    columns = [batch.column(at).to_pylist() for at in (0, 2, 3, 4)]
    for offset, stamp, key, value, headers in zip(columns[0], stamps, *columns[1:], strict=True):
        pairs = tuple((one["key"], one["value"]) for one in headers or ())
        yield Row(offset, stamp // 1000, key, value, pairs)


def cut(rows: list[Row], start: int, end: int) -> list[Row]:
    offsets = [row.offset for row in rows]
    return rows[bisect_left(offsets, start) : bisect_left(offsets, end)]


def compare(seed: int) -> None:
    world = RandomWorld(seed)
    world.live()
    random = Random(seed)
    reader = Reader(world)
    try:
        log = reader.log()
        if log is None:
            assert not world.copied
            return
        if not world.is_told:
            return
        told = "\n".join([f"seed {seed}", *world.steps, str(log.segments)])
        check_log(world, log, told)
        for read_committed in (False, True):
            true = world.rows(read_committed=read_committed)
            # Of records that were deleted a bucket without a history does not know.
            start = max(log.log_start_offset, world.leader.log.log_start_offset)
            end = max(start, log.end(read_committed=read_committed))
            expected = cut(true, start, end)
            ranges = [(start, end)]
            if end > start:
                one, other = random.choices(range(start, end + 1), k=2)
                ranges.append((min(one, other), max(one, other)))
            for begin, stop in ranges:
                limits = SplitLimits(
                    random.choice((300, 3_000, 1 << 20)),
                    random.choice((None, 1, 7)),
                    random.choice((None, None, 1, 13)) if stop - begin < 40 else None,
                )
                kernel = random.choice([*kernels()])
                pieces = reader.pieces(log, begin, stop, limits, read_committed=read_committed)
                found = reader.rows(pieces, kernel, read_committed=read_committed)
                assert found == cut(expected, begin, stop), f"{told}\n{begin} {stop} {limits}"
        check_times(world, reader, log, random, told)
    finally:
        reader.close()


def check_log(world: RandomWorld, log: PartitionLog, told: str) -> None:
    """Start, ends and gaps."""
    assert not log.damaged, told
    assert log.end_offset <= world.leader.end, told
    assert log.stable_end_offset <= log.end_offset, told
    # What nobody has told to be empty has no rows, either: only others' copies may be missing.
    offsets = [row.offset for row in world.rows(read_committed=False)]
    for gap in log.gaps:
        inside = offsets[bisect_left(offsets, gap.start) : bisect_left(offsets, gap.end)]
        assert not inside, f"{gap}\n{told}"
    if world.leader.log.log_start_offset:
        return  # transactions that began below are not to be found any more
    open_before_end = [
        one.first for one in world.transactions() if one.first < log.end_offset <= one.last
    ]
    least = max(log.log_start_offset, min([log.end_offset, *open_before_end]))
    assert log.stable_end_offset >= least, told


def check_times(
    world: RandomWorld, reader: Reader, log: PartitionLog, random: Random, told: str
) -> None:
    """As a broker has it: aborted records and markers count."""
    if log.log_start_offset < world.leader.log.log_start_offset:
        return
    times = [
        (offset, stamp)
        for offset, stamp in world.times()
        if log.log_start_offset <= offset < log.end_offset
    ]
    stamps = [stamp for _, stamp in times]
    wanted = [NOW_MS + random.randrange(110_000) for _ in range(3)]
    if stamps:
        wanted += [max(stamps), max(stamps) + 1, min(stamps)]
    for time_ms in wanted:
        first = next((offset for offset, stamp in times if stamp >= time_ms), None)
        found = reader.offset_for_time(log, time_ms)
        assert found == first, f"time {time_ms}\n{told}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bucket_gives_the_rows_of_its_log(seed: int) -> None:
    compare(seed)


def test_the_lives_have_everything() -> None:
    """Else the comparison says little."""
    seen: Counter[str] = Counter()
    for seed in range(25):
        world = RandomWorld(seed)
        world.live()
        try:
            log = asyncio.run(world.bucket.log())
        except (TopicError, KeyError):
            continue
        objects = world.bucket.store.objects
        transactions = world.transactions()
        facts = {
            "compared": world.is_told,
            "lost what was copied": not world.is_told,
            "aborted": any(not one.is_committed and not one.is_open for one in transactions),
            "ends below an open one": log.stable_end_offset < log.end_offset,
            "epochs": len(log.leader_epochs) > 1,
            "superseded copies": len(world.copied) > len(log.segments),
            "cut": any(one.start_offset > one.metadata.start_offset for one in log.segments),
            "empty before": any(b'"emptyFrom"' in one.data for one in objects.values()),
            "deleted": world.leader.log.log_start_offset > 0,
            "history": log.summary is not None,
            "unfinished": any("B" * 22 in key for key in objects),
        }
        seen.update(name for name, is_so in facts.items() if is_so)
    missing = [name for name in facts if not seen[name]]
    assert not missing, seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_many_buckets_give_the_rows_of_their_logs(seed: int) -> None:
    compare(seed)
