"""One shard with consumer groups, without a loop, and members that talk to it.

Every target is computed at once (`group.consumer.assignment.interval.ms` 0), as Kafka 4.2 does,
unless a test says otherwise; work for other threads is done at once, or, with `offload.hold`, when
`offload.run_all` says so.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from broker.controller.configs.group_settings import ConsumerGroupSettings
from broker.controller.images.cluster_image import TopicImage
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.consumer.protocol import ConsumerProtocol
from broker.groups.consumer.validation import check_heartbeat
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.member import Client
from broker.groups.state.group_shard import GroupShard
from broker.runtime.errors import ApiError
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.fakes.broker.offsets_partition import FakeReplicaManager, topic_image
from tests.harness.coordinator import HeartbeatReply, HeldOffload
from tests.harness.groups import Harness

SESSION_MS = 45_000
HEARTBEAT_MS = 5_000
REBALANCE_MS = 30_000

FOO, BAR = UUID(int=1), UUID(int=2)
IDS = {"foo": FOO, "bar": BAR, "foobar": UUID(int=3)}

NAMES = {topic_id: name for name, topic_id in IDS.items()}

Partitions = Mapping[str, Sequence[int]]


class Reply(HeartbeatReply[ConsumerGroupHeartbeatResponse]):
    """The response to one heartbeat."""

    def __init__(self) -> None:
        super().__init__(NAMES)


class ConsumerHarness(Harness):
    """A shard with topics foo (6 partitions) and bar (3)."""

    def __init__(
        self,
        replica_manager: FakeReplicaManager | None = None,
        *topics: TopicImage,
        **settings: object,
    ) -> None:
        topics = topics or (topic_image("foo", 1, 6), topic_image("bar", 2, 3))
        self.offload = HeldOffload()
        settings.setdefault("group_consumer_assignment_interval_ms", 0)
        self.group_settings = ConsumerGroupSettings(SESSION_MS, HEARTBEAT_MS)
        super().__init__(replica_manager, *topics, **cast("dict[str, Any]", settings))
        self.consumers = self.new_consumers(self.shard)

    def new_consumers(self, shard: GroupShard) -> ConsumerProtocol:
        return ConsumerProtocol(
            shard,
            settings=self.settings,
            environment=self.environment,
            offload=self.offload,
            image=lambda: self.image,
            group_settings=lambda _: self.group_settings,
        )

    def set_topics(self, *topics: TopicImage) -> None:
        """Topics change, and the groups hear of it."""
        change = self.change_topics(*topics)
        self.consumers.topics_changed(change.changed, has_new=change.has_new)

    def restart(self) -> None:
        """Another broker becomes the coordinator."""
        self.shard.log.close()
        self.consumers.close()
        self.shard = self.reloaded()
        self.consumers = self.new_consumers(self.shard)
        for group in self.shard.groups_of(ConsumerGroup):
            self.consumers.start_timers(group)

    # -- requests --

    def beat(
        self,
        member_id: str = "m1",
        epoch: int = 0,
        *,
        group: str = "g",
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        owned: Partitions | None = None,
        instance: str | None = None,
        rack: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = -1,
        version: int = 1,
        client: str = "client",
    ) -> Reply:
        """One heartbeat."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=rebalance_ms,
            subscribed_topic_names=None if topics is None else list(topics),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=IDS[name], partitions=list(partitions)
                )
                for name, partitions in owned.items()
            ],
        )
        reply = Reply()
        try:
            check_heartbeat(request, version, self.settings.group_consumer_assignors)
        except ApiError as error:
            reply(
                ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
            )
            return reply
        self.consumers.heartbeat(request, Client(client, "/127.0.0.1"), reply)
        return reply

    def enter(self, member_id: str = "m1", **options: Any) -> Reply:
        """Join."""
        if "topics" not in options and "regex" not in options:
            options["topics"] = ["foo"]
        return self.beat(member_id, 0, **{"owned": {}, "rebalance_ms": REBALANCE_MS, **options})

    def exit(
        self, member_id: str = "m1", *, instance: str | None = None, group: str = "g"
    ) -> Reply:
        return self.beat(member_id, -1, instance=instance, group=group)

    def follow(self, member_id: str = "m1", *, instance: str | None = None) -> Reply:
        """Heartbeat as a client does that gives back at once what it is to give back."""
        member = self.member(member_id)
        owned = {self.name(i): p for i, p in member.assigned.items()}
        return self.beat(member_id, member.member_epoch, owned=owned, instance=instance)

    def settle_members(self, group: str = "g") -> None:
        """Heartbeats of everybody until nobody moves any more."""
        for _ in range(10):
            before = dict(self.consumer_group(group).members)
            for member_id, member in before.items():
                self.follow(member_id, instance=member.instance_id)
            if self.consumer_group(group).members == before:
                return
        raise AssertionError("no end of it")

    # -- what is there --

    def name(self, topic_id: UUID) -> str:
        return NAMES[topic_id]

    def consumer_group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.shard.group(group_id, ConsumerGroup)
        assert group is not None
        return group

    def member(self, member_id: str, group_id: str = "g") -> ConsumerGroupMember:
        return self.consumer_group(group_id).members[member_id]

    def owned(self, member_id: str) -> dict[str, list[int]]:
        return self.named(self.member(member_id).assigned)

    def target(self, member_id: str) -> dict[str, list[int]]:
        return self.named(self.consumer_group().target_of(member_id))

    def named(self, assignment: Assignment) -> dict[str, list[int]]:
        return {self.name(topic_id): list(p) for topic_id, p in assignment.items()}

    def state(self, member_id: str) -> MemberState:
        return self.member(member_id).state

    def check(self) -> None:
        """No partition has two owners, and the log says what the memory says."""
        present = {group.group_id: group for group in self.shard.groups_of(ConsumerGroup)}
        if not self.log.held:
            here = {i: comparable(g) for i, g in present.items()}
            for shard in (self.reloaded(), self.reloaded(self.log.compacted())):
                assert {g.group_id: comparable(g) for g in shard.groups_of(ConsumerGroup)} == here
        for group in present.values():
            owners: dict[tuple[UUID, int], str] = {}
            for member in group.members.values():
                for assignment in (member.assigned, member.pending_revocation):
                    for topic_id, partitions in assignment.items():
                        for partition in partitions:
                            assert owners.setdefault((topic_id, partition), member.member_id) == (
                                member.member_id
                            )
                            assert group.partition_epoch(topic_id, partition) == (
                                member.member_epoch
                            )
            assert sum(map(len, group.partition_epochs.values())) == len(owners)


def comparable(group: ConsumerGroup) -> dict[str, object]:
    """All of a group that its records say."""
    names = [
        "group_epoch",
        "assignment_epoch",
        "metadata_hash",
        "members",
        "static_members",
        "name_counts",
        "regex_topic_counts",
        "regex_counts",
        "resolved",
        "assignor_counts",
        "classic_member_count",
        "classic_protocol_counts",
        "partition_epochs",
        "state_name",
    ]
    fields = cast("dict[str, object]", {name: getattr(group, name) for name in names})
    fields["target"] = {m: a for m, a in group.target.items() if m in group.members}
    return fields
