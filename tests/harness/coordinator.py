"""Coordinators on a log in memory and a clock that stands still; what all their tests share.

    Reply               the response to one request; a second one is an error
    HeldOffload         work for other threads, done at once or when the test says so
    ShardHarness        one shard without a loop: clock, timer, log, image of the topics
      groups              classic groups and offsets
        consumer_groups, share_groups, migration
    CoordinatorHarness  a whole coordinator on a loop: elections, crashes, time
      RuntimeHarness      the runtime alone, with shards that map keys to values
      share_state         the share coordinator
    transactions        a whole coordinator on a loop of its own, for state machines

h = RuntimeHarness()              clock, timer, log, controller, runtime
await h.start()                   elects every partition and waits for the loads
h.put("key", b"1")                a write; `h.log.hold`, `.fail_with` ... decide how it ends
await h.crash()                   nothing but the log is left
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar, cast
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.coordinator.deferred import Refuse
from broker.coordinator.deferred_records import DeferredRecords
from broker.coordinator.elected_appender import ElectedAppender
from broker.coordinator.election import ElectionState
from broker.coordinator.runtime import CoordinatorRuntime, CoordinatorTopic, OnFailed
from broker.coordinator.shard_log import ApplyAt, ShardLog
from broker.coordinator.stats import LoadStats
from broker.coordinator.topics_change import TopicsChange
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.coordinator_log import TIMEOUT_MS, TOPIC, CoordinatorLog
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.fakes.environment import FakeEnvironment
from tests.fakes.loop_turns import turns

Response = TypeVar("Response")

BY_NUMBER: Final = {code.value: code for code in ErrorCode}


class Reply(Generic[Response]):
    """Takes the response to one request, which may be parked; answered twice is an error."""

    def __init__(self) -> None:
        self._response: Response | None = None

    def __call__(self, response: Response) -> None:
        assert self._response is None, "answered twice"
        self._response = response

    @property
    def is_parked(self) -> bool:
        return self._response is None

    @property
    def response(self) -> Response:
        assert self._response is not None, "still parked"
        return self._response

    @property
    def error(self) -> ErrorCode:
        code: int = cast("Any", self.response).error_code
        return BY_NUMBER[code]


class HeartbeatResponse(Protocol):
    """What the heartbeats of consumer groups and share groups are answered with."""

    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    assignment: Any


Beat = TypeVar("Beat", bound=HeartbeatResponse)


class HeartbeatReply(Reply[Beat]):
    """Takes the response to a heartbeat; topics are named by `names`."""

    def __init__(self, names: Mapping[UUID, str]) -> None:
        super().__init__()
        self._names = names

    @property
    def message(self) -> str:
        return self.response.error_message or ""

    @property
    def epoch(self) -> int:
        assert self.error is ErrorCode.NONE, self.error
        return self.response.member_epoch

    @property
    def member_id(self) -> str:
        return self.response.member_id or ""

    @property
    def assignment(self) -> dict[str, list[int]] | None:
        """Partitions by topic; None where the response has none."""
        assignment = self.response.assignment
        if assignment is None:
            return None
        return {self._names[t.topic_id]: t.partitions for t in assignment.topic_partitions}


class HeldOffload:
    """Work for another thread (`Offload`), done at once; with `hold`, when the test says so."""

    def __init__(self, *, hold: bool = False) -> None:
        self.hold = hold
        self.waiting: list[Callable[[], None]] = []
        self.fail_with: BaseException | None = None

    def run(
        self,
        work: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        def task() -> None:
            if self.fail_with is not None:
                failed(self.fail_with)
            else:
                done(work())

        if self.hold:
            self.waiting.append(task)
        else:
            task()

    def run_one(self, *, fail_with: BaseException | None = None) -> None:
        """Do what has waited longest, or have it fail."""
        self.fail_with = fail_with
        self.waiting.pop(0)()
        self.fail_with = None

    def run_all(self) -> None:
        """Do what waits; what that brings waits again."""
        waiting, self.waiting = self.waiting, []
        for task in waiting:
            task()


def run_without_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that only ever yields to the loop, without one."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        return


class TopicsChanged(NamedTuple):
    """How an image differs from the one before."""

    changed: frozenset[str]
    deleted: frozenset[UUID]
    has_new: bool


class ShardHarness:
    """One shard without a loop, on a clock that stands still.

    With `gathering`, what is gathered is written by `end_turn`.

    Attributes:
        lost: Why the log was given up, each time.
    """

    def __init__(
        self, log: CoordinatorLog, settings: BrokerConfig, *topics: TopicImage, gathering: bool
    ) -> None:
        self.environment = FakeEnvironment()
        self.clock = self.environment.clock
        self.timer = self.environment.timer
        self.settings = settings
        self.controller = FakeController(*topics)
        self.lost: list[ErrorCode | None] = []
        self.due: list[Callable[[], None]] | None = [] if gathering else None
        self._written_to = log

    @property
    def gave_up(self) -> int:
        """How often a log was given up."""
        return len(self.lost)

    def new_log(self, topic: str, answer_within_ms: float) -> ShardLog:
        """The log of a shard of the topic's first partition."""
        return ShardLog(
            TopicPartition(topic, 0),
            appender=self._written_to,
            environment=self.environment,
            on_failed=self.lost.append,
            timeout_ms=TIMEOUT_MS,
            answer_within_ms=answer_within_ms,
            at_iteration_end=None if self.due is None else self.due.append,
        )

    def end_turn(self) -> None:
        """The iteration of the loop ends: what was gathered in it is written."""
        assert self.due is not None
        due, self.due[:] = list(self.due), []
        for callback in due:
            callback()

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def change_topics(self, *topics: TopicImage) -> TopicsChanged:
        """Replace the image; shards do not hear of it by themselves."""
        old, new = self.image.topics_by_id, self.controller._image_of(topics)
        self.controller.image = new
        now = new.topics_by_id
        changed = {topic.name for i, topic in now.items() if old.get(i) != topic}
        changed |= {topic.name for i, topic in old.items() if i not in now}
        return TopicsChanged(
            frozenset(changed), frozenset(old.keys() - now.keys()), not now.keys() <= old.keys()
        )


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
        self.deleted_topics: Mapping[UUID, str] = {}
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
        self.deleted_topics = dict(deleted_topics)
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


class Elected(Protocol):
    """A coordinator, as far as its partitions come and go."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def on_elected(self, partition_index: int, leader_epoch: int) -> None: ...


class CoordinatorHarness(ABC):
    """A whole coordinator on the test's loop."""

    def __init__(self, log: CoordinatorLog, *topics: TopicImage) -> None:
        self.environment = FakeEnvironment()
        self.clock = self.environment.clock
        self.timer = self.environment.timer
        self.log = log
        self.controller = FakeController(*topics)

    @abstractmethod
    def new(self) -> None:
        """Make a coordinator that knows nothing yet."""

    @property
    @abstractmethod
    def elected(self) -> Elected:
        """The coordinator."""

    async def start(self, *, elect: bool = True) -> Self:
        """Start, and load every partition unless told not to `elect`."""
        await self.elected.start()
        if elect:
            for index in self.log.batches:
                self.elected.on_elected(index, self.log.leader_epoch)
        await self.settle()
        return self

    async def settle(self, most: int = 60) -> None:
        """Let every task go on until it waits for time or for the test."""
        await turns(most)

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
        """The process is killed, and a new one starts: nothing but the log is left."""
        old = self.elected
        self.log.held.clear()
        self.log.commit_all()
        await old.stop()
        self.controller.listeners.clear()
        self.new()
        await self.start()


class RuntimeHarness(CoordinatorHarness):
    """See the module.

    Attributes:
        built: Every shard that was ever made, oldest first.
        fail_on: What shards built from now on raise, by the name of the call.
    """

    def __init__(self, partitions: int = 1, *, has_topic: bool = True) -> None:
        topics = [topic_image(TOPIC, 99, partitions)] if has_topic else []
        super().__init__(CoordinatorLog(range(partitions)), *topics, topic_image("data", 5, 2))
        self.log_held = DeferredRecords(self.timer)
        self.built: list[MapShard] = []
        self.fail_on: dict[str, Exception] = {}
        self.runtime: CoordinatorRuntime[MapShard]
        self.new()

    def new(self) -> None:
        self.runtime = CoordinatorRuntime(
            CoordinatorTopic(TOPIC, "values", 1, 1_000),
            self._build,
            timeout_ms=TIMEOUT_MS,
            environment=self.environment,
            replicas=cast("Any", self.log),
            controller=cast("Any", self.controller),
            stats=LoadStats(),
        )

    @property
    def elected(self) -> CoordinatorRuntime[MapShard]:
        return self.runtime

    def _build(
        self, topic_partition: TopicPartition, leader_epoch: int, on_failed: OnFailed
    ) -> MapShard:
        log = ShardLog(
            topic_partition,
            appender=ElectedAppender(cast("Any", self.log), leader_epoch, timeout_ms=TIMEOUT_MS),
            environment=self.environment,
            timeout_ms=TIMEOUT_MS,
            on_failed=on_failed,
            hold=self.log_held.add,
        )
        shard = MapShard(topic_partition, leader_epoch, log)
        shard.fail_on = self.fail_on
        self.built.append(shard)
        return shard

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
