"""A coordinator runtime of small shards, on a log in memory.

h = RuntimeHarness()              clock, timer, log, controller, runtime
await h.start()                   elects every partition and waits for the loads
h.put("key", b"1")                a write; `h.log.hold`, `.fail_with` ... decide how it ends
await h.crash()                   nothing but the log is left
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast
from uuid import UUID

from broker.coordinator.deferred import Refuse
from broker.coordinator.deferred_records import DeferredRecords
from broker.coordinator.election import ElectionState
from broker.coordinator.runtime import CoordinatorRuntime, CoordinatorTopic, GiveUp
from broker.coordinator.shard_log import ApplyAt, ShardLog
from broker.coordinator.stats import LoadStats
from broker.coordinator.topics_change import TopicsChange
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.coordinator_log import TIMEOUT_MS, TOPIC, CoordinatorLog
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.fakes.environment import FakeEnvironment
from tests.fakes.timer import ManualTimer


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
        self.environment = FakeEnvironment(timer=self.timer)
        self.log = CoordinatorLog(range(partitions))
        self.log_held = DeferredRecords(self.timer)
        topics = [topic_image(TOPIC, 99, partitions)] if has_topic else []
        self.controller = FakeController(*topics, topic_image("data", 5, 2))
        self.built: list[MapShard] = []
        self.fail_on: dict[str, Exception] = {}
        self.runtime = self._new()

    def _new(self) -> CoordinatorRuntime[MapShard]:
        return CoordinatorRuntime(
            CoordinatorTopic(TOPIC, "values", 1, 1_000),
            self._build,
            timeout_ms=TIMEOUT_MS,
            environment=self.environment,
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
            environment=self.environment,
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
