"""Reconciliation of a member with its target, by one step.

    STABLE        at the target's epoch: nothing to do. Otherwise take the next step.
    UNREVOKED     it has to revoke partitions. Until it no longer reports them it stays in its
                  epoch; then it goes on to the next one.
    UNRELEASED    it waits for partitions that others have not revoked; takes those that are free.
    UNKNOWN       written by a newer broker; it has to join again.

The next step:

    has partitions that the target does not give it, and reports them   UNREVOKED, in its old epoch
    target gives it partitions that are free                            takes them, in the new epoch
    target gives it partitions that another member owns                 UNRELEASED, new epoch
    owns all of its target                                              STABLE, new epoch

Whatever the target, a member gets no partitions of topics it no longer subscribes to.

Source: Kafka, CurrentAssignmentBuilder.java.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.modern.assignment import Assignment
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode


class OwnedPartitions(Protocol):
    """Partitions of one topic, as a heartbeat lists them."""

    topic_id: UUID
    partitions: list[int]


Owned = Sequence[OwnedPartitions]


def reconcile(
    member: ConsumerGroupMember,
    *,
    assignment_epoch: int,
    target: Assignment,
    is_subscribed_to: Callable[[UUID], bool],
    partition_epoch: Callable[[UUID, int], int],
    has_subscription_changed: bool,
    owned: Owned | None,
) -> ConsumerGroupMember:
    """The member after one step; the same object when there is none to take.

    Args:
        member: The member.
        assignment_epoch: Of the target.
        target: The member's target assignment.
        is_subscribed_to: Whether the member reads a topic that exists.
        partition_epoch: Epoch in which a partition is owned; -1 when it is free.
        has_subscription_changed: With this very heartbeat.
        owned: Partitions that the member reports; None when it does not.

    Raises:
        ApiError: FENCED_MEMBER_EPOCH, for a member in a state that is not known here.
    """
    step = _Step(member, assignment_epoch, target, is_subscribed_to, partition_epoch, owned)
    if member.state is MemberState.STABLE:
        if member.member_epoch != assignment_epoch:
            return step.next(member.member_epoch)
        return step.without_unsubscribed() if has_subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if owns_any(owned, member.pending_revocation):
            return step.without_unsubscribed() if has_subscription_changed else member
        # After a change of subscriptions alone there is no new target yet.
        return step.next(min(member.member_epoch + 1, assignment_epoch))
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return step.next(member.member_epoch)
    if owned is None or owned:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its "
            "partitions and rejoin.",
        )
    return step.next(assignment_epoch)


def owns_any(owned: Owned | None, assignment: Assignment) -> bool:
    """Whether the member reports one of the partitions, or reports none at all."""
    if owned is None:
        return True
    for topic in owned:
        partitions = assignment.get(topic.topic_id)
        if partitions is not None and not set(partitions).isdisjoint(topic.partitions):
            return True
    return False


def owns_only(owned: Owned | None, assignment: Assignment) -> bool:
    """Whether the member reports its partitions, and only some of these."""
    if owned is None:
        return False
    for topic in owned:
        partitions = assignment.get(topic.topic_id)
        if partitions is None or not set(partitions).issuperset(topic.partitions):
            return False
    return True


class _Step:
    __slots__ = (
        "_assignment_epoch",
        "_is_subscribed_to",
        "_member",
        "_owned",
        "_partition_epoch",
        "_target",
    )

    def __init__(
        self,
        member: ConsumerGroupMember,
        assignment_epoch: int,
        target: Assignment,
        is_subscribed_to: Callable[[UUID], bool],
        partition_epoch: Callable[[UUID, int], int],
        owned: Owned | None,
    ) -> None:
        self._member = member
        self._assignment_epoch = assignment_epoch
        self._target = target
        self._is_subscribed_to = is_subscribed_to
        self._partition_epoch = partition_epoch
        self._owned = owned

    def without_unsubscribed(self) -> ConsumerGroupMember:
        """Revoke partitions of topics that the member has just unsubscribed from."""
        member = self._member
        kept: dict[UUID, tuple[int, ...]] = {}
        revoked = dict(member.pending_revocation)
        for topic_id, partitions in member.assigned.items():
            if self._is_subscribed_to(topic_id):
                kept[topic_id] = partitions
            else:
                revoked[topic_id] = _union(revoked.get(topic_id, ()), partitions)
        if len(kept) == len(member.assigned):
            return member
        if owns_any(self._owned, revoked):
            return member._replace(
                state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
            )
        return member._replace(assigned=kept)

    def next(self, member_epoch: int) -> ConsumerGroupMember:
        """Revoke first, in `member_epoch`; otherwise assign, in the target's epoch."""
        member = self._member
        assigned: dict[UUID, tuple[int, ...]] = {}
        revoked: dict[UUID, tuple[int, ...]] = {}
        added: dict[UUID, tuple[int, ...]] = {}
        has_unreleased = False
        for topic_id in self._target.keys() | member.assigned.keys():
            current = member.assigned.get(topic_id, ())
            target = self._target.get(topic_id, ()) if self._is_subscribed_to(topic_id) else ()
            if current == target:
                if current:
                    assigned[topic_id] = current
                continue
            wanted, had = set(target), set(current)
            if kept := wanted & had:
                assigned[topic_id] = tuple(sorted(kept))
            if lost := had - wanted:
                revoked[topic_id] = tuple(sorted(lost))
            missing = wanted - had
            if not missing:
                continue
            # It is itself the owner of partitions that it still has to revoke.
            own = member.pending_revocation.get(topic_id, ())
            free = [
                partition
                for partition in missing
                if partition in own or self._partition_epoch(topic_id, partition) == -1
            ]
            has_unreleased = has_unreleased or len(free) < len(missing)
            if free:
                added[topic_id] = tuple(sorted(free))
        if revoked and owns_any(self._owned, revoked):
            return member.with_epoch(member_epoch)._replace(
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned=_sorted(assigned),
                pending_revocation=_sorted(revoked),
            )
        for topic_id, partitions in added.items():
            assigned[topic_id] = _union(assigned.get(topic_id, ()), partitions)
        return member.with_epoch(self._assignment_epoch)._replace(
            state=(MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE),
            assigned=_sorted(assigned),
            pending_revocation={},
        )


def _union(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({*one, *other}))


def _sorted(assignment: Mapping[UUID, tuple[int, ...]]) -> Assignment:
    """The same records whatever the order of a set of ids."""
    return dict(sorted(assignment.items()))
