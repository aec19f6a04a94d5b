"""The controller against a plain dictionary, through crashes at every commit (Hypothesis)."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.controller.configs.configs import ConfigOperation, Operation
from broker.controller.controller import Controller
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.images.results import Result
from broker.controller.producer_ids import PRODUCER_ID_BLOCK_SIZE
from broker.controller.topics.topics import NewPartitions, NewTopic
from protocol.error_codes import ErrorCode
from tests.effort import examples
from tests.fakes.broker.controller import open_controller
from tests.fakes.broker.metadata_store import Fault, MemoryDisk, MemoryStore

NAMES = st.sampled_from(["a", "b", "c", "d.e", "d_e", "x" * 249, "bad name", ""])
COUNTS = st.integers(-2, 300)
VALUES = st.sampled_from(["1", "86400000", "-1", "nonsense", "-5"])
GOOD_VALUES = {"1", "86400000", "-1"}

_T = TypeVar("_T")


class ControllerMachine(RuleBasedStateMachine):
    """Topics as (partition count, settings) by name; what is answered must be what is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.disk = MemoryDisk()
        self.topics: dict[str, tuple[int, dict[str, str]]] = {}
        self.group: dict[str, str] = {}
        self.ids: dict[str, object] = {}
        self.old_ids: set[object] = set()
        self.given: set[int] = set()
        self.starts = 0
        self.start()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return self.loop.run_until_complete(coroutine)

    def start(self) -> None:
        self.starts += 1

        async def open_() -> tuple[MemoryStore, Controller]:
            store = MemoryStore(disk=self.disk)
            return store, await open_controller(store, seed=self.starts)

        self.store, self.controller = self.run(open_())

    def teardown(self) -> None:
        self.run(self.controller.aclose())
        self.loop.close()

    def legal(self, name: str) -> bool:
        collides = {"d.e": "d_e", "d_e": "d.e"}.get(name) in self.topics
        return name not in ("", "bad name") and not collides

    @rule(names=st.lists(NAMES, unique=True, max_size=4), count=COUNTS, value=VALUES)
    def create(self, names: list[str], count: int, value: str) -> None:
        configs = [("retention.ms", value)]
        new = [NewTopic(name, count, 1, configs=configs) for name in names]
        results = self.run(self.controller.create_topics(new))
        for name, result in zip(names, results, strict=True):
            valid = count not in (0, -2) and value in GOOD_VALUES
            expected = name not in self.topics and self.legal(name) and valid
            assert (result.error is ErrorCode.NONE) is expected, (name, result)
            if expected:
                assert result.topic is not None
                kept = 1 if count == -1 else count
                self.topics[name] = (kept, {"retention.ms": value})
                self.ids[name] = result.topic.topic_id
                assert result.topic.topic_id not in self.old_ids
                self.old_ids.add(result.topic.topic_id)

    @rule(name=NAMES, refused=st.booleans())
    def delete(self, name: str, refused: bool) -> None:
        topic = self.controller.image.topics.get(name)
        assert (topic is not None) == (name in self.topics)
        if topic is None:
            return
        self.store.faults = [Fault.REFUSED] if refused else []
        results = self.run(self.controller.delete_topics([topic.topic_id]))
        assert (results[topic.topic_id].error is ErrorCode.NONE) is not refused
        if not refused:
            del self.topics[name], self.ids[name]

    @rule(name=NAMES, count=COUNTS)
    def extend(self, name: str, count: int) -> None:
        (result,) = self.run(self.controller.create_partitions([NewPartitions(name, count)]))
        present = self.topics.get(name)
        expected = present is not None and count > present[0]
        assert (result.error is ErrorCode.NONE) is expected
        if present is not None and expected:
            self.topics[name] = (count, present[1])

    @rule(
        name=NAMES,
        key=st.sampled_from(["retention.ms", "retention.bytes"]),
        value=st.none() | VALUES,
    )
    def configure(self, name: str, key: str, value: str | None) -> None:
        operation = Operation.DELETE if value is None else Operation.SET
        resource = ConfigResource(ResourceType.TOPIC, name)
        result = self.alter(resource, ConfigOperation(key, operation, value))
        # retention.bytes has no lower bound.
        good = value is None or value in GOOD_VALUES or (key == "retention.bytes" and value == "-5")
        expected = good and name in self.topics
        assert (result.error is ErrorCode.NONE) is expected
        if expected:
            settings_ = self.topics[name][1]
            settings_.pop(key, None)
            if value is not None:
                settings_[key] = value

    @rule(value=st.none() | st.sampled_from(["45000", "50000", "1", "x"]))
    def configure_group(self, value: str | None) -> None:
        operation = Operation.DELETE if value is None else Operation.SET
        resource = ConfigResource(ResourceType.GROUP, "g/1")
        change = ConfigOperation("consumer.session.timeout.ms", operation, value)
        result = self.alter(resource, change)
        expected = value in (None, "45000", "50000")
        assert (result.error is ErrorCode.NONE) is expected
        if expected:
            self.group = {} if value is None else {change.name: value}

    def alter(self, resource: ConfigResource, change: ConfigOperation) -> Result:
        changes = {resource: [change]}
        return self.run(self.controller.incremental_alter_configs(changes))[resource]

    @rule(count=st.integers(1, 950))
    def take_producer_ids(self, count: int) -> None:
        async def take() -> list[int]:
            return [await self.controller.producer_ids.next() for _ in range(count)]

        taken = self.run(take())
        # The next block may be on its way: a fault of a later rule is not meant for it.
        self.run(self.controller.producer_ids.aclose())
        assert len(set(taken)) == count
        assert not self.given & set(taken)
        self.given.update(taken)

    @rule()
    def take_a_block(self) -> None:
        block = self.run(self.controller.allocate_producer_ids())
        assert len(block) == PRODUCER_ID_BLOCK_SIZE
        assert self.given.isdisjoint(block)
        self.given.update(block)

    @rule()
    def crash(self) -> None:
        """The process is gone; what was durable is all there is."""
        self.run(self.controller.aclose())
        self.start()

    @rule(name=st.sampled_from(["a", "b", "c"]), stored=st.booleans())
    def crash_while_creating(self, name: str, stored: bool) -> None:
        """Nobody was told what became of it: either is right, by half is not."""
        self.store.faults = [Fault.LOST_ANSWER if stored else Fault.REFUSED]
        (result,) = self.run(self.controller.create_topics([NewTopic(name, 200, 1)]))
        self.store.faults = []
        self.crash()
        topic = self.controller.image.topics.get(name)
        if name in self.topics:
            assert result.error is ErrorCode.TOPIC_ALREADY_EXISTS
            return
        assert result.error is ErrorCode.REQUEST_TIMED_OUT
        assert (topic is not None) is stored
        if topic is not None:
            self.topics[name] = (200, {})
            self.ids[name] = topic.topic_id
            self.old_ids.add(topic.topic_id)

    @invariant()
    def image_is_the_model(self) -> None:
        image = self.controller.image
        found = {
            name: (len(topic.partitions), dict(topic.overrides))
            for name, topic in image.topics.items()
        }
        assert found == self.topics
        assert {name: topic.topic_id for name, topic in image.topics.items()} == self.ids
        assert {t.topic_id: t for t in image.topics.values()} == dict(image.topics_by_id)
        for topic in image.topics.values():
            for index, partition in enumerate(topic.partitions):
                assert (partition.index, partition.leader) == (index, 1)
        assert dict(image.config(ConfigResource(ResourceType.GROUP, "g/1"))) == self.group


TestController = ControllerMachine.TestCase
TestController.settings = examples(40, steps=25)
