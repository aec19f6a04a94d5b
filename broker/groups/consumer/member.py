"""A member of a consumer group, as a value: a change makes a new one.

A member's assignment moves towards its target in steps, each of which it has to confirm:

               target has more                         target has less
    STABLE ─────────────────────> UNRELEASED    STABLE ─────────────────> UNREVOKED
      ^   another member owns it yet  │           ^   it owns it still        │
      └───────────────────────────────┘           └───────────────────────────┘
             the partitions are free                it has given them back

See `reconciliation` for the steps.

Source: Kafka, ConsumerGroupMember.java, MemberState.java.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from broker.groups.modern.assignment import NO_PARTITIONS, Assignment, sorted_assignment
from broker.groups.modern.member import JOIN_EPOCH
from protocol.internal.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

STATIC_LEAVE_EPOCH: Final = -2
"""Member epoch that a static member sends when it leaves temporarily."""


class MemberState(IntEnum):
    """State of a member's reconciliation with its target; the numbers are in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127
    """Written by a newer broker."""

    @classmethod
    def of(cls, number: int) -> "MemberState":
        """The state of a number in the log."""
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN


class ConsumerGroupMember(NamedTuple):
    """A member, its subscription and its assignment.

    Attributes:
        member_epoch: Of the target that the member works on; 0 when it has just joined, -2 while a
            static member is away.
        previous_member_epoch: The one before, which the member sends if an answer got lost.
        rebalance_timeout_ms: How long it may take to give partitions back; -1: unknown.
        subscribed_topic_regex: A pattern of further topics; empty (None in a log of others): none.
        assigned: What it owns, or may take as of its last answer.
        pending_revocation: What it has to give back before it gets anything.
        classic: Set while the member speaks the classic protocol.
    """

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NO_PARTITIONS
    pending_revocation: Assignment = NO_PARTITIONS
    classic: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it sends JoinGroup rather than ConsumerGroupHeartbeat."""
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether it owns its target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def with_epoch(self, member_epoch: int) -> "ConsumerGroupMember":
        """The member in another epoch; its current epoch becomes the previous one."""
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        """Its identity and subscription, for the log."""
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=tuple(sorted(self.subscribed_topic_names)),
            subscribed_topic_regex=self.subscribed_topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def current_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """Its current assignment, for the log."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=int(self.state),
            assigned_partitions=self.assigned,
            partitions_pending_revocation=self.pending_revocation,
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerGroupMember":
        """The member with metadata from the log."""
        return self._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_current(
        self, value: ConsumerGroupCurrentMemberAssignmentValue
    ) -> "ConsumerGroupMember":
        """The member with its current assignment from the log."""
        return self._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=sorted_assignment(value.assigned_partitions),
            pending_revocation=sorted_assignment(value.partitions_pending_revocation),
        )
