"""Reading the log back."""

import asyncio
import logging
from typing import Any

import pytest

from broker.coordinator.loader import ShardLoader
from broker.coordinator.slices import Slices
from broker.transactions.coordinator.completion import Completion
from broker.transactions.coordinator.shard import TransactionShard
from broker.transactions.coordinator.stats import TransactionStats
from broker.transactions.coordinator.transaction_coordinator import TRANSACTION_TOPIC
from broker.transactions.coordinator.transaction_metadata import IllegalTransitionError
from broker.transactions.coordinator.transaction_state import TransactionState as S
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal.transaction_log import (
    TransactionLogValue,
    encode_transaction_log_key,
    encode_transaction_log_value,
)
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.harness.transactions import A, B, Coordinator, FakeStateLog, new_shard

EMPTY = TransactionLogValue(7, 3, 60_000, 0, None, 5, -1)
ONGOING = EMPTY._replace(state=1, partitions={"t": [0, 1]}, start_timestamp_ms=4)


def put(log: FakeStateLog, *records: tuple[bytes | None, bytes | None]) -> None:
    batch = build_batch([(key, value, (), 1) for key, value in records])
    log.append_coordinated(TopicPartition(TRANSACTION_TOPIC, 0), batch, lambda code, offset: None)


def record(name: str, value: TransactionLogValue | None, version: int = 1) -> tuple[bytes, Any]:
    octets = None if value is None else encode_transaction_log_value(value, version)
    return encode_transaction_log_key(name), octets


def load(log: FakeStateLog, read_size: int = 1 << 20) -> tuple[TransactionShard, TransactionStats]:
    stats = TransactionStats()
    shard = new_shard(log, stats)
    loader = ShardLoader(
        log,
        TopicPartition(TRANSACTION_TOPIC, 0),
        shard,
        read_size=read_size,
        slices=Slices(ManualClock()),
        is_wanted=lambda: True,
    )

    async def read() -> None:
        await loader.load(0, log.ends[0])
        await shard.on_loaded()

    asyncio.run(read())
    return shard, stats


@pytest.fixture
def log() -> FakeStateLog:
    return FakeStateLog()


def test_empty_log_is_an_empty_shard(log: FakeStateLog) -> None:
    assert load(log)[0].transactions == {}


@pytest.mark.parametrize("version", [0, 1])
def test_newest_record_counts(log: FakeStateLog, version: int) -> None:
    put(log, record("a", EMPTY), record("b", EMPTY))
    put(log, record("a", ONGOING, version))
    transactions = load(log)[0].transactions
    assert transactions["a"].state is S.ONGOING
    assert transactions["a"].partitions == {A, B}
    assert transactions["a"].start_timestamp_ms == 4
    assert transactions["b"].producer == (7, 3)


def test_tombstones_forget(log: FakeStateLog) -> None:
    put(log, record("a", EMPTY), record("b", EMPTY))
    put(log, record("a", None), record("never", None))
    assert list(load(log)[0].transactions) == ["b"]


@pytest.mark.parametrize("read_size", [1, 100, 1_000])
def test_log_is_read_in_pieces(log: FakeStateLog, read_size: int) -> None:
    for number in range(50):
        put(log, record(f"a{number % 20}", EMPTY._replace(producer_epoch=number)))
    transactions = load(log, read_size)[0].transactions
    assert sorted(m.producer_epoch for m in transactions.values()) == list(range(30, 50))


def test_what_is_not_known_is_passed_over(
    log: FakeStateLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Other keys quietly, damage loudly."""
    caplog.set_level(logging.ERROR)
    put(log, (b"\x00\x09new", b"x"), (None, b"no key"), record("a", EMPTY))
    put(
        log,
        (encode_transaction_log_key("cut"), b"\x00\x01\x00"),
        (encode_transaction_log_key("newer"), b"\x00\x07" + bytes(50)),
        record("dead", EMPTY._replace(state=6)),
        record("odd", EMPTY._replace(state=99)),
        record("nobody", ONGOING._replace(state=2, producer_id=-1)),
        record("unborn", EMPTY._replace(producer_epoch=-1)),
    )
    marker = build_end_transaction_marker(
        producer_id=1, producer_epoch=0, commit=True, coordinator_epoch=0, timestamp_ms=1
    )
    log.append_coordinated(TopicPartition(TRANSACTION_TOPIC, 0), marker, lambda code, offset: None)
    shard, stats = load(log)
    assert list(shard.transactions) == ["a"]
    assert stats.skipped_records == 7
    assert len(caplog.records) == 6


def test_damaged_batch_stops_the_load(log: FakeStateLog) -> None:
    put(log, record("a", EMPTY))
    log.batches[0][0] = log.batches[0][0][:-5] + b"\xff" * 5
    with pytest.raises(DecodeError):
        load(log)


def test_coordinator_without_its_log_serves_nothing(
    c: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    c.new_producer()
    c.log.batches[0][0] = c.log.batches[0][0][:-5] + b"\xff" * 5
    c.crash()
    assert c.init()[0] is ErrorCode.NOT_COORDINATOR
    assert c.transactions.stats.load_failures == 1
    assert "cannot be loaded" in caplog.text


def test_one_that_cannot_go_on_holds_up_nobody(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither transactions of its partition nor partitions that are loaded after it."""
    c = Coordinator(partitions=2)
    ids: list[str] = []
    for partition in (0, 0, 1):
        ids.append(
            next(
                name
                for name in (f"tx{n}" for n in range(1000))
                if c.transactions.partition_for(name) == partition and name not in ids
            )
        )
    c.data.failing[A] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for name in ids:
        producer = c.new_producer(transactional_id=name)
        c.add(producer, A, transactional_id=name)
        assert c.end(producer, transactional_id=name)[0] is ErrorCode.NONE
    c.data.failing.clear()
    resume = Completion.resume

    def failing(self: Any, shard: Any, metadata: Any) -> None:
        if metadata.transactional_id == ids[0]:
            raise IllegalTransitionError("damaged")
        resume(self, shard, metadata)

    monkeypatch.setattr(Completion, "resume", failing)
    c.crash()
    states = [c.metadata(name).state for name in ids]
    assert states == [S.PREPARE_COMMIT, S.COMPLETE_COMMIT, S.COMPLETE_COMMIT]
    assert "could not be completed after loading" in caplog.text
    c.close()


def test_a_load_that_fails_in_its_own_way(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the one above: the next partition is loaded."""
    c = Coordinator(partitions=2)
    read = FakeStateLog.read_internal

    async def failing(
        self: FakeStateLog, tp: TopicPartition, offset: int, max_bytes: int
    ) -> memoryview:
        if tp.partition == 0:
            raise RuntimeError("bug")
        return await read(self, tp, offset, max_bytes)

    names = {c.transactions.partition_for(f"tx{n}"): f"tx{n}" for n in range(100)}
    for name in names.values():
        c.new_producer(transactional_id=name)
    monkeypatch.setattr(FakeStateLog, "read_internal", failing)
    c.crash()
    assert c.init(transactional_id=names[0])[0] is ErrorCode.NOT_COORDINATOR
    assert c.init(transactional_id=names[1])[0] is ErrorCode.NONE
    assert "cannot be loaded" in caplog.text
    c.close()
