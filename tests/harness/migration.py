"""A shard that serves both protocols, on a clock that stands still."""

from typing import Any
from uuid import UUID

from typing_extensions import override

from broker.controller.configs.group_settings import ConsumerGroupSettings
from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.protocol import ClassicProtocol
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.protocol import ConsumerProtocol
from broker.groups.migration.members import connect
from broker.groups.modern.member import Client
from broker.groups.modern.offload import ThreadOffload
from broker.groups.offsets.offset_manager import OffsetManager
from broker.groups.state.group_shard import GroupShard
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    decode_assignment,
    encode_assignment,
)
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tests.fakes.broker.offsets_partition import FakeReplicaManager, topic_image
from tests.harness.coordinator import BY_NUMBER, Reply
from tests.harness.groups import Harness
from tests.harness.subscriptions import encode_subscription

SESSION_MS = 45_000
PARTITIONS = 4
T = UUID(int=1)
TOPIC = "t"

Numbers = tuple[int, ...]


def wants(
    *topics: str, owned: Numbers = (), names: tuple[str, ...] = ("range",)
) -> tuple[tuple[str, bytes], ...]:
    """Protocols of a classic consumer that owns partitions of the topic."""
    metadata = encode_subscription(
        ConsumerSubscription(3, topics or (TOPIC,), None, {TOPIC: owned} if owned else {})
    )
    return tuple((name, metadata) for name in names)


def of_topic(*partitions: int) -> bytes:
    """What a classic leader assigns."""
    return encode_assignment(ConsumerAssignment({TOPIC: partitions}), 3)


def partitions_of(assignment: bytes) -> Numbers:
    """What a classic member is assigned."""
    return decode_assignment(assignment).partitions.get(TOPIC, ())


class Answered(Reply[Any]):
    """The response to a heartbeat of the new protocol."""

    @property
    def partitions(self) -> Numbers | None:
        """What the member may own now; None when it is not told."""
        assignment = self.response.assignment
        if assignment is None:
            return None
        found: list[int] = []
        for topic in assignment.topic_partitions:
            assert topic.topic_id == T
            found += topic.partitions
        return tuple(sorted(found))


class MigrationHarness(Harness):
    """Both protocols of one shard."""

    consumers: ConsumerProtocol

    def __init__(self, **settings: Any) -> None:
        super().__init__(None, topic_image(TOPIC, 1, PARTITIONS), **settings)

    @override
    def new_shard(self) -> tuple[GroupShard, ClassicProtocol, OffsetManager]:
        shard, classic, offsets = super().new_shard()
        self.consumers = ConsumerProtocol(
            shard,
            settings=self.settings,
            environment=self.environment,
            offload=ThreadOffload(),
            image=lambda: self.controller.image,
            group_settings=lambda _: ConsumerGroupSettings(SESSION_MS, 5_000),
        )
        connect(
            classic,
            self.consumers,
            shard,
            settings=self.settings,
            environment=self.environment,
            image=lambda: self.controller.image,
        )
        return shard, classic, offsets

    @override
    def reloaded(self, log: FakeReplicaManager | None = None) -> GroupShard:
        """What another broker would make of the log."""
        mine = self.consumers
        try:
            return super().reloaded(log)
        finally:
            self.consumers = mine

    @property
    def modern(self) -> ConsumerGroup:
        """The group, which is of the new protocol."""
        group = self.shard.group("g", ConsumerGroup)
        assert group is not None
        return group

    @property
    def classic(self) -> ClassicGroup:
        """The group, which is of the old protocol."""
        return self.group("g")

    # -- requests --

    def beat(
        self, member_id: str, epoch: int, *, owned: Numbers | None = None, **fields: Any
    ) -> Answered:
        """ConsumerGroupHeartbeat; with epoch 0 everything a new member says."""
        if epoch == 0:
            owned = ()
            fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [TOPIC]} | fields
        topic_partitions = None
        if owned is not None:
            topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=T, partitions=list(owned))
            ]
            if not owned:
                topic_partitions = []
        answered = Answered()
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            topic_partitions=topic_partitions,
            **fields,
        )
        self.consumers.heartbeat(request, Client("new", "/h"), answered)
        return answered

    def joined_new(self, member_id: str, **fields: Any) -> Answered:
        """A member of the new protocol joins and has waited for its target."""
        answered = self.beat(member_id, 0, **fields)
        self.timer.advance(1_000)
        assert answered.error is ErrorCode.NONE, answered.response
        return answered

    def rejoin(self, member_id: str, *, owned: Numbers = (), **options: Any) -> tuple[int, Numbers]:
        """JoinGroup and SyncGroup of a classic member: its generation and what it owns then."""
        join = self.join(member_id, protocols=wants(owned=owned), **options)
        if join.is_parked:
            self.timer.advance(1_000)
        assert join.error is ErrorCode.NONE, join.response
        sync = self.sync(
            join.response.member_id,
            join.response.generation_id,
            instance=options.get("instance"),
        )
        assert sync.error is ErrorCode.NONE, sync.response
        return join.response.generation_id, partitions_of(sync.response.assignment)

    def classic_pair(self) -> tuple[str, str, int]:
        """A stable classic group of two consumers, with two partitions each."""
        (one, first), (two, _) = (
            self.new_member(protocol_type="consumer", protocols=wants()) for _ in range(2)
        )
        self.settle()
        generation = first.response.generation_id
        follower = self.sync(two, generation)
        leader = self.sync(one, generation, {one: of_topic(0, 1), two: of_topic(2, 3)})
        assert {BY_NUMBER[s.response.error_code] for s in (leader, follower)} == {ErrorCode.NONE}
        return one, two, generation
