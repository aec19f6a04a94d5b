"""Partitions of a coordinator's topic in memory, with faults on demand."""

import asyncio
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import NamedTuple

from protocol.error_codes import ErrorCode
from protocol.records.batch import read_header, set_offset_and_epoch
from protocol.records.record import Record, iterate_records
from storage.errors import DiskError
from storage.types.topic_partition import TopicPartition

TOPIC = "__harness"
TIMEOUT_MS = 5_000.0

OnCommitted = Callable[[ErrorCode, int], None]


class HeldAppend(NamedTuple):
    """An append whose outcome is still to come."""

    partition_index: int
    base_offset: int
    on_committed: OnCommitted


class Wait(NamedTuple):
    """A caller of `when_committed`."""

    partition_index: int
    first_offset: int
    end_offset: int
    on_committed: OnCommitted


class CoordinatorLog:
    """Partitions of one topic in memory: the part of the replica manager that coordinators see.

    Attributes:
        batches: By partition, as they were appended.
        ends: By partition: the log end offset.
        starts: By partition: the log start offset.
        committed: By partition: the high watermark.
        failures: By partition: why its disk is not read any more.
        epochs: By partition: the leader epoch, where it is not `leader_epoch`; appends in another
            one are refused. Without an entry every epoch is right.
        has_followers: Others may lead, where the time below has passed.
        valid_until_ms: Monotonic; until then nobody else leads.
        confirmed_ms: Monotonic; by then nobody else had led.
        waits: Callers of `when_committed`, until the end that they wait for is committed.
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
        self.epochs: dict[int, int] = {}
        self.has_followers = False
        self.valid_until_ms = float("-inf")
        self.confirmed_ms = float("-inf")
        self.waits: list[Wait] = []
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

    def takes_records(self, topic_partition: TopicPartition) -> bool:
        """Not while appends are refused with NOT_ENOUGH_REPLICAS."""
        assert topic_partition.topic == self.topic
        return self.fail_with is not ErrorCode.NOT_ENOUGH_REPLICAS

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: OnCommitted,
        *,
        terms: object = None,
        timeout_ms: float = TIMEOUT_MS,
        leader_epoch: int | None = None,
    ) -> int:
        assert topic_partition.topic == self.topic
        self.timeouts_ms.append(timeout_ms)
        index = topic_partition.partition
        failure = self.fail_next.pop(0) if self.fail_next else self.fail_with
        if len(batch) > self.size_max:
            failure = ErrorCode.MESSAGE_TOO_LARGE
        if index not in self.batches:
            failure = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if leader_epoch is not None and self.epochs.get(index, leader_epoch) != leader_epoch:
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
            self._end_waits()
        return base_offset

    def when_committed(
        self,
        partition: SimpleNamespace,
        first_offset: int,
        end_offset: int,
        on_committed: OnCommitted,
        timeout_ms: float,
    ) -> None:
        """As the replica manager's; it never times out by itself: see `end_waits`."""
        self.waits.append(Wait(partition.index, first_offset, end_offset, on_committed))
        self._end_waits()

    def _end_waits(self) -> None:
        over = [one for one in self.waits if self.committed[one.partition_index] >= one.end_offset]
        self.waits = [one for one in self.waits if one not in over]
        for one in over:
            one.on_committed(ErrorCode.NONE, one.first_offset)

    def end_waits(self, code: ErrorCode) -> None:
        """Whoever waits for a commit is told an error."""
        waits, self.waits = self.waits, []
        for one in waits:
            one.on_committed(code, -1)

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
        self._end_waits()

    def commit_held(self) -> None:
        """Everything that was written is committed, and callers are told."""
        held, self.held = self.held, []
        self.commit_all()
        for _, base_offset, on_committed in held:
            on_committed(ErrorCode.NONE, base_offset)

    def commit_all(self) -> None:
        """As `commit_held`, but nobody is told."""
        self.committed = dict(self.ends)
        self._end_waits()

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

    def leader_of(self, topic: str, index: int) -> SimpleNamespace | None:
        if topic != self.topic or index not in self.batches:
            return None

        def delete_records(offset: int) -> int:
            self.starts[index] = offset
            return offset

        log = SimpleNamespace(
            delete_records=delete_records,
            log_start_offset=self.starts[index],
            log_end_offset=self.ends[index],
            next_offset=self.ends[index],
            high_watermark=self.committed[index],
            failure=self.failures.get(index),
        )
        return SimpleNamespace(
            log=log,
            index=index,
            leader_epoch=self.epochs.get(index, self.leader_epoch),
            leading=self if self.has_followers else None,
            has_led_since=lambda since_ms: not self.has_followers or since_ms <= self.confirmed_ms,
            is_in_doubt=lambda now_ms: self.has_followers and now_ms > self.valid_until_ms,
        )

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
