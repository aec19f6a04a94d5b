"""One shard with share groups, without a loop, and members that talk to it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from broker.controller.configs.group_settings import ShareGroupSettings
from broker.controller.configs.share_group_config import ShareGroupConfig
from broker.controller.images.cluster_image import TopicImage
from broker.coordinator.persister import SharePartitionKey
from broker.groups.modern.member import Client
from broker.groups.offsets.offset_manager import OffsetManager
from broker.groups.share.initializer import Codes
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.protocol import ShareProtocol
from broker.groups.share.share_group import ShareGroup
from broker.groups.share.validation import check_share_heartbeat
from broker.groups.state.group_shard import GroupShard
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.fakes.broker.offsets_partition import FakeReplicaManager, topic_image
from tests.fakes.broker.share_persister import FakeSharePersister
from tests.harness.coordinator import HeartbeatReply
from tests.harness.groups import Harness

SESSION_MS = 45_000
HEARTBEAT_MS = 5_000

FOO, BAR = UUID(int=1), UUID(int=2)
IDS = {"foo": FOO, "bar": BAR}
NAMES = {topic_id: name for name, topic_id in IDS.items()}


class Reply(HeartbeatReply[ShareGroupHeartbeatResponse]):
    """The response to one heartbeat."""

    def __init__(self) -> None:
        super().__init__(NAMES)


class ShareHarness(Harness):
    """A shard with topics foo (4 partitions) and bar (2)."""

    def __init__(
        self,
        replica_manager: FakeReplicaManager | None = None,
        *topics: TopicImage,
        **settings: Any,
    ) -> None:
        topics = topics or (topic_image("foo", 1, 4), topic_image("bar", 2, 2))
        self.persister = FakeSharePersister()
        self.altered: list[str] = []
        self.group_settings = ShareGroupSettings(SESSION_MS, HEARTBEAT_MS, ShareGroupConfig(30_000))
        super().__init__(replica_manager, *topics, **settings)
        self.shares = self.new_shares(self.shard)

    def new_shares(self, shard: GroupShard) -> ShareProtocol:
        return ShareProtocol(
            shard,
            settings=self.settings,
            environment=self.environment,
            image=lambda: self.image,
            group_settings=lambda _: self.group_settings,
            persister=lambda: self.persister,
            state_altered=self.altered.append,
        )

    def set_topics(self, *topics: TopicImage) -> None:
        """Topics change, and the groups hear of it."""
        change = self.change_topics(*topics)
        self.shares.topics_changed(change.changed, change.deleted)

    def restart(self) -> None:
        """Another broker becomes the coordinator; what the old one asked for is forgotten."""
        self.shares.close()
        self.persister.held.clear()
        self.shard = self.reloaded()
        self.shares = self.new_shares(self.shard)
        self.offsets = OffsetManager(
            self.shard,
            self.protocol,
            settings=self.settings,
            environment=self.environment,
        )
        for group in self.shard.groups_of(ShareGroup):
            self.shares.start_timers(group)

    # -- requests --

    def beat(
        self,
        member_id: str = "m1",
        epoch: int = 0,
        *,
        group: str = "g",
        topics: Sequence[str] | None = None,
        rack: str | None = None,
        client: str = "client",
    ) -> Reply:
        """One heartbeat."""
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=rack,
            subscribed_topic_names=None if topics is None else list(topics),
        )
        reply = Reply()
        try:
            check_share_heartbeat(request)
        except ApiError as error:
            reply(ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message))
            return reply
        self.shares.heartbeat(request, Client(client, "/127.0.0.1"), reply)
        return reply

    def enter(self, member_id: str = "m1", *topics: str, group: str = "g") -> Reply:
        return self.beat(member_id, 0, topics=topics or ["foo"], group=group)

    def exit(self, member_id: str = "m1", *, group: str = "g") -> Reply:
        return self.beat(member_id, -1, group=group)

    def follow(self, member_id: str = "m1") -> Reply:
        """A heartbeat with nothing new to say."""
        return self.beat(member_id, self.member(member_id).member_epoch)

    def settle_members(self, group: str = "g") -> None:
        """Heartbeats of everybody until nobody gets anything new."""
        for _ in range(10):
            before = dict(self.share_group(group).members)
            for member_id in before:
                assert self.follow(member_id).error is ErrorCode.NONE
            if self.share_group(group).members == before:
                return
        raise AssertionError("no end of it")

    def alter(self, offsets: Mapping[UUID, Mapping[int, int]], group: str = "g") -> list[object]:
        """What `done` was called with; the error when it was refused."""
        answers: list[object] = []

        def done(code: ErrorCode, codes: Codes) -> None:
            answers.append((code, codes))

        try:
            self.shares.administration.alter_offsets(group, offsets, done)
        except ApiError as error:
            return [error.code]
        return answers

    def delete_offsets(self, *topic_ids: UUID, group: str = "g") -> list[object]:
        answers: list[object] = []

        def done(code: ErrorCode, codes: dict[UUID, ErrorCode]) -> None:
            answers.append((code, codes))

        try:
            self.shares.administration.delete_offsets(group, topic_ids, done)
        except ApiError as error:
            return [error.code]
        return answers

    def delete_state(self, group: str = "g") -> list[ErrorCode]:
        answers: list[ErrorCode] = []
        self.shares.administration.delete_state(self.share_group(group), answers.append)
        return answers

    # -- what is there --

    def share_group(self, group_id: str = "g") -> ShareGroup:
        group = self.shard.group(group_id, ShareGroup)
        assert group is not None
        return group

    def member(self, member_id: str, group_id: str = "g") -> ShareGroupMember:
        return self.share_group(group_id).members[member_id]

    def owned(self, member_id: str) -> dict[str, list[int]]:
        assigned = self.member(member_id).assigned
        return {NAMES[topic_id]: list(partitions) for topic_id, partitions in assigned.items()}

    def initialized(self, group_id: str = "g") -> dict[UUID, set[int]]:
        return {
            topic_id: set(topic.partitions)
            for topic_id, topic in self.share_group(group_id).kept.initialized.items()
        }

    def states(self, group_id: str = "g") -> dict[tuple[UUID, int], int]:
        """Start offset of every share-partition of the group in the share coordinator."""
        return {
            (key.topic_id, key.partition): offset
            for key, (_, offset) in self.persister.states.items()
            if key.group_id == group_id
        }

    def key(self, topic_id: UUID, partition: int, group_id: str = "g") -> SharePartitionKey:
        return SharePartitionKey(group_id, topic_id, partition)

    def check(self) -> None:
        """The log says what the memory says, and nobody owns what has no state."""
        reloaded = {group.group_id: group for group in self.reloaded().groups_of(ShareGroup)}
        present = {group.group_id: group for group in self.shard.groups_of(ShareGroup)}
        assert {i: comparable(g) for i, g in reloaded.items()} == {
            i: comparable(g)
            for i, g in present.items()
            if i in reloaded or g.group_epoch or any(g.kept)
        }


def comparable(group: ShareGroup) -> dict[str, object]:
    """All of a group that its records say."""
    names = [
        "group_epoch",
        "assignment_epoch",
        "metadata_hash",
        "members",
        "name_counts",
        "state_name",
    ]
    fields = cast("dict[str, object]", {name: getattr(group, name) for name in names})
    fields["target"] = {m: a for m, a in group.target.items() if m in group.members}
    value = group.kept.value()
    fields["kept"] = [sorted(value.initializing), sorted(value.initialized), sorted(value.deleting)]
    return fields
