"""A group whose members are assigned partitions by the broker: a consumer group or a share group.

    group epoch        grows when members, subscriptions or topics change
    assignment epoch   group epoch that the target assignment was computed for
    member epochs      of the target that each member has been moved to

    members + topics ──> target assignment ──> assignment of each member
                         `target`              `members[...].assigned`

Only state and its invariants; requests, timers and the log are in each kind's `protocol`.
Each method changes the group as one record of the log does, whether the record
is being written (`changes`) or read back (`replay`).

Source: Kafka, ModernGroup.java.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from typing_extensions import override

from broker.coordinator.outcome import Done, KeyValue
from broker.groups.modern.assignment import NO_PARTITIONS, Assignment
from broker.groups.modern.member import ModernGroupMember
from broker.groups.modern.records import GroupRecords
from broker.groups.state.group import Group

Member = TypeVar("Member", bound=ModernGroupMember)

HashKey: TypeAlias = tuple[int, int, int]
"""Version of the subscriptions, revisions of topics and brokers that a hash was computed from."""


class ModernGroupWork:
    """Transient state of a group, which is not in the log; a new coordinator starts without it.

    Attributes:
        unwritten: Writes that are not yet committed.
        behind_writes: Responses that must not be sent before these are committed.
        metadata_hash: The hash of the topics, and its key.
        is_assigning: A target is being computed in another thread.
    """

    __slots__ = ("behind_writes", "is_assigning", "metadata_hash", "unwritten")

    def __init__(self) -> None:
        self.unwritten = 0
        self.behind_writes: list[Done] = []
        self.metadata_hash: tuple[HashKey, int] | None = None
        self.is_assigning = False


class ModernGroup(Group, Generic[Member]):
    """Members, subscriptions and target of one group.

    Attributes:
        members: By member id.
        target: Target assignment by member id.
        metadata_hash: Of the subscribed topics, as of the group epoch.
        name_counts: How many members subscribe to a topic by its name.
        topics_version: Grows when a topic comes into or goes out of the subscriptions.
        is_metadata_stale: Topics may have changed since the metadata hash was computed.
        work: Transient state.
    """

    __slots__ = (
        "assignment_epoch",
        "group_epoch",
        "group_id",
        "is_dead",
        "is_metadata_stale",
        "members",
        "metadata_hash",
        "name_counts",
        "target",
        "topics_version",
        "type",
        "work",
    )

    def __init__(self, group_id: str, work: ModernGroupWork) -> None:
        self.group_id = group_id
        self.group_epoch = 0
        self.assignment_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, Member] = {}
        self.target: dict[str, Assignment] = {}
        self.name_counts: dict[str, int] = {}
        self.topics_version = 0
        self.is_metadata_stale = True
        self.is_dead = False
        self.work = work

    @property
    @abstractmethod
    def records(self) -> GroupRecords[Member]:
        """Encodes the group's records."""

    # -- properties --

    @property
    @override
    def member_count(self) -> int:
        """Number of members, static ones that are away included."""
        return len(self.members)

    @property
    @override
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    @override
    def is_expecting_members(self) -> bool:
        """Always False: a member is one from its first heartbeat on."""
        return False

    @property
    @override
    def generation_or_epoch(self) -> int:
        """The group epoch."""
        return self.group_epoch

    def has_reached_target(self, member: Member) -> bool:
        """Whether a member is where the newest group epoch wants it."""
        return member.member_epoch == self.group_epoch == self.assignment_epoch

    @override
    def die(self, now_ms: int) -> None:
        """Move to state Dead and stop all timers."""
        self.is_dead = True
        self._stop_timers()

    @abstractmethod
    def _stop_timers(self) -> None:
        """Stop every timer of the group and its members."""

    @abstractmethod
    def _stop_member_timers(self, member_id: str) -> None:
        """Stop the timers of a member that is removed."""

    # -- subscriptions --

    @override
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return topic in self.name_counts

    def subscribed_topics(self) -> Iterator[str]:
        """Every topic once that a member subscribed to, whether it exists or not."""
        yield from self.name_counts

    # -- changes, one for each kind of record --

    def update_member(self, member: Member) -> None:
        """Add or update a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is None or old.subscribed_topic_names is not member.subscribed_topic_names:
            for topic in member.subscribed_topic_names:
                self._count_name(topic, 1)
            if old is not None:
                for topic in old.subscribed_topic_names:
                    self._count_name(topic, -1)
        self._member_changed(old, member)

    def remove_member(self, member_id: str) -> None:
        """Remove a member and its timers; its target stays."""
        self._stop_member_timers(member_id)
        old = self.members.pop(member_id, None)
        if old is None:
            return
        for topic in old.subscribed_topic_names:
            self._count_name(topic, -1)
        self._member_changed(old, None)

    def _member_changed(self, old: Member | None, new: Member | None) -> None:
        """Hook: a member was added (`old` is None), changed or removed (`new` is None)."""

    def update_target(self, member_id: str, assignment: Assignment) -> None:
        """Set a member's target."""
        self.target[member_id] = assignment

    def target_of(self, member_id: str) -> Assignment:
        """A member's target; empty when none has been computed with it."""
        return self.target.get(member_id, NO_PARTITIONS)

    def _count_name(self, topic: str, change: int) -> None:
        was_subscribed = self.is_subscribed_to(topic)
        change_count(self.name_counts, topic, change)
        if was_subscribed is not self.is_subscribed_to(topic):
            self.topics_version += 1

    # -- the log --

    @override
    def tombstones(self) -> list[KeyValue]:
        """Tombstones of all the group's records, in the order in which Kafka reads them."""
        group_id, records = self.group_id, self.records
        keys = [
            *(records.current_key(group_id, member_id) for member_id in self.members),
            *(records.target_key(group_id, member_id) for member_id in self.target),
            records.target_epoch_key(group_id),
            *(records.member_key(group_id, member_id) for member_id in self.members),
            *self._further_keys(),
            records.group_key(group_id),
        ]
        return [(key, None) for key in keys]

    @abstractmethod
    def _further_keys(self) -> list[bytes]:
        """Keys of records that only this kind of group has."""


AnyModernGroup: TypeAlias = ModernGroup[Any]
"""A group whose kind does not matter."""


def change_count(counts: dict[str, int], name: str, change: int) -> None:
    """Add to a count; one of zero is removed."""
    count = counts.get(name, 0) + change
    if count:
        counts[name] = count
    else:
        counts.pop(name, None)
