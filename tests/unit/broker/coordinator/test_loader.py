"""Replaying a partition: every record once, in slices."""

import pytest

from broker.coordinator.loader import ShardLoader
from broker.coordinator.shard_log import ShardLog
from broker.coordinator.slices import Slices
from protocol.errors import DecodeError
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.control import build_end_transaction_marker
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.coordinator_log import TIMEOUT_MS, TOPIC, CoordinatorLog
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.harness.coordinator import MapShard

WHERE = TopicPartition(TOPIC, 0)


class Recording(MapShard):
    """Notes what is replayed."""

    def __init__(self, log: CoordinatorLog) -> None:
        self.clock = ManualClock()
        self.replayed: list[tuple[bytes, bytes | None, int, int]] = []
        super().__init__(
            WHERE,
            0,
            ShardLog(
                WHERE,
                appender=log,
                environment=FakeEnvironment(clock=self.clock),
                timeout_ms=TIMEOUT_MS,
                on_failed=lambda code: None,
            ),
        )

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        super().replay(key, value, offset, producer_id)
        self.clock.advance(0.5)
        self.replayed.append((key, value, offset, producer_id))


async def load(
    log: CoordinatorLog, start: int = 0, *, read_size: int = 1_000, wanted_reads: int = 1_000
) -> tuple[Recording, ShardLoader]:
    shard = Recording(log)
    loader = ShardLoader(
        log,
        WHERE,
        shard,
        read_size=read_size,
        slices=Slices(shard.clock, slice_ms=1.0, work_per_check=1),
        is_wanted=lambda: log.reads < wanted_reads,
    )
    await loader.load(start, log.ends[0])
    return shard, loader


@pytest.fixture
def log() -> CoordinatorLog:
    return CoordinatorLog()


async def test_an_empty_log(log: CoordinatorLog) -> None:
    shard, loader = await load(log)
    assert shard.replayed == []
    assert loader.records == log.reads == 0


@pytest.mark.parametrize("read_size", [1, 100, 250, 100_000])
async def test_every_record_once_however_much_a_read_brings(
    log: CoordinatorLog, read_size: int
) -> None:
    """Cut batches included."""
    for number in range(10):
        records = [(b"%d" % p, b"%d" % number, (), 0) for p in range(3)]
        log.add_batch(0, build_batch(records, codec=Codec.GZIP if number % 2 else 0))
    shard, loader = await load(log, read_size=read_size)
    assert [record[2] for record in shard.replayed] == list(range(30))
    assert shard.replayed[-1] == (b"2", b"9", 29, -1)
    assert loader.records == 30


async def test_a_log_that_starts_inside_of_a_batch(log: CoordinatorLog) -> None:
    """What was deleted is not replayed."""
    log.add_batch(0, build_batch([(b"%d" % n, b"", (), 0) for n in range(4)]))
    shard, loader = await load(log, 2)
    assert [record[0] for record in shard.replayed] == [b"2", b"3"]
    assert loader.records == 2


async def test_transactional_records_and_markers(log: CoordinatorLog) -> None:
    log.add_batch(
        0, build_batch([(b"a", b"1", (), 0)], producer_id=7, producer_epoch=0, transactional=True)
    )
    log.add_batch(0, build_batch([(b"b", b"1", (), 0)], producer_id=7, producer_epoch=0))
    for commit in (True, False):
        log.add_batch(
            0,
            build_end_transaction_marker(
                producer_id=7,
                producer_epoch=0,
                commit=commit,
                coordinator_epoch=0,
                timestamp_ms=1,
            ),
        )
    shard, _ = await load(log)
    assert [(r[0], r[3]) for r in shard.replayed] == [(b"a", 7), (b"b", -1)]
    assert shard.markers == [(7, True), (7, False)]


async def test_a_damaged_record_is_passed_over_loudly(
    log: CoordinatorLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.add_batch(
        0,
        build_batch([(b"a", b"damaged", (), 0), (None, b"no key", (), 0), (b"b", None, (), 0)]),
    )
    shard, loader = await load(log)
    assert [record[0] for record in shard.replayed] == [b"b"]
    assert (loader.records, loader.skipped_records) == (3, 1)
    assert "record skipped while loading partition=__harness-0 offset=0" in caplog.text


async def test_a_damaged_batch_stops_the_load(log: CoordinatorLog) -> None:
    """A shard that forgets must not serve."""
    log.add_batch(0, build_batch([(b"a", b"1", (), 0)]))
    log.batches[0][0] = log.batches[0][0][:-5] + b"\xff" * 5
    with pytest.raises(DecodeError):
        await load(log)


async def test_nothing_more_is_read_once_it_is_not_wanted(log: CoordinatorLog) -> None:
    for _ in range(5):
        log.add_batch(0, build_batch([(b"a", bytes(900), (), 0)]))
    shard, _ = await load(log, wanted_reads=2)
    assert len(shard.replayed) == log.reads == 2
