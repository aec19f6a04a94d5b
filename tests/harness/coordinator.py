"""A coordinator's partitions in memory, which fail when told to, and a runtime of small shards.

h = RuntimeHarness()              clock, timer, log, controller, runtime
await h.start()                   elects every partition and waits for the loads
h.put("key", b"1")                a write; `h.log.hold`, `.fail_with` ... decide how it ends
await h.crash()                   nothing but the log is left
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from uuid import UUID

from broker.coordinator.deferred import Refuse
from broker.coordinator.election import ElectionState
from broker.coordinator.held_records import HeldRecords
from broker.coordinator.runtime import CoordinatorRuntime, GiveUp
from broker.coordinator.shard_log import ApplyAt, ShardLog
from broker.coordinator.stats import LoadStats
from broker.coordinator.topics_change import TopicsChange
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.records.batch import read_header, set_offset_and_epoch
from protocol.records.record import Record, iterate_records
from storage.errors import DiskError
from storage.types.topic_partition import TopicPartition
from tests.fakes.offsets_partition import FakeController, topic_image
from tests.fakes.timer import ManualTimer

TOPIC = "__harness"
TIMEOUT_MS = 5_000.0

OnCommitted = Callable[[ErrorCode, int], None]


class HeldAppend(NamedTuple):
    """An append whose outcome is still to come."""

    partition_index: int
    base_offset: int
    on_committed: OnCommitted


class CoordinatorLog:
    """Partitions of one topic in memory: the part of the replica manager that coordinators see.

    Attributes:
        batches: By partition, as they were appended.
        ends: By partition: the log end offset.
        starts: By partition: the log start offset.
        committed: By partition: the high watermark.
        failures: By partition: why its disk is not read any more.
        hold: Appends are written, and committed when `commit_held` is called.
        fail_with: Appends are refused with this, and nothing is written; KAFKA_STORAGE_ERROR fails
            the partition's log as well.
        fail_next: As `fail_with`, for the next appends.
        time_out: Appends are written, and nobody knows: REQUEST_TIMED_OUT.
        size_max: Larger batches are refused with MESSAGE_TOO_LARGE.
        fail_reads: By partition: reading raises this.
        reads: How often something was read.
        on_read: Called before each read, with the partition.
    """

    def __init__(self, partitions: Iterable[int] = (0,), *, topic: str = TOPIC) -> None:
        self.topic = topic
        self.batches: dict[int, list[bytes]] = {index: [] for index in partitions}
        self.ends: dict[int, int] = dict.fromkeys(self.batches, 0)
        self.starts: dict[int, int] = dict.fromkeys(self.batches, 0)
        self.committed: dict[int, int] = dict.fromkeys(self.batches, 0)
        self.failures: dict[int, DiskError] = {}
        self.leader_epoch = 3
        self.hold = False
        self.time_out = False
        self.fail_with: ErrorCode | None = None
        self.fail_next: list[ErrorCode] = []
        self.size_max = 1 << 20
        self.held: list[HeldAppend] = []
        self.timeouts_ms: list[float] = []
        self.fail_reads: dict[int, Exception] = {}
        self.reads = 0
        self.on_read: Callable[[int], None] = lambda index: None

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: OnCommitted,
        *,
        terms: object = None,
        timeout_ms: float = TIMEOUT_MS,
    ) -> int:
        assert topic_partition.topic == self.topic
        self.timeouts_ms.append(timeout_ms)
        index = topic_partition.partition
        failure = self.fail_next.pop(0) if self.fail_next else self.fail_with
        if len(batch) > self.size_max:
            failure = ErrorCode.MESSAGE_TOO_LARGE
        if index not in self.batches:
            failure = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if failure is not None:
            if failure is ErrorCode.KAFKA_STORAGE_ERROR:
                self.failures[index] = DiskError("failed", str(index))
            on_committed(failure, -1)
            return -1
        base_offset = self.put_batch(index, batch)
        if self.time_out:
            on_committed(ErrorCode.REQUEST_TIMED_OUT, -1)
        elif self.hold:
            self.held.append(HeldAppend(index, base_offset, on_committed))
        else:
            self.committed[index] = self.ends[index]
            on_committed(ErrorCode.NONE, base_offset)
        return base_offset

    def put_batch(self, index: int, batch: bytearray) -> int:
        """Put a batch into the log, not committed; returns its base offset."""
        base_offset = self.ends[index]
        set_offset_and_epoch(memoryview(batch), 0, base_offset, 0)
        self.batches[index].append(bytes(batch))
        self.ends[index] = read_header(memoryview(batch)).next_offset
        return base_offset

    def add_batch(self, index: int, batch: bytearray) -> None:
        """Put a committed batch into the log, as another broker might have."""
        self.put_batch(index, batch)
        self.committed[index] = self.ends[index]

    def commit_held(self) -> None:
        """Everything that was written is committed, and callers are told."""
        held, self.held = self.held, []
        self.commit_all()
        for _, base_offset, on_committed in held:
            on_committed(ErrorCode.NONE, base_offset)

    def commit_all(self) -> None:
        """As `commit_held`, but nobody is told."""
        self.committed = dict(self.ends)

    def fail_held(self, code: ErrorCode, *, lost: bool = True) -> None:
        """Callers are told an error; what they wrote is lost, or in the log all the same."""
        held, self.held = self.held, []
        for index, base_offset, _ in reversed(held) if lost else ():
            self.truncate(index, base_offset)
        if not lost:
            self.commit_all()
        for _, _, on_committed in held:
            on_committed(code, -1)

    def truncate(self, index: int, end_offset: int) -> None:
        """Forget what lies at or above `end_offset`."""
        self.batches[index] = [
            batch
            for batch in self.batches[index]
            if read_header(memoryview(batch)).base_offset < end_offset
        ]
        self.ends[index] = min(self.ends[index], end_offset)
        self.committed[index] = min(self.committed[index], end_offset)

    def records(self, index: int = 0) -> list[Record]:
        """Everything that was written to a partition."""
        return [
            record
            for batch in self.batches[index]
            for record in iterate_records(memoryview(batch), max_size=1 << 24)
        ]

    # -- the replica manager --

    def get_partition(self, topic: str, index: int) -> SimpleNamespace | None:
        if topic != self.topic or index not in self.batches:
            return None
        log = SimpleNamespace(
            log_start_offset=self.starts[index],
            log_end_offset=self.ends[index],
            next_offset=self.ends[index],
            high_watermark=self.committed[index],
            failure=self.failures.get(index),
        )
        return SimpleNamespace(log=log, leader_epoch=self.leader_epoch)

    async def read_internal(
        self, topic_partition: TopicPartition, offset: int, max_bytes: int
    ) -> memoryview:
        self.reads += 1
        index = topic_partition.partition
        self.on_read(index)
        await asyncio.sleep(0)
        if index in self.fail_reads:
            raise self.fail_reads[index]
        taken = bytearray()
        for batch in self.batches[index]:
            if read_header(memoryview(batch)).last_offset < offset:
                continue
            if taken and len(taken) + len(batch) > max_bytes:
                # As a log does: the last batch may be cut off.
                taken += batch[: max(max_bytes - len(taken), 0)]
                break
            taken += batch
        return memoryview(bytes(taken))


class MapShard:
    """A shard that maps keys to values; `broker.coordinator.shard.Shard`."""

    def __init__(self, topic_partition: TopicPartition, leader_epoch: int, log: ShardLog) -> None:
        self.topic_partition = topic_partition
        self.leader_epoch = leader_epoch
        self.log = log
        self.values: dict[bytes, bytes] = {}
        self.calls: list[str] = []
        self.markers: list[tuple[int, bool]] = []
        self.changes: list[TopicsChange] = []
        self.deleted_while_loading: Mapping[UUID, str] = {}
        self.fail_on: dict[str, Exception] = {}

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fail_on:
            raise self.fail_on[name]

    def put(
        self,
        key: bytes,
        value: bytes | None,
        done: Callable[[ErrorCode], None],
        apply_at: ApplyAt = ApplyAt.COMMIT,
    ) -> None:
        """Write one record; memory follows at `apply_at`."""
        self.log.append([(key, value)], lambda _: self._set(key, value), done, apply_at=apply_at)

    def _set(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        if value == b"damaged":
            raise DecodeError("damaged")
        self._set(key, value)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        self.markers.append((producer_id, commit))

    async def on_loaded(self) -> None:
        await asyncio.sleep(0)
        self._called("loaded")

    async def on_active(self, deleted_topics: Mapping[UUID, str]) -> None:
        self.deleted_while_loading = dict(deleted_topics)
        self._called("active")

    async def on_topics_changed(self, change: TopicsChange) -> None:
        self.changes.append(change)
        self._called("topics changed")

    def on_unloaded(self) -> None:
        assert "unloaded" not in self.calls, "unloaded twice"
        self.log.close()
        self._called("unloaded")

    def summary(self) -> str:
        return f"keys={len(self.values)}" if self.values else ""


class RuntimeHarness:
    """See the module.

    Attributes:
        built: Every shard that was ever made, oldest first.
        fail_on: What shards built from now on raise, by the name of the call.
    """

    def __init__(self, partitions: int = 1, *, has_topic: bool = True) -> None:
        self.timer = ManualTimer()
        self.clock = self.timer.clock
        self.log = CoordinatorLog(range(partitions))
        self.log_held = HeldRecords(self.timer)
        topics = [topic_image(TOPIC, 99, partitions)] if has_topic else []
        self.controller = FakeController(*topics, topic_image("data", 5, 2))
        self.built: list[MapShard] = []
        self.fail_on: dict[str, Exception] = {}
        self.runtime = self._new()

    def _new(self) -> CoordinatorRuntime[MapShard]:
        return CoordinatorRuntime(
            TOPIC,
            "values",
            self._build,
            partition_count=1,
            read_size=1_000,
            timeout_ms=TIMEOUT_MS,
            clock=self.clock,
            timer=self.timer,
            replicas=cast("Any", self.log),
            controller=cast("Any", self.controller),
            stats=LoadStats(),
        )

    def _build(
        self, topic_partition: TopicPartition, leader_epoch: int, give_up: GiveUp
    ) -> MapShard:
        log = ShardLog(
            topic_partition,
            appender=self.log,
            clock=self.clock,
            timeout_ms=TIMEOUT_MS,
            give_up=give_up,
            hold=self.log_held.add,
        )
        shard = MapShard(topic_partition, leader_epoch, log)
        shard.fail_on = self.fail_on
        self.built.append(shard)
        return shard

    async def start(self, *, elect: bool = True) -> "RuntimeHarness":
        await self.runtime.start()
        if elect:
            for index in self.log.batches:
                self.runtime.on_elected(index, self.log.leader_epoch)
            await self.settle()
        return self

    async def settle(self, turns: int = 60) -> None:
        """Let every task go on until it waits for time or for the test."""
        for _ in range(turns):
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let tasks go on, and stop at once when something is so."""
        for _ in range(1_000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never comes to that")

    async def pass_time(self, ms: float) -> None:
        self.timer.advance(ms)
        await self.settle()

    async def crash(self) -> None:
        """The process is killed, and a new one starts."""
        old = self.runtime
        self.log.held.clear()
        self.log.commit_all()
        await old.stop()
        self.controller.listeners.clear()
        self.runtime = self._new()
        await self.start()

    def shard(self, index: int = 0) -> MapShard:
        """The shard that serves a partition."""
        shard = self.runtime.shard_at(index)
        assert shard is not None
        return shard

    def state(self, index: int = 0) -> ElectionState | None:
        """Of the partition's election; None where there is none."""
        election = self.runtime._elections.get(index)
        return None if election is None else election.state

    def put(
        self, key: str, value: bytes | None, apply_at: ApplyAt = ApplyAt.COMMIT
    ) -> list[ErrorCode]:
        """Write a value; the list gets what the client is told."""
        codes: list[ErrorCode] = []
        shard = self.runtime.find(key)
        if isinstance(shard, ErrorCode):
            codes.append(shard)
        else:
            shard.put(key.encode(), value, codes.append, apply_at)
        return codes

    def call(self, key: str) -> list[object]:
        """A call that may wait; the list gets the shard, or the error."""
        answers: list[object] = []
        refuse: Refuse = answers.append
        self.runtime.when_active(key, answers.append, refuse)
        return answers
