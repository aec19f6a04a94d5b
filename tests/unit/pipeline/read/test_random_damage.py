"""Objects that are not what was written: an error, or with `failOnDataLoss=false` fewer rows; told.

Buckets of random lives, of which one object at a time has a byte changed, or is cut off, anywhere:
segments, side files, manifests and histories. Whatever is read of it is right.
"""

import logging
from random import Random

import pytest

from pipeline.plan.errors import PlanError
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.splits import NO_LIMITS
from pipeline.read.read_errors import ReadError
from tests.fakes.tiered.memory_object_store import StoredObject
from tests.unit.pipeline.read.random_world import RandomWorld, Row
from tests.unit.pipeline.read.test_random_worlds import Reader, cut, kernels
from tiered.errors import TieredError

SEEDS = range(8)
MANY_SEEDS = range(500, 800)
DAMAGES = 12
"""Of each bucket."""

TOLD = (PlanError, ReadError, TieredError)


def damaged(data: bytes, random: Random) -> bytes:
    """The same with something wrong."""
    at = random.randrange(len(data))
    if random.random() < 0.3:
        return data[:at]
    if random.random() < 0.2:
        return data + bytes(random.randrange(1, 9))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def read(
    world: RandomWorld, *, fail_on_data_loss: bool, kernel: str
) -> tuple[PartitionLog, list[Row]] | None:
    """What is read of the bucket, as it is now; None: it was told that something is wrong."""
    reader = Reader(world)
    try:
        log = reader.log()
        if log is None or log.problems:
            return None
        start, end = log.log_start_offset, log.end(read_committed=True)
        pieces = reader.pieces(log, start, end, NO_LIMITS, read_committed=True)
        rows = reader.rows(pieces, kernel, read_committed=True, fail_on_data_loss=fail_on_data_loss)
    except TOLD:
        return None
    else:
        return log, rows
    finally:
        reader.close()


def compare(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Also that what is whole is read, and that a loss within a segment is borne if it may be."""
    world = RandomWorld(seed)
    world.live(25)
    if not world.is_told or not world.copied:
        return
    random = Random(seed)
    objects = world.bucket.store.objects
    assert read(world, fail_on_data_loss=True, kernel="numpy") is not None
    for _ in range(DAMAGES):
        key = random.choice(sorted(objects))
        compare_damaged(world, key, damaged(objects[key].data, random), random, caplog)
    # What is drawn may all be found out before anything is read: sizes and sums of small objects.
    segment = random.choice([key for key in sorted(objects) if key.endswith(".log")])
    data = objects[segment].data
    changed = data[:-1] + bytes([data[-1] ^ 1])
    assert compare_damaged(world, segment, changed, random, caplog), f"seed {seed}, {segment}"


def compare_damaged(
    world: RandomWorld, key: str, changed: bytes, random: Random, caplog: pytest.LogCaptureFixture
) -> bool:
    """Read with one object changed; whether its loss was borne."""
    true = world.rows(read_committed=True)
    first = world.leader.log.log_start_offset
    whole = world.bucket.store.objects[key]
    world.bucket.store.objects[key] = StoredObject(changed, whole.modified_ms)
    told = f"{key}, {len(whole.data)} bytes, {len(changed)} now"
    kernel = random.choice([*kernels()])
    found = read(world, fail_on_data_loss=True, kernel=kernel)
    if found is not None:
        log, rows = found
        expected = cut(true, log.log_start_offset, log.end(read_committed=True))
        assert cut(rows, first, log.end_offset) == expected, told
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        lossy = read(world, fail_on_data_loss=False, kernel=kernel)
    world.bucket.store.objects[key] = whole
    if lossy is None:
        return False
    log, rows = lossy
    expected = cut(true, log.log_start_offset, log.end(read_committed=True))
    given = cut(rows, first, log.end_offset)
    remaining = iter(expected)
    assert all(row in remaining for row in given), told
    if len(given) < len(expected):
        assert "offsets skipped" in caplog.text, told
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_damage_is_told_and_never_a_wrong_row(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    compare(seed, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_damage_of_many_buckets_is_told(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    compare(seed, caplog)
