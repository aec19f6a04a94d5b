"""One member of a share group, as a value: a change makes a new one.

Several members may own the same partition, so a member is given its whole target at once: there is
nothing that somebody else has to give back first.

Source: Kafka, ShareGroupMember.java, ShareGroupAssignmentBuilder.java.
"""

from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

from broker.groups.modern.assignment import NO_PARTITIONS, Assignment, sorted_assignment
from protocol.internal.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

STABLE: Final = 0
"""The state in the log, which is always this one."""


class ShareGroupMember(NamedTuple):
    """Who a member is, what it wants and what it has.

    Attributes:
        member_id: Made up by the client.
        member_epoch: Of the target that it was given.
        previous_member_epoch: The one before: the answer with the present one may have got lost.
        rack_id: Where it is.
        client_id: Its client's name for itself.
        client_host: Where its last new heartbeat came from.
        subscribed_topic_names: What it reads.
        assigned: What it owns, perhaps together with others.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NO_PARTITIONS

    def reconciled(
        self,
        assignment_epoch: int,
        target: Assignment,
        is_subscribed_to: Callable[[UUID], bool],
    ) -> "ShareGroupMember":
        """The member with its target of this epoch, without topics it does not ask for any more."""
        assigned = {topic: owned for topic, owned in target.items() if is_subscribed_to(topic)}
        if assignment_epoch == self.member_epoch:
            return self._replace(assigned=assigned)
        return self._replace(
            assigned=assigned,
            member_epoch=assignment_epoch,
            previous_member_epoch=self.member_epoch,
        )

    def metadata_value(self) -> ShareGroupMemberMetadataValue:
        """Who it is and what it wants, for the log."""
        return ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=tuple(sorted(self.subscribed_topic_names)),
        )

    def current_value(self) -> ShareGroupCurrentMemberAssignmentValue:
        """What it owns, for the log."""
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=STABLE,
            assigned_partitions=self.assigned,
        )

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> "ShareGroupMember":
        """The member as the log describes it."""
        return self._replace(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
        )

    def with_current(self, value: ShareGroupCurrentMemberAssignmentValue) -> "ShareGroupMember":
        """The member with what it owns according to the log."""
        return self._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned=sorted_assignment(value.assigned_partitions),
        )
