"""Markers in partitions: once, twice, too late, and where nobody is."""

import asyncio
import errno
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import pytest

from broker.groups.coordinator import OFFSETS_TOPIC
from broker.replicas.replica_manager import ReplicaManager
from broker.transactions.interfaces import PartitionErrors
from broker.transactions.partitions.markers import PARTITIONS_PER_SLICE, RETRY_MS, LocalMarkerWriter
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from protocol.records.batch import iterate_batches
from protocol.records.control import ControlType, parse_end_transaction_marker
from storage.errors import DiskError
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker
from tests.code_path import python_only
from tests.unit.broker.replicas.test_partition_writes import WritersWorld, gated
from tests.unit.broker.world import World, batch

__all__ = ["gated"]

T = TopicPartition("t", 0)
OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
PID = 7


class FakeGroups:
    def __init__(self) -> None:
        self.ended: list[tuple[int, int, bool]] = []
        self.before: list[int] = []
        self.loading: set[int] = set()

    def is_loading_partition(self, partition_index: int) -> bool:
        return partition_index in self.loading

    def end_transaction(
        self, partition_index: int, producer_id: int, *, commit: bool, before_record: int
    ) -> None:
        self.ended.append((partition_index, producer_id, commit))
        self.before.append(before_record)


class Writer:
    """A writer whose outcomes are collected."""

    def __init__(self, world: World) -> None:
        self.groups = FakeGroups()
        self.writer = LocalMarkerWriter(world.replicas, cast("Any", self.groups))
        self.outcomes: list[PartitionErrors] = []

    def __call__(
        self,
        partitions: Iterable[TopicPartition] = (T,),
        *,
        epoch: int = 0,
        commit: bool = True,
        coordinator_epoch: int = 3,
        version: int = 0,
    ) -> PartitionErrors | None:
        """Write; the outcome, if it is there at once."""
        before = len(self.outcomes)
        marker = TransactionMarker(PID, epoch, commit, coordinator_epoch, version)
        self.writer.write(marker, list(partitions), self.outcomes.append)
        return self.outcomes[-1] if len(self.outcomes) > before else None


@pytest.fixture
def write(world: World) -> Writer:
    return Writer(world)


def open_transaction(world: World, topic_partition: TopicPartition = T, *, epoch: int = 0) -> None:
    partition = world.replicas.replica_of(*topic_partition)
    assert partition is not None
    records = batch(
        b"a", producer_id=PID, producer_epoch=epoch, base_sequence=0, transactional=True
    )
    partition.append(memoryview(records), world.clock.now_ms(), AppendOrigin.COORDINATOR)


@pytest.mark.parametrize("commit", [False, True])
async def test_a_marker_ends_the_transaction(world: World, write: Writer, commit: bool) -> None:
    """In every partition; the last stable offset follows at once."""
    logs = [world.add("t", index).log for index in range(3)]
    for index in range(3):
        open_transaction(world, TopicPartition("t", index))
    partitions = [TopicPartition("t", index) for index in range(3)]
    assert write(partitions, commit=commit) == dict.fromkeys(partitions, ErrorCode.NONE)
    assert [log.last_stable_offset for log in logs] == [2, 2, 2]
    batch_ = await world.replicas.read_internal(T, 1, 1000)
    found = parse_end_transaction_marker(batch_)
    assert found is not None
    assert found.control_type is (ControlType.COMMIT if commit else ControlType.ABORT)
    assert found.coordinator_epoch == 3
    assert logs[0].reader.aborted_transactions(0, 10) == ([] if commit else [(PID, 0)])
    assert write.groups.ended == []


async def test_nothing_to_write_to(write: Writer) -> None:
    """An empty transaction is over at once."""
    assert write([]) == {}


async def test_markers_of_the_coordinator_wait_for_the_next_turn(world: World) -> None:
    """The answer that the client waits for leaves first."""
    log = world.add("t").log
    open_transaction(world)
    turns: list[Callable[[], None]] = []
    outcomes: list[PartitionErrors] = []
    writer = LocalMarkerWriter(world.replicas, cast("Any", FakeGroups()), soon=turns.append)
    writer.write(TransactionMarker(PID, 0, True, 3, 0), [T], outcomes.append)
    assert (log.log_end_offset, outcomes) == (1, [])
    (turn,) = turns
    turn()
    assert (log.log_end_offset, outcomes) == (2, [{T: ErrorCode.NONE}])


@python_only
async def test_transactions_that_end_together_share_a_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One append for each partition, in the order of requests; each has its own answer."""
    partitions = [TopicPartition("t", index) for index in range(3)]
    logs = [world.add("t", index).log for index in range(3)]
    counts: list[int] = []
    append = ReplicaManager.append_markers

    def counting(replicas: ReplicaManager, partition: Any, markers: Any) -> Any:
        counts.append(len(markers))
        return append(replicas, partition, markers)

    monkeypatch.setattr(ReplicaManager, "append_markers", counting)
    turns: list[Callable[[], None]] = []
    outcomes: dict[int, PartitionErrors] = {}
    writer = LocalMarkerWriter(world.replicas, cast("Any", FakeGroups()), soon=turns.append)
    # The last one's producer has moved on in t-0.
    writer.write(TransactionMarker(2, 7, True, 3, 2), partitions[:1], lambda errors: None)
    turns.pop()()
    counts.clear()
    for producer_id, where in enumerate((partitions, partitions[1:], partitions)):
        writer.write(
            TransactionMarker(producer_id, 4, producer_id == 0, 3, 2),
            where,
            partial(outcomes.__setitem__, producer_id),
        )
    (turn,) = turns
    turn()
    assert sorted(counts) == [1, 3, 3]
    assert outcomes == {
        0: dict.fromkeys(partitions, ErrorCode.NONE),
        1: dict.fromkeys(partitions[1:], ErrorCode.NONE),
        2: {
            partitions[0]: ErrorCode.INVALID_PRODUCER_EPOCH,
            **dict.fromkeys(partitions[1:], ErrorCode.NONE),
        },
    }
    assert [log.log_end_offset for log in logs] == [2, 3, 3]
    found = [
        header.producer_id
        for _, header in iterate_batches(await world.replicas.read_internal(partitions[1], 0, 1000))
    ]
    assert found == [0, 1, 2]


async def test_the_same_marker_twice_in_one_turn(world: World) -> None:
    """A coordinator was loaded anew while its predecessor's marker waited: the second finds it."""
    log = world.add("t").log
    open_transaction(world, epoch=4)
    turns: list[Callable[[], None]] = []
    outcomes: list[PartitionErrors] = []
    writer = LocalMarkerWriter(world.replicas, cast("Any", FakeGroups()), soon=turns.append)
    for _ in range(2):
        writer.write(TransactionMarker(PID, 5, True, 3, 2), [T], outcomes.append)
    while turns:
        turns.pop(0)()
    assert outcomes == [{T: ErrorCode.NONE}] * 2
    assert log.log_end_offset == 2


async def test_one_that_is_told_and_fails_harms_nobody(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """All others hear of theirs."""
    other = TopicPartition("t", 1)
    log = world.add("t").log
    world.add("t", 1)
    turns: list[Callable[[], None]] = []
    outcomes: list[PartitionErrors] = []
    writer = LocalMarkerWriter(world.replicas, cast("Any", FakeGroups()), soon=turns.append)

    def fail(_errors: PartitionErrors) -> None:
        raise RuntimeError("a bug")

    writer.write(TransactionMarker(1, 0, True, 3, 0), [T], fail)
    writer.write(TransactionMarker(2, 0, True, 3, 0), [T], outcomes.append)
    writer.write(TransactionMarker(3, 0, True, 3, 0), [other], outcomes.append)
    turns.pop()()
    assert outcomes == [{T: ErrorCode.NONE}, {other: ErrorCode.NONE}]
    assert log.log_end_offset == 2
    assert "caller of a transaction marker failed partition=t-0" in caplog.text


async def test_one_that_is_told_late_and_fails_harms_nobody(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """When the disk has them nobody is there who would have them written again."""
    world.add("t", config=TopicConfig(flush_messages=1))
    turns: list[Callable[[], None]] = []
    outcomes: list[PartitionErrors] = []
    writer = LocalMarkerWriter(world.replicas, cast("Any", FakeGroups()), soon=turns.append)

    def fail(_errors: PartitionErrors) -> None:
        raise RuntimeError("a bug")

    writer.write(TransactionMarker(1, 0, True, 3, 0), [T], fail)
    writer.write(TransactionMarker(2, 0, True, 3, 0), [T], outcomes.append)
    turns.pop()()
    await world.until(lambda: bool(outcomes))
    assert outcomes == [{T: ErrorCode.NONE}]
    assert "caller of a transaction marker failed partition=t-0" in caplog.text


async def test_offsets_that_cannot_be_decided(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who asked hears of it, and asks again; other partitions have their markers."""
    world.add(OFFSETS_TOPIC)
    world.add("t")
    groups = FakeGroups()
    outcomes: list[PartitionErrors] = []
    writer = LocalMarkerWriter(world.replicas, cast("Any", groups))

    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(groups, "end_transaction", fail)
    writer.write(TransactionMarker(PID, 0, True, 3, 0), [OFFSETS, T], outcomes.append)
    assert outcomes == [{OFFSETS: ErrorCode.UNKNOWN_SERVER_ERROR, T: ErrorCode.NONE}]
    assert f"offsets could not be decided partition={OFFSETS}" in caplog.text


async def test_more_than_a_turn_takes(world: World) -> None:
    """The rest has the turn after."""
    for index in range(3):
        world.add("t", index)
    turns: list[Callable[[], None]] = []
    outcomes: list[PartitionErrors] = []
    writer = LocalMarkerWriter(world.replicas, cast("Any", FakeGroups()), soon=turns.append)
    partitions = [TopicPartition("t", index) for index in range(3)]
    for producer_id in range(PARTITIONS_PER_SLICE):
        writer.write(TransactionMarker(producer_id, 0, True, 3, 0), partitions, outcomes.append)
    for number in range(1, 4):
        (turn,) = turns
        turns.clear()
        turn()
        assert len(outcomes) == number * PARTITIONS_PER_SLICE // 3
    assert not turns


async def test_a_repeated_marker_of_version_2(world: World, write: Writer) -> None:
    """After a crash of the coordinator: it is there, and is not written again."""
    log = world.add("t").log
    open_transaction(world, epoch=4)
    assert write(epoch=5, version=2) == {T: ErrorCode.NONE}
    assert write(epoch=5, version=2) == {T: ErrorCode.NONE}
    assert log.log_end_offset == 2


async def test_a_repeated_marker_after_a_restart_of_the_log(world: World, write: Writer) -> None:
    """Coordinator epoch and producer epoch are in the log."""
    log = world.add("t").log
    open_transaction(world, epoch=4)
    write(epoch=5, version=2)
    log.close()
    log = world.add("t").log
    assert write(epoch=5, version=2, coordinator_epoch=4) == {T: ErrorCode.NONE}
    assert log.log_end_offset == 2


async def test_a_late_marker_of_version_2(world: World, write: Writer) -> None:
    """The next transaction is open under the marker's epoch: it must not be ended by this one."""
    log = world.add("t").log
    open_transaction(world, epoch=4)
    write(epoch=5, version=2)
    open_transaction(world, epoch=5)
    assert write(epoch=5, version=2) == {T: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert log.last_stable_offset == 2
    assert write(epoch=4, version=2) == {T: ErrorCode.INVALID_PRODUCER_EPOCH}


async def test_a_repeated_marker_of_older_versions(world: World, write: Writer) -> None:
    """One more, which ends nothing."""
    log = world.add("t").log
    open_transaction(world)
    assert write() == write() == {T: ErrorCode.NONE}
    assert (log.log_end_offset, log.last_stable_offset) == (3, 3)


async def test_a_marker_for_a_partition_without_a_batch(world: World, write: Writer) -> None:
    """It was added to the transaction, and the batch is still on its way: it is kept out."""
    partition = world.add("t", requires_verification=True)
    state = partition.log.producer_state
    guard = state.begin_verification(PID, 0, 0, 0, supports_epoch_bump=True)
    assert guard is not None
    assert write(epoch=1, version=2) == {T: ErrorCode.NONE}
    assert partition.log.log_end_offset == 1


async def test_a_coordinator_that_has_been_replaced(world: World, write: Writer) -> None:
    """Its epoch is older than what the log has seen, also when the marker is there already."""
    world.add("t")
    open_transaction(world)
    write(coordinator_epoch=4)
    open_transaction(world)
    fenced = {T: ErrorCode.TRANSACTION_COORDINATOR_FENCED}
    assert write(coordinator_epoch=3) == fenced
    assert write(coordinator_epoch=4) == {T: ErrorCode.NONE}


async def test_partitions_that_are_not_here(world: World, write: Writer) -> None:
    """Deleted: nothing is left to end. Not open yet: try again."""
    here, later, gone = (TopicPartition("t", index) for index in range(3))
    world.add("t")
    world.replicas.is_known = lambda topic, index: index < 2
    assert write([here, later, gone]) == {
        here: ErrorCode.NONE,
        later: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        gone: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_offsets_are_decided_with_the_marker(world: World, write: Writer) -> None:
    """Also by one that is there already: the shard may not have heard of it."""
    world.add(OFFSETS_TOPIC)
    open_transaction(world, OFFSETS)
    assert write([OFFSETS], epoch=1, version=2) == {OFFSETS: ErrorCode.NONE}
    assert write([OFFSETS], epoch=1, version=2) == {OFFSETS: ErrorCode.NONE}
    assert write.groups.ended == [(0, PID, True)] * 2
    assert write.groups.before == [2, 2], "offsets written behind the marker are not its own"


async def test_offsets_are_decided_when_the_marker_is_committed(
    world: World, write: Writer
) -> None:
    """It could be lost with this broker, and offsets that were fetched would go back."""
    partition = world.add(OFFSETS_TOPIC, config=TopicConfig(flush_messages=1))
    open_transaction(world, OFFSETS)
    assert write([OFFSETS], epoch=1, version=2) is None
    assert partition.log.log_end_offset == 2
    assert write.groups.ended == []
    await world.until(lambda: bool(write.outcomes))
    assert write.outcomes == [{OFFSETS: ErrorCode.NONE}]
    assert write.groups.ended == [(0, PID, True)]


class Waits:
    """Stands in for `when_committed`: each wait ends when the test says so."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits: list[Callable[[ErrorCode, int], None]] = []

        def when_committed(
            _replicas: object, _partition: object, _first: int, _end: int, done: Any, _ms: float
        ) -> None:
            self.waits.append(done)

        monkeypatch.setattr(ReplicaManager, "when_committed", when_committed)

    def end(self, code: ErrorCode) -> None:
        self.waits.pop(0)(code, -1 if code else 1)


@python_only
async def test_offsets_of_a_marker_that_was_committed_late_are_decided_all_the_same(
    world: World, write: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator may find it there by another way, and not come again."""
    world.add(OFFSETS_TOPIC)
    open_transaction(world, OFFSETS)
    waits = Waits(world, monkeypatch)
    write([OFFSETS])
    waits.end(ErrorCode.REQUEST_TIMED_OUT)
    assert write.outcomes == [{OFFSETS: ErrorCode.REQUEST_TIMED_OUT}]
    assert not waits.waits
    world.timer.advance(RETRY_MS)
    waits.end(ErrorCode.NONE)
    assert write.groups.ended == [(0, PID, True)]
    assert len(write.outcomes) == 1


@python_only
@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT])
async def test_a_marker_of_an_epoch_that_is_over_decides_nothing(
    world: World, write: Writer, monkeypatch: pytest.MonkeyPatch, code: ErrorCode
) -> None:
    """The shard of the next epoch is read from the log, with the marker or without it."""
    partition = world.add(OFFSETS_TOPIC)
    open_transaction(world, OFFSETS)
    waits = Waits(world, monkeypatch)
    write([OFFSETS])
    partition.leader_epoch += 1
    waits.end(code)
    assert write.groups.ended == []
    assert not waits.waits


async def test_offsets_that_are_being_read_back(world: World, write: Writer) -> None:
    """The loader may be past the end already, so the marker has to wait."""
    log = world.add(OFFSETS_TOPIC).log
    open_transaction(world, OFFSETS)
    write.groups.loading.add(0)
    assert write([OFFSETS]) == {OFFSETS: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert log.log_end_offset == 1
    write.groups.loading.clear()
    assert write([OFFSETS]) == {OFFSETS: ErrorCode.NONE}


async def test_refused_markers_decide_nothing(world: World, write: Writer) -> None:
    """The offsets still wait."""
    world.add(OFFSETS_TOPIC)
    open_transaction(world, OFFSETS, epoch=3)
    assert write([OFFSETS], epoch=2) == {OFFSETS: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert write.groups.ended == []


async def test_the_answer_waits_for_the_disk(world: World, write: Writer) -> None:
    """With `flush.messages`; so does the answer to the repeated one, which writes nothing."""
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    open_transaction(world)
    assert write(epoch=1, version=2) is None
    assert write(epoch=1, version=2) is None
    await world.until(lambda: len(write.outcomes) == 2)
    assert write.outcomes == [{T: ErrorCode.NONE}] * 2
    assert partition.log.last_stable_offset == partition.log.log_end_offset == 2


@python_only
async def test_a_disk_that_refuses(
    world: World, write: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partition goes offline; the coordinator tries again."""
    partition = world.add("t")
    open_transaction(world)

    def fail(*_args: object, **_options: object) -> None:
        raise DiskError("write", "/d", 5)

    monkeypatch.setattr(type(partition.log.markers), "append", fail)
    assert write() == {T: ErrorCode.KAFKA_STORAGE_ERROR}


async def test_a_large_transaction_lets_others_work(world: World, write: Writer) -> None:
    """A slice at a time; one answer for all."""
    many = [TopicPartition("t", index) for index in range(PARTITIONS_PER_SLICE + 1)]
    assert write(many) is None
    world.timer.advance(5)
    assert write.outcomes == [dict.fromkeys(many, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_a_marker_that_found_no_room_is_not_there(gated: WritersWorld) -> None:
    """The producers have counted it until they are read again; whoever asks meanwhile waits."""
    log = gated.add("t").log
    gated.gated.gate.set()
    open_transaction(gated)
    await gated.until(lambda: log.log_end_offset == 1)
    gated.gated.gate.clear()
    gated.gated.waiting.clear()
    writer = LocalMarkerWriter(gated.replicas, cast("Any", FakeGroups()))
    marker = TransactionMarker(PID, 1, True, 3, 2)
    outcomes: list[PartitionErrors] = []

    def done(outcome: PartitionErrors) -> None:
        outcomes.append(outcome)
        if len(outcomes) == 1:
            assert log.is_rolling_back
            writer.write(marker, [T], outcomes.append)

    writer.write(marker, [T], done)
    await asyncio.to_thread(gated.gated.waiting.wait, 30)
    gated.gated.code = errno.ENOSPC
    gated.gated.break_directory(str(gated.directory))
    gated.gated.gate.set()
    await gated.until(lambda: len(outcomes) == 2)
    assert outcomes == [{T: ErrorCode.KAFKA_STORAGE_ERROR}, {T: ErrorCode.NOT_ENOUGH_REPLICAS}]
    gated.gated.broken.clear()
    await gated.until(lambda: not log.is_rolling_back)
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0)
    entry = log.producer_state.last_entry(PID)
    assert entry is not None
    assert (entry.epoch, entry.txn_first_offset) == (0, 0)
    # With room again it is written, and once.
    await gated.until(log.accept_appends)
    for _ in range(2):
        count = len(outcomes)
        writer.write(marker, [T], outcomes.append)
        await gated.until(lambda: len(outcomes) > count)  # noqa: B023  the loop waits for it
        assert outcomes[-1] == {T: ErrorCode.NONE}
    assert (log.log_end_offset, log.last_stable_offset) == (2, 2)
