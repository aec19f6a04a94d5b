"""A share group (KIP-932): members work on partitions together.

    Empty    no members
    Stable   members; each has what it shall have as of its last heartbeat

The group epoch grows when members, subscriptions, topics or the partitions whose state is kept
change; the assignment epoch is that of the target; a member's, of the target it was given.

Only state and the rules that hold within it; requests, timers and the log are the business of
`share_protocol`. Each method changes the group as one record of the log does, whether the
record is being written (`changes`) or read back (`replay`).

Source: Kafka, ModernGroup.java, ShareGroup.java.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final
from uuid import UUID

from typing_extensions import override

from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.outcome import Done, KeyValue
from broker.groups.consumer.member import NO_PARTITIONS, Assignment
from broker.groups.share.kept_state import KeptState
from broker.groups.share.member import ShareGroupMember
from broker.groups.state.group import Group, GroupType
from broker.runtime.deadline import Deadline
from protocol.error_codes import ErrorCode
from protocol.internal import share_group_records as records

PROTOCOL_TYPE: Final = "share"


class ShareGroupWork:
    """What is under way for a group and not in the log; a new coordinator begins without it.

    Attributes:
        unwritten: Writes that are not yet committed.
        behind_writes: Answers that must not be seen before these are.
        metadata_hash: The hash of the topics, and what it was computed from.
        is_assigning: A target is being computed in another thread.
        waiting_for_target: Who wants to hear when it is there, or why not.
        is_altered: Its offsets are being changed, or it is being deleted: nobody may join.
    """

    __slots__ = (
        "behind_writes",
        "is_altered",
        "is_assigning",
        "metadata_hash",
        "unwritten",
        "waiting_for_target",
    )

    def __init__(self) -> None:
        self.unwritten = 0
        self.behind_writes: list[Done] = []
        self.metadata_hash: tuple[tuple[int, int, int], int] | None = None
        self.is_altered = False
        self.is_assigning = False
        self.waiting_for_target: list[Done] = []


class ShareGroup(Group):
    """A group whose members are given partitions by the broker, several the same ones.

    Attributes:
        members: By member id.
        target: What each member shall own.
        name_counts: How many members subscribe to a topic.
        kept: Partitions whose share state is kept, or about to be.
        is_metadata_stale: Topics may have changed since the metadata hash was computed.
        may_lack_partitions: Some initialized partition may be in nobody's target.
        sessions: By member id.
    """

    __slots__ = (
        "assignment_epoch",
        "group_epoch",
        "group_id",
        "is_dead",
        "is_metadata_stale",
        "kept",
        "may_lack_partitions",
        "members",
        "metadata_hash",
        "name_counts",
        "sessions",
        "target",
        "topics_version",
        "type",
        "work",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.type = GroupType.SHARE
        self.group_epoch = 0
        self.assignment_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, ShareGroupMember] = {}
        self.target: dict[str, Assignment] = {}
        self.name_counts: dict[str, int] = {}
        self.kept = KeptState()
        self.is_metadata_stale = True
        self.may_lack_partitions = True
        self.is_dead = False
        # Grows when a topic comes into or goes out of the subscriptions.
        self.topics_version = 0
        self.sessions: dict[str, Deadline] = {}
        self.work = ShareGroupWork()

    # -- what it is --

    @property
    @override
    def state_name(self) -> str:
        """The state as ListGroups spells it."""
        if self.is_dead:
            return "Dead"
        return "Stable" if self.members else "Empty"

    @property
    @override
    def protocol_type(self) -> str:
        """Always that of share groups."""
        return PROTOCOL_TYPE

    @property
    @override
    def member_count(self) -> int:
        """Members."""
        return len(self.members)

    @property
    @override
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    @override
    def is_expecting_members(self) -> bool:
        """Never: a member is one from its first heartbeat on."""
        return False

    @property
    @override
    def generation_or_epoch(self) -> int:
        """The group epoch."""
        return self.group_epoch

    @override
    def die(self, now_ms: int) -> None:
        """Go to state Dead and stop every timer."""
        self.is_dead = True
        for session in self.sessions.values():
            session.cancel()
        self.sessions.clear()

    # -- subscriptions --

    @override
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return topic in self.name_counts

    def subscribed_topics(self) -> Iterator[str]:
        """Every topic once that a member subscribed to, whether it exists or not."""
        yield from self.name_counts

    def target_of(self, member_id: str) -> Assignment:
        """What a member shall own; nothing when no target has been computed with it."""
        return self.target.get(member_id, NO_PARTITIONS)

    def lacks_partitions(self, image: ClusterImage) -> bool:
        """Whether initialized partitions that somebody subscribed to are not those of the target.

        They become initialized when nobody is looking: the next heartbeat has to notice.
        """
        if not self.may_lack_partitions or not self.members:
            return False
        assigned: dict[UUID, frozenset[int]] = {}
        for assignment in self.target.values():
            for topic_id, partitions in assignment.items():
                assigned[topic_id] = assigned.get(topic_id, frozenset()).union(partitions)
        for topic_id, topic in self.kept.initialized.items():
            if (
                topic.name in self.name_counts
                and topic_id in image.topics_by_id
                and topic.partitions != assigned.get(topic_id, frozenset())
            ):
                return True
        self.may_lack_partitions = False
        return False

    # -- changes, one for each kind of record --

    def update_member(self, member: ShareGroupMember) -> None:
        """Take a member in, or take over what has changed about it."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is None or old.subscribed_topic_names is not member.subscribed_topic_names:
            self._count(member.subscribed_topic_names, 1)
            if old is not None:
                self._count(old.subscribed_topic_names, -1)
            self.may_lack_partitions = True

    def remove_member(self, member_id: str) -> None:
        """Let a member go, its timer with it."""
        session = self.sessions.pop(member_id, None)
        if session is not None:
            session.cancel()
        old = self.members.pop(member_id, None)
        if old is not None:
            self._count(old.subscribed_topic_names, -1)
            self.may_lack_partitions = True

    def update_kept(self, kept: KeptState) -> None:
        """Say whose share state is kept."""
        self.kept = kept
        self.may_lack_partitions = True

    def _count(self, names: Iterable[str], change: int) -> None:
        for name in names:
            count = self.name_counts.get(name, 0) + change
            if count:
                self.name_counts[name] = count
            else:
                del self.name_counts[name]
            if not count or count == change:
                self.topics_version += 1

    # -- offsets: it has none, they are share state --

    @override
    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> ErrorCode:
        """Nobody may commit."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    @override
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """There is nothing to fetch: as of a group that does not exist."""
        return ErrorCode.NONE

    @override
    def offset_expiry_base(self) -> int | None:
        """It never goes by itself: share state knows no retention."""
        return None

    @override
    def member_sessions(self) -> list[Deadline]:
        """One for each member."""
        return list(self.sessions.values())

    @override
    def tombstones(self) -> list[KeyValue]:
        """Everything that may be in the log of the group, in the order in which Kafka reads it."""
        group_id = self.group_id
        members: Collection[str] = {**self.members, **self.target}
        keys: list[records.ShareGroupKey] = [
            *(records.ShareGroupCurrentMemberAssignmentKey(group_id, m) for m in self.members),
            *(records.ShareGroupTargetAssignmentMemberKey(group_id, m) for m in members),
            records.ShareGroupTargetAssignmentMetadataKey(group_id),
            *(records.ShareGroupMemberMetadataKey(group_id, m) for m in self.members),
            records.ShareGroupStatePartitionMetadataKey(group_id),
            records.ShareGroupMetadataKey(group_id),
        ]
        return [(records.encode_share_group_key(key), None) for key in keys]
