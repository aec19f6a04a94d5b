"""A consumer group (KIP-848): the broker assigns, members reconcile.

Three numbers tell where a group stands:

    group epoch        grows when members, subscriptions or topics change
    assignment epoch   group epoch that the target assignment was computed for
    member epochs      of the target that each member has been moved to

    Empty        no members
    Assigning    assignment epoch < group epoch
    Reconciling  some member is not yet where the target wants it
    Stable       everybody is

Only state and the rules that hold within it; requests, timers and the log are the business of
`consumer_protocol`. Each method changes the group as one record of the log does, whether the
record is being written (`changes`) or read back (`replay`).

Source: Kafka, ModernGroup.java, ConsumerGroup.java.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from typing_extensions import override

from broker.coordinator.outcome import Done, KeyValue
from broker.groups.consumer.member import (
    LEAVE_EPOCH,
    NO_PARTITIONS,
    Assignment,
    ConsumerGroupMember,
)
from broker.groups.consumer.timers import MemberTimers
from broker.groups.state.group import Group, GroupType
from broker.runtime.deadline import Deadline
from broker.runtime.timer import TimerHandle
from protocol.error_codes import ErrorCode
from protocol.internal import consumer_group_records as records
from protocol.internal.consumer_offsets import NO_TIMESTAMP
from protocol.internal.consumer_subscription import PROTOCOL_TYPE
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.groups.consumer.changes import Changes

MEMBER_EPOCHS_FROM_OFFSET_COMMIT_VERSION = 9


class ResolvedRegularExpression(NamedTuple):
    """Topics that a pattern stands for, and when it was looked at.

    `version` is the revision of the cluster's image, `timestamp_ms` since 1970.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


_NO_TOPICS: frozenset[str] = frozenset()


class ConsumerGroup(Group):
    """A group whose members are assigned partitions by the broker.

    Attributes:
        members: By member id.
        static_members: Member id by instance id.
        target: What each member shall own in the end.
        name_counts: How many members subscribe to a topic by its name.
        regex_topic_counts: How many patterns of the group stand for a topic.
        regex_counts: How many members subscribe by a pattern.
        resolved: What the group's patterns stand for.
        assignor_counts: How many members prefer an assignor.
        classic_member_count: Members that speak the classic protocol.
        classic_protocol_counts: How many of these know a classic protocol.
        has_partition_metadata_record: Kafka before 4.1 wrote a record that is to be deleted.
        is_metadata_stale: Topics may have changed since the metadata hash was computed.
        timers: By member id.
    """

    __slots__ = (
        "assignment_epoch",
        "assignor_counts",
        "classic_member_count",
        "classic_protocol_counts",
        "group_epoch",
        "group_id",
        "has_partition_metadata_record",
        "is_dead",
        "is_metadata_stale",
        "members",
        "metadata_hash",
        "name_counts",
        "partition_epochs",
        "regex_counts",
        "regex_topic_counts",
        "resolved",
        "static_members",
        "target",
        "timers",
        "topics_version",
        "type",
        "work",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.type = GroupType.CONSUMER
        self.group_epoch = 0
        self.assignment_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Assignment] = {}
        self.partition_epochs: dict[UUID, dict[int, int]] = {}
        self.name_counts: dict[str, int] = {}
        self.regex_topic_counts: dict[str, int] = {}
        self.regex_counts: dict[str, int] = {}
        self.resolved: dict[str, ResolvedRegularExpression] = {}
        self.assignor_counts: dict[str, int] = {}
        self.classic_member_count = 0
        self.classic_protocol_counts: dict[str, int] = {}
        self.has_partition_metadata_record = False
        self.is_metadata_stale = True
        self.is_dead = False
        # Grows when a topic comes into or goes out of the subscriptions.
        self.topics_version = 0
        self.timers: dict[str, MemberTimers] = {}
        # What is under way for it; see `work`.
        self.work = GroupWork()

    # -- what it is --

    @property
    @override
    def state_name(self) -> str:
        """The state as ListGroups spells it."""
        if self.is_dead:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    @override
    def protocol_type(self) -> str:
        """Always that of consumers."""
        return PROTOCOL_TYPE

    @property
    @override
    def member_count(self) -> int:
        """Members, also static ones that are away for a moment."""
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
        for timers in self.timers.values():
            timers.cancel()
        self.timers.clear()
        if self.work.assign_timer is not None:
            self.work.assign_timer.cancel()

    # -- subscriptions --

    @override
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, by name or by pattern."""
        return topic in self.name_counts or topic in self.regex_topic_counts

    def subscribed_topics(self) -> Iterator[str]:
        """Every topic once that a member subscribed to, whether it exists or not."""
        yield from self.name_counts
        for topic in self.regex_topic_counts:
            if topic not in self.name_counts:
                yield topic

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Topics that the member subscribed to; a pattern not yet resolved stands for none."""
        return topics_of(member, self.resolved)

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members ask for."""
        counts = self.assignor_counts
        return max(counts, key=counts.__getitem__) if counts else default

    # -- changes, one for each kind of record --

    def update_member(self, member: ConsumerGroupMember) -> None:
        """Take a member in, or take over what has changed about it."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is None or old.subscribed_topic_names is not member.subscribed_topic_names:
            for topic in member.subscribed_topic_names:
                self._count_topic(self.name_counts, topic, 1)
            if old is not None:
                for topic in old.subscribed_topic_names:
                    self._count_topic(self.name_counts, topic, -1)
        self._count(self.regex_counts, old, member, _regexes)
        self._count(self.assignor_counts, old, member, _assignors)
        if (old is not None and old.classic) or member.classic:
            self._count(self.classic_protocol_counts, old, member, _classic_protocols)
            self.classic_member_count += (member.classic is not None) - (
                old is not None and old.classic is not None
            )
        if old is not None:
            self._release(old)
        self._own(member)
        if old is not None and old.instance_id != member.instance_id:
            self._forget_instance(old)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        """Let a member go, its timers with it."""
        timers = self.timers.pop(member_id, None)
        if timers is not None:
            timers.cancel()
        old = self.members.pop(member_id, None)
        if old is None:
            return
        for topic in old.subscribed_topic_names:
            self._count_topic(self.name_counts, topic, -1)
        self._count(self.regex_counts, old, None, _regexes)
        self._count(self.assignor_counts, old, None, _assignors)
        self._count(self.classic_protocol_counts, old, None, _classic_protocols)
        self.classic_member_count -= old.classic is not None
        self._release(old)
        self._forget_instance(old)

    def _forget_instance(self, old: ConsumerGroupMember) -> None:
        instance_id = old.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == old.member_id:
            del self.static_members[instance_id]

    def update_resolved(self, regex: str, resolved: ResolvedRegularExpression | None) -> None:
        """Say what a pattern stands for; None: nobody asks any more."""
        old = self.resolved.pop(regex, None)
        if resolved is not None:
            self.resolved[regex] = resolved
        before = old.topics if old is not None else _NO_TOPICS
        after = resolved.topics if resolved is not None else _NO_TOPICS
        # There may be thousands of them, of which few have changed.
        added, removed = after - before, before - after
        counts = self.regex_topic_counts
        if not counts:
            counts.update(dict.fromkeys(added, 1))
        else:
            for topic in added:
                counts[topic] = counts.get(topic, 0) + 1
        for topic in removed:
            _change(counts, topic, -1)
        if added or removed:
            self.topics_version += 1

    # -- partitions --

    def partition_epoch(self, topic_id: UUID, partition: int) -> int:
        """Epoch of the member that owns the partition; -1: nobody does."""
        partitions = self.partition_epochs.get(topic_id)
        return LEAVE_EPOCH if partitions is None else partitions.get(partition, LEAVE_EPOCH)

    def _own(self, member: ConsumerGroupMember) -> None:
        epoch = member.member_epoch
        for assignment in (member.assigned, member.pending_revocation):
            for topic_id, partitions in assignment.items():
                epochs = self.partition_epochs.get(topic_id)
                if epochs is None:
                    epochs = self.partition_epochs[topic_id] = {}
                for partition in partitions:
                    epochs[partition] = epoch

    def _release(self, member: ConsumerGroupMember) -> None:
        for assignment in (member.assigned, member.pending_revocation):
            for topic_id, partitions in assignment.items():
                epochs = self.partition_epochs.get(topic_id)
                if epochs is None:
                    continue
                for partition in partitions:
                    epochs.pop(partition, None)
                if not epochs:
                    del self.partition_epochs[topic_id]

    # -- offsets --

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
        """Whether this sender may commit now.

        A negative epoch: an administrator or a consumer that assigns its partitions itself, only
        while the group is empty; old transactional producers, which name no member, always.
        Otherwise a member in its present epoch.
        """
        if generation_or_epoch < 0 and not self.members:
            return ErrorCode.NONE
        if (
            transactional
            and generation_or_epoch == -1
            and not member_id
            and group_instance_id is None
        ):
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if (
            not transactional
            and member.classic is None
            and api_version < MEMBER_EPOCHS_FROM_OFFSET_COMMIT_VERSION
        ):
            return ErrorCode.UNSUPPORTED_VERSION
        return _check_epoch(member, generation_or_epoch)

    @override
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether this member may fetch; anybody may without a member id."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _check_epoch(member, member_epoch)

    @override
    def offset_expiry_base(self) -> int | None:
        """Retention begins with each commit; topics that are read are left out by the caller."""
        return NO_TIMESTAMP

    @override
    def member_sessions(self) -> list[Deadline]:
        """One for each member."""
        return [timers.session for timers in self.timers.values()]

    @override
    def tombstones(self) -> list[KeyValue]:
        """Everything that may be in the log of the group, in the order in which Kafka reads it."""
        group_id = self.group_id
        keys: list[records.ConsumerGroupKey] = [
            *(records.ConsumerGroupCurrentMemberAssignmentKey(group_id, m) for m in self.members),
            *(records.ConsumerGroupTargetAssignmentMemberKey(group_id, m) for m in self.target),
            records.ConsumerGroupTargetAssignmentMetadataKey(group_id),
            *(records.ConsumerGroupMemberMetadataKey(group_id, m) for m in self.members),
            *(records.ConsumerGroupRegularExpressionKey(group_id, r) for r in self.resolved),
            records.ConsumerGroupPartitionMetadataKey(group_id),
            records.ConsumerGroupMetadataKey(group_id),
        ]
        return [(records.encode_consumer_group_key(key), None) for key in keys]

    # -- counting --

    def _count_topic(self, counts: dict[str, int], topic: str, change: int) -> None:
        was_subscribed = self.is_subscribed_to(topic)
        _change(counts, topic, change)
        if was_subscribed is not self.is_subscribed_to(topic):
            self.topics_version += 1

    @staticmethod
    def _count(
        counts: dict[str, int],
        old: ConsumerGroupMember | None,
        new: ConsumerGroupMember | None,
        names: Callable[[ConsumerGroupMember], Iterable[str]],
    ) -> None:
        if new is not None:
            for name in names(new):
                _change(counts, name, 1)
        if old is not None:
            for name in names(old):
                _change(counts, name, -1)

    def target_of(self, member_id: str) -> Assignment:
        """What a member shall own; nothing when no target has been computed with it."""
        return self.target.get(member_id, NO_PARTITIONS)


def topics_of(
    member: ConsumerGroupMember, resolved: Mapping[str, ResolvedRegularExpression]
) -> frozenset[str]:
    """Topics that a member subscribed to; a pattern not yet resolved stands for none."""
    names = member.subscribed_topic_names
    found = resolved.get(member.subscribed_topic_regex or "")
    if found is None or not found.topics:
        return names
    return found.topics | names if names else found.topics


class Parked(NamedTuple):
    """A member that waits for the target of a group epoch; `finish` makes what `reply` gets."""

    member_id: str
    group_epoch: int
    finish: Callable[["ConsumerGroup", "Changes"], ConsumerGroupHeartbeatResponse]
    reply: Callable[[ConsumerGroupHeartbeatResponse], None]


class GroupWork:
    """What is under way for a group and not in the log; a new coordinator begins without it.

    Attributes:
        unwritten: Writes that are not yet committed.
        behind_writes: Answers that must not be seen before these are.
        is_assigning: A target assignment is being computed.
        is_resolving: The group's patterns are being resolved.
        is_hashing: The metadata hash of its many topics is being computed.
    """

    __slots__ = (
        "assign_due_ms",
        "assign_not_before_ms",
        "assign_timer",
        "behind_writes",
        "deferred_since_ms",
        "is_assigning",
        "is_hashing",
        "is_resolving",
        "metadata_hash",
        "parked",
        "unwritten",
    )

    def __init__(self) -> None:
        self.unwritten = 0
        self.behind_writes: list[Done] = []
        self.is_assigning = False
        self.is_resolving = False
        self.is_hashing = False
        self.assign_not_before_ms = 0.0
        self.deferred_since_ms: float | None = None
        self.assign_due_ms = 0.0
        self.assign_timer: TimerHandle | None = None
        self.parked: list[Parked] = []
        self.metadata_hash: tuple[tuple[int, int, int], int] | None = None


def _check_epoch(member: ConsumerGroupMember, epoch: int) -> ErrorCode:
    if epoch == member.member_epoch:
        return ErrorCode.NONE
    if member.classic is not None:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def _change(counts: dict[str, int], name: str, change: int) -> None:
    count = counts.get(name, 0) + change
    if count:
        counts[name] = count
    else:
        counts.pop(name, None)


def _regexes(member: ConsumerGroupMember) -> tuple[str, ...]:
    return (member.subscribed_topic_regex,) if member.subscribed_topic_regex else ()


def _assignors(member: ConsumerGroupMember) -> tuple[str, ...]:
    return () if member.server_assignor is None else (member.server_assignor,)


def _classic_protocols(member: ConsumerGroupMember) -> list[str]:
    return [] if member.classic is None else [p.name for p in member.classic.supported_protocols]
