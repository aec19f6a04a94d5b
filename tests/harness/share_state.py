"""A share coordinator on a log that outlives it, and calls of its persister."""

from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.coordinator.persister import (
    SharePartitionKey,
)
from broker.share.state.share_coordinator import ShareCoordinator
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode as E
from protocol.internal.share_state import StateBatch
from tests.fakes.broker.coordinator_log import CoordinatorLog
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.coordinator import CoordinatorHarness

TOPIC_ID = UUID(int=5)
KEY = SharePartitionKey("group", TOPIC_ID, 0)
DATA = topic_image("data", 5, 2)
STATE = topic_image(SHARE_GROUP_STATE, 99, 1)


def keys_of(count: int) -> list[SharePartitionKey]:
    return [SharePartitionKey(f"group {number}", TOPIC_ID, 0) for number in range(count)]


class Coordinator(CoordinatorHarness):
    """A share coordinator on a log that outlives it."""

    def __init__(self, *topics: Any, **settings: Any) -> None:
        super().__init__(CoordinatorLog(topic=SHARE_GROUP_STATE), *topics)
        self.settings = BrokerConfig(
            share_coordinator_state_topic_num_partitions=1,
            **{
                "share_coordinator_snapshot_update_records_per_snapshot": 3,
                **settings,
            },
        )
        self.c: ShareCoordinator
        self.new()

    def new(self) -> None:
        self.c = ShareCoordinator(
            self.settings,
            self.environment,
            cast("Any", self.log),
            cast("Any", self.controller),
        )
        self.controller.on_created = lambda: self.c.on_elected(0, 0)

    @property
    def elected(self) -> ShareCoordinator:
        return self.c

    async def start(self, *, elect: bool = True) -> "Coordinator":
        """Without the topic no partition is elected before it is created."""
        has_topic = SHARE_GROUP_STATE in self.controller.image.topics
        return await super().start(elect=elect and has_topic)

    @staticmethod
    def told(call: Callable[..., None], *args: Any, **more: Any) -> Any:
        answers: list[Any] = []
        call(*args, lambda *answer: answers.append(answer), **more)
        assert len(answers) <= 1
        if not answers:
            return None
        return answers[0][0] if len(answers[0]) == 1 else answers[0]

    def initialize(self, epoch: int = 0, start: int = 0, key: SharePartitionKey = KEY) -> Any:
        return self.told(self.c.initialize, key, epoch, start)

    def read(self, leader_epoch: int = 0, key: SharePartitionKey = KEY) -> Any:
        return self.told(self.c.read, key, leader_epoch)

    def write(
        self,
        *batches: StateBatch,
        start: int = -1,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        key: SharePartitionKey = KEY,
    ) -> Any:
        codes: list[E] = []
        self.c.write(
            key,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=7,
            batches=batches,
            done=codes.append,
        )
        return codes[0] if codes else None

    def summary(self, key: SharePartitionKey = KEY) -> Any:
        return self.told(self.c.read_summary, key)

    @property
    def records(self) -> int:
        return self.log.ends[0]
