"""A broker's death after every change of its disk, with the logs as they are.

Two transactional ids commit, abort and go on in partitions that they share; their markers are
written together, their Complete records with whatever is next. After each change of the disk a copy
of it is taken, as a kill would leave it, along with what the clients know by then. On each copy the
logs are recovered, the coordinator goes on, and both ids begin a new life.

Whatever was written is visible to readers of committed records everywhere or nowhere; once; as its
client was told; and never before its client asked for a commit. Nothing stays open. With the old
protocol all transactions of a life have one epoch, so a marker that comes twice could end the next
one.
"""

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import pytest
from typing_extensions import override

from broker.coordinator.deferred_records import DEFER_MS
from broker.replicas.replica_manager import ReplicaManager
from broker.transactions.coordinator.transaction_coordinator import (
    TRANSACTION_TOPIC,
    TransactionCoordinator,
)
from broker.transactions.interfaces import PartitionErrors, ProducerIdAndEpoch
from broker.transactions.partitions.markers import LocalMarkerWriter
from config.broker import BrokerConfig
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, parse_end_transaction_marker
from protocol.records.record import iterate_records
from storage.log.log import Log
from storage.producers.table import ProducerSettings
from storage.producers.verification import TransactionTerms
from storage.types.topic_partition import TopicPartition
from tests.code_path import python_only
from tests.effort import swept
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, Event, FakeFilesystem
from tests.fakes.timer import ManualTimer
from tests.harness.transactions import Ended, FakeProducerIds
from tests.unit.broker.world import lead

# A class of Python inherits from a compiled one here.
pytestmark = python_only

E = ErrorCode
A, B = (TopicPartition("t", index) for index in range(2))
STATE = TopicPartition(TRANSACTION_TOPIC, 0)
DIRECTORY = "/d"


class Replicas(ReplicaManager):
    """Reads from a disk in memory."""

    @override
    async def read_internal(
        self, topic_partition: TopicPartition, offset: int, max_bytes: int
    ) -> memoryview:
        partition = self.leader_of(*topic_partition)
        assert partition is not None
        found = partition.log.reader.read(
            offset,
            max_bytes=max_bytes,
            end_offset=partition.log.high_watermark,
            min_one_batch=True,
        )
        if found is None:
            return memoryview(b"")
        return memoryview(found.file.read_at(found.length, found.position))


class DiskAtOnce:
    """What would be done in a thread is done when this returns."""

    def of(self, _path: str) -> "DiskAtOnce":
        return self

    def submit(self, work: Callable[[], object], done: Callable[[object, None], None]) -> None:
        done(work(), None)


class NoGroups:
    """Nobody commits offsets."""


@dataclass
class Transaction:
    """What its client knows."""

    values: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    asked: bool | None = None
    told: bool | None = None


class Broker:
    """Logs, markers and coordinator are the real ones."""

    def __init__(
        self, filesystem: FakeFilesystem, version: int, *, life: int = 0, flushes: bool = False
    ) -> None:
        self.version = version
        self.loop = asyncio.new_event_loop()
        clock = ManualClock()
        self.timer = ManualTimer(clock)
        self.clock = clock
        self.replicas = Replicas(
            clock=clock, timer=self.timer, disk=cast("Any", DiskAtOnce()), loop=self.loop
        )
        self.logs: dict[TopicPartition, Log] = {}
        for number, tp in enumerate((STATE, A, B)):
            image = topic_image(tp.topic, number, 2)
            # Segments are rolled between, and sometimes before, markers of one moment.
            config = TopicConfig(segment_bytes=400) if tp is not STATE else TopicConfig()
            if flushes:
                config = config.model_copy(update={"flush_messages": 1})
            self.logs[tp] = Log.open(
                f"{DIRECTORY}/{tp}",
                tp,
                topic_id=image.topic_id,
                config=config,
                environment=FakeEnvironment(filesystem=filesystem, clock=clock),
                producers=ProducerSettings(transaction_partition_verification_enable=True),
            )
            lead(
                self.replicas,
                self.replicas.open_partition(tp, image.topic_id, self.logs[tp]),
                life,
            )
        controller = FakeController(topic_image(TRANSACTION_TOPIC, 99, 1), topic_image("t", 1, 2))
        ids = FakeProducerIds()
        ids.given += 100 * life
        cast("Any", controller).producer_ids = ids
        object.__setattr__(controller.image, "features", {"transaction.version": version})
        self.turns: list[Callable[[], None]] = []
        self.coordinator = TransactionCoordinator(
            BrokerConfig(),
            FakeEnvironment(clock=clock, timer=self.timer),
            self.replicas,
            cast("Any", controller),
            LocalMarkerWriter(self.replicas, cast("Any", NoGroups()), soon=self.turns.append),
        )
        self.loop.run_until_complete(self._start(life))

    async def _start(self, leader_epoch: int) -> None:
        await self.coordinator.start()
        self.coordinator.on_elected(0, leader_epoch)
        for _ in range(50):
            await asyncio.sleep(0)
        assert not self.coordinator.is_loading
        self.next_turn()

    def close(self) -> None:
        self.loop.run_until_complete(self.coordinator.stop())
        self.loop.close()

    def next_turn(self) -> None:
        """Markers are written."""
        while self.turns:
            self.turns.pop(0)()

    def init(self, name: str) -> ProducerIdAndEpoch:
        for _ in range(3):
            ended = Ended()
            self.coordinator.init_producer_id(name, 60_000, None, ended)
            if ended.code is E.NONE:
                return ended.producer
            assert ended.code is E.CONCURRENT_TRANSACTIONS, ended.code
            self.next_turn()
        raise AssertionError("it does not end")

    def produce(
        self, name: str, producer: ProducerIdAndEpoch, tp: TopicPartition, value: bytes, first: int
    ) -> None:
        """As the produce handler does it; `first` is the sequence."""
        partition = self.replicas.leader_of(*tp)
        assert partition is not None
        guard = partition.log.producer_state.begin_verification(
            *producer, first, self.clock.now_ms(), supports_epoch_bump=self.version >= 2
        )
        if guard is not None:
            answers: list[PartitionErrors] = []
            if self.version < 2:
                codes: list[ErrorCode] = []
                self.coordinator.add_partitions(
                    name, producer, [tp], client_transaction_version=0, done=codes.append
                )
                assert codes == [E.NONE]
            self.coordinator.add_or_verify(
                name, producer, [tp], add=self.version >= 2, done=answers.append
            )
            assert answers == [{tp: E.NONE}]
        batch = build_batch(
            [(None, value, (), self.clock.now_ms())],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=first,
            transactional=True,
        )
        partition.append(
            memoryview(batch),
            self.clock.now_ms(),
            terms=None if guard is None else TransactionTerms(guard),
        )


class Client:
    """One transactional id, and all it has done."""

    def __init__(self, broker: Broker, name: str, asked: dict[str, Transaction]) -> None:
        self.broker = broker
        self.name = name
        self.asked = asked
        self.count = 0
        self.sequences: dict[TopicPartition, int] = {}
        self.producer = broker.init(name)

    def write(self, *partitions: TopicPartition) -> None:
        transaction = self.asked.setdefault(f"{self.name}-{self.count}", Transaction())
        for tp in partitions:
            first = self.sequences.get(tp, 0)
            value = f"{self.name}-{self.count}-{tp}-{first}".encode()
            transaction.values.append((tp, value))
            self.broker.produce(self.name, self.producer, tp, value, first)
            self.sequences[tp] = first + 1

    def end(self, *, commit: bool) -> None:
        transaction = self.asked[f"{self.name}-{self.count}"]
        transaction.asked = commit
        ended = Ended()
        self.broker.coordinator.end_transaction(
            self.name,
            self.producer,
            commit=commit,
            client_transaction_version=self.broker.version if self.broker.version >= 2 else 0,
            done=ended,
        )
        assert ended.code is E.NONE, ended.code
        transaction.told = commit
        self.count += 1
        if self.broker.version >= 2:
            self.producer = ended.producer
            self.sequences.clear()


def run(broker: Broker, asked: dict[str, Transaction]) -> None:
    one, two = (Client(broker, name, asked) for name in ("one", "two"))
    for ours, theirs in ((True, False), (False, True), (False, False), (True, True)):
        one.write(A, B)
        two.write(B, A, B)
        one.end(commit=ours)
        two.end(commit=theirs)
        broker.next_turn()
        if ours == theirs:
            broker.timer.advance(2 * DEFER_MS)
    check(broker, asked)
    one.write(A)
    one.end(commit=True)
    broker.next_turn()
    one.write(B, A)
    two.write(A)
    two.end(commit=False)
    broker.next_turn()
    one.write(B)


def visible(log: Log) -> tuple[list[bytes], set[bytes]]:
    """What a reader of committed records sees, and all that is in the log."""
    everything: list[bytes] = []
    seen: list[bytes] = []
    open_: dict[int, list[bytes]] = {}
    # As consumers do it: left out from the first offset of an aborted one up to its marker.
    aborted = sorted(log.reader.aborted_transactions(0, log.last_stable_offset), key=lambda t: t[1])
    ignored: set[int] = set()
    by_index: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        found = log.reader.read(
            offset, max_bytes=1 << 20, end_offset=log.last_stable_offset, min_one_batch=True
        )
        assert found is not None
        data = memoryview(found.file.read_at(found.length, found.position))
        for position, header in iterate_batches(data):
            batch = data[position : position + header.size]
            offset = header.next_offset
            while aborted and aborted[0][1] <= header.base_offset:
                ignored.add(aborted.pop(0)[0])
            if header.is_control:
                marker = parse_end_transaction_marker(batch)
                assert marker is not None
                values = open_.pop(header.producer_id, [])
                if marker.control_type is ControlType.COMMIT:
                    seen += values
                else:
                    ignored.discard(header.producer_id)
                continue
            values = [bytes(r.value or b"") for r in iterate_records(batch, max_size=1 << 20)]
            everything += values
            open_.setdefault(header.producer_id, []).extend(values)
            if header.producer_id not in ignored:
                by_index += values
    assert not any(open_.values()), "below the last stable offset all is decided"
    assert sorted(seen) == sorted(by_index), "the index of aborted transactions tells otherwise"
    return seen, set(everything)


def check(broker: Broker, asked: dict[str, Transaction]) -> None:
    for tp in (A, B):
        log = broker.logs[tp]
        assert log.last_stable_offset == log.log_end_offset, "something is open"
    read = {tp: visible(broker.logs[tp]) for tp in (A, B)}
    for tp, (seen, _) in read.items():
        assert len(seen) == len(set(seen)), tp
    for name, transaction in asked.items():
        there = [(tp, value) for tp, value in transaction.values if value in read[tp][1]]
        outcomes = {value in read[tp][0] for tp, value in there}
        assert len(outcomes) <= 1, f"{name} is torn"
        if True in outcomes:
            assert transaction.asked, f"{name} was committed by nobody"
        if transaction.asked is not None:
            assert there == transaction.values, f"{name} has lost records"
        if transaction.told is not None:
            assert outcomes == {transaction.told}, f"{name} was told {transaction.told}"


@dataclass
class Copy:
    """A disk as a kill would leave it, and what the clients know at that moment."""

    event: str
    disk: FakeFilesystem
    asked: dict[str, Transaction]


def go_on(disk: FakeFilesystem, version: int, *, life: int, flushes: bool = False) -> Broker:
    """The next process, and clients that begin anew."""
    broker = Broker(disk, version, life=life, flushes=flushes)
    for name in ("one", "two"):
        broker.init(name)
    return broker


def copied(
    filesystem: FakeFilesystem, asked: dict[str, Transaction], *, seed: int | None = None
) -> list[Copy]:
    """From now on, after every change of the disk, one more of these.

    With a seed as after a power cut: of what was not synced some is there, and some of that torn.
    """
    copies: list[Copy] = []

    def changed(event: Event) -> None:
        keep = KEEP_ALL if seed is None else Random(event.number + seed)
        disk = filesystem.after_crash(keep)
        copies.append(Copy(f"{event.kind} {event.path}", disk, copy.deepcopy(asked)))

    filesystem.observer = changed
    return copies


def check_after(broker: Broker, *deaths: Copy) -> None:
    try:
        check(broker, deaths[-1].asked)
    except AssertionError as error:
        raise AssertionError(f"after {[death.event for death in deaths]}") from error
    broker.close()


@pytest.mark.parametrize("version", [0, 2])
def test_death_after_every_change_of_the_disk(version: int) -> None:
    """And, of some of these deaths, once more while the next process goes on."""
    filesystem = FakeFilesystem()
    asked: dict[str, Transaction] = {}
    broker = Broker(filesystem, version)
    copies = copied(filesystem, asked)
    run(broker, asked)
    filesystem.observer = None
    broker.close()
    assert len(copies) > 60
    twice = 0
    for number, first in swept(list(enumerate(copies)), 5):
        # Copies cost more than all that is looked at, so only where they are.
        seconds = copied(first.disk, first.asked) if number % 40 == 25 else []
        found = go_on(first.disk, version, life=1)
        first.disk.observer = None
        check_after(found, first)
        twice += len(seconds)
        for second in seconds:
            check_after(go_on(second.disk, version, life=2), first, second)
    assert twice > 30


@pytest.mark.parametrize("version", [0, 2])
def test_power_cut_where_logs_wait_for_the_disk(version: int) -> None:
    filesystem = FakeFilesystem()
    asked: dict[str, Transaction] = {}
    broker = Broker(filesystem, version, flushes=True)
    for path in ("/", DIRECTORY):
        filesystem.sync_directory(path)
    copies = copied(filesystem, asked, seed=1_000 * version)
    run(broker, asked)
    filesystem.observer = None
    broker.close()
    assert len(copies) > 200
    for death in swept(copies, 5):
        check_after(go_on(death.disk, version, life=1, flushes=True), death)
