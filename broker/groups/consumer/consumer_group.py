"""A consumer group (KIP-848): the broker assigns, members reconcile.

States, from the epochs of `broker.groups.modern.modern_group`:

    Empty        no members
    Assigning    assignment epoch < group epoch
    Reconciling  some member has not reached its target yet
    Stable       all members have

Source: Kafka, ConsumerGroup.java.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from typing_extensions import override

from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.consumer.records import CONSUMER_GROUP_RECORDS, ConsumerGroupRecords
from broker.groups.consumer.timers import MemberTimers
from broker.groups.modern.member import LEAVE_EPOCH
from broker.groups.modern.modern_group import ModernGroup, ModernGroupWork, change_count
from broker.groups.state.group import GroupType
from broker.runtime.deadline import Deadline
from broker.runtime.timer import TimerHandle
from protocol.error_codes import ErrorCode
from protocol.internal import consumer_group_records as layouts
from protocol.internal.consumer_offsets import NO_TIMESTAMP
from protocol.internal.consumer_subscription import PROTOCOL_TYPE
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.groups.consumer.changes import Changes

MEMBER_EPOCHS_FROM_OFFSET_COMMIT_VERSION = 9


class ResolvedRegularExpression(NamedTuple):
    """The topics that match a pattern, and when it was resolved.

    `version` is the revision of the cluster's image, `timestamp_ms` since 1970.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


_NO_TOPICS: frozenset[str] = frozenset()


class ConsumerGroup(ModernGroup[ConsumerGroupMember]):
    """A modern group whose partitions have one owner each.

    Attributes:
        static_members: Member id by instance id.
        regex_topic_counts: How many patterns of the group match a topic.
        regex_counts: How many members subscribe by a pattern.
        resolved: By pattern, the topics that match it.
        assignor_counts: How many members prefer an assignor.
        classic_member_count: Members that speak the classic protocol.
        classic_protocol_counts: How many of these know a classic protocol.
        has_partition_metadata_record: Kafka before 4.1 wrote a record that is to be deleted.
        timers: By member id.
    """

    __slots__ = (
        "assignor_counts",
        "classic_member_count",
        "classic_protocol_counts",
        "has_partition_metadata_record",
        "partition_epochs",
        "regex_counts",
        "regex_topic_counts",
        "resolved",
        "static_members",
        "timers",
    )

    work: "GroupWork"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, GroupWork())
        self.type = GroupType.CONSUMER
        self.static_members: dict[str, str] = {}
        self.partition_epochs: dict[UUID, dict[int, int]] = {}
        self.regex_topic_counts: dict[str, int] = {}
        self.regex_counts: dict[str, int] = {}
        self.resolved: dict[str, ResolvedRegularExpression] = {}
        self.assignor_counts: dict[str, int] = {}
        self.classic_member_count = 0
        self.classic_protocol_counts: dict[str, int] = {}
        self.has_partition_metadata_record = False
        self.timers: dict[str, MemberTimers] = {}

    @property
    @override
    def records(self) -> ConsumerGroupRecords:
        return CONSUMER_GROUP_RECORDS

    # -- properties --

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
        """The protocol type, `consumer`."""
        return PROTOCOL_TYPE

    @override
    def _stop_timers(self) -> None:
        for timers in self.timers.values():
            timers.cancel()
        self.timers.clear()
        if self.work.assign_timer is not None:
            self.work.assign_timer.cancel()

    @override
    def _stop_member_timers(self, member_id: str) -> None:
        timers = self.timers.pop(member_id, None)
        if timers is not None:
            timers.cancel()

    # -- subscriptions --

    @override
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, by name or by pattern."""
        return topic in self.name_counts or topic in self.regex_topic_counts

    @override
    def subscribed_topics(self) -> Iterator[str]:
        """Every topic once that a member subscribed to, whether it exists or not."""
        yield from self.name_counts
        for topic in self.regex_topic_counts:
            if topic not in self.name_counts:
                yield topic

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Topics that the member subscribed to; a pattern not yet resolved has none."""
        return topics_of(member, self.resolved)

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members prefer."""
        counts = self.assignor_counts
        return max(counts, key=counts.__getitem__) if counts else default

    # -- changes, one for each kind of record --

    @override
    def _member_changed(
        self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None
    ) -> None:
        self._count(self.regex_counts, old, new, _regexes)
        self._count(self.assignor_counts, old, new, _assignors)
        is_classic = new is not None and new.classic is not None
        was_classic = old is not None and old.classic is not None
        if is_classic or was_classic:
            self._count(self.classic_protocol_counts, old, new, _classic_protocols)
            self.classic_member_count += is_classic - was_classic
        if old is not None:
            self._release(old)
        if new is not None:
            self._own(new)
        if old is not None and (new is None or old.instance_id != new.instance_id):
            self._forget_instance(old)
        if new is not None and new.instance_id is not None:
            self.static_members[new.instance_id] = new.member_id

    def _forget_instance(self, old: ConsumerGroupMember) -> None:
        instance_id = old.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == old.member_id:
            del self.static_members[instance_id]

    def update_resolved(self, regex: str, resolved: ResolvedRegularExpression | None) -> None:
        """Set a pattern's topics; None: no member subscribes by it any more."""
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
            change_count(counts, topic, -1)
        if added or removed:
            self.topics_version += 1

    # -- partitions --

    def partition_epoch(self, topic_id: UUID, partition: int) -> int:
        """Epoch of the member that owns the partition; -1: it is free."""
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
        """Check that this sender may commit now.

        A negative epoch: an administrator or a consumer that assigns its partitions itself, only
        while the group is empty; old transactional producers, which name no member, always.
        Otherwise a member in its current epoch.
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
        """Check that this member may fetch; without a member id every client may."""
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
    def _further_keys(self) -> list[bytes]:
        keys: list[layouts.ConsumerGroupKey] = [
            *(layouts.ConsumerGroupRegularExpressionKey(self.group_id, r) for r in self.resolved),
            layouts.ConsumerGroupPartitionMetadataKey(self.group_id),
        ]
        return [layouts.encode_consumer_group_key(key) for key in keys]

    # -- counting --

    @staticmethod
    def _count(
        counts: dict[str, int],
        old: ConsumerGroupMember | None,
        new: ConsumerGroupMember | None,
        names: Callable[[ConsumerGroupMember], Iterable[str]],
    ) -> None:
        if new is not None:
            for name in names(new):
                change_count(counts, name, 1)
        if old is not None:
            for name in names(old):
                change_count(counts, name, -1)


def topics_of(
    member: ConsumerGroupMember, resolved: Mapping[str, ResolvedRegularExpression]
) -> frozenset[str]:
    """Topics that a member subscribed to; a pattern not yet resolved has none."""
    names = member.subscribed_topic_names
    found = resolved.get(member.subscribed_topic_regex or "")
    if found is None or not found.topics:
        return names
    return found.topics | names if names else found.topics


class Parked(NamedTuple):
    """A request that waits for the target of a group epoch; `finish` makes its response."""

    member_id: str
    group_epoch: int
    finish: Callable[["ConsumerGroup", "Changes"], ConsumerGroupHeartbeatResponse]
    reply: Callable[[ConsumerGroupHeartbeatResponse], None]


class GroupWork(ModernGroupWork):
    """Transient state of a consumer group, which is not in the log.

    Attributes:
        is_resolving: The group's patterns are being resolved.
        is_hashing: The metadata hash of its many topics is being computed.
        assign_timer: Computes the target at `assign_due_ms`.
        assign_not_before_ms: When the next target may be computed at the earliest.
        deferred_since_ms: When the first request for the next target came; None: there is none.
        parked: Heartbeats and JoinGroups that wait for a target.
    """

    __slots__ = (
        "assign_due_ms",
        "assign_not_before_ms",
        "assign_timer",
        "deferred_since_ms",
        "is_hashing",
        "is_resolving",
        "parked",
    )

    def __init__(self) -> None:
        super().__init__()
        self.is_resolving = False
        self.is_hashing = False
        self.assign_not_before_ms = 0.0
        self.deferred_since_ms: float | None = None
        self.assign_due_ms = 0.0
        self.assign_timer: TimerHandle | None = None
        self.parked: list[Parked] = []


def _check_epoch(member: ConsumerGroupMember, epoch: int) -> ErrorCode:
    if epoch == member.member_epoch:
        return ErrorCode.NONE
    if member.classic is not None:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def _regexes(member: ConsumerGroupMember) -> tuple[str, ...]:
    return (member.subscribed_topic_regex,) if member.subscribed_topic_regex else ()


def _assignors(member: ConsumerGroupMember) -> tuple[str, ...]:
    return () if member.server_assignor is None else (member.server_assignor,)


def _classic_protocols(member: ConsumerGroupMember) -> list[str]:
    return [] if member.classic is None else [p.name for p in member.classic.supported_protocols]
