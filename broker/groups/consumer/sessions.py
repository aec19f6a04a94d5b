"""Timers of members of consumer groups: a member is fenced when one of them ends.

    no heartbeat                       session.timeout.ms of the group, or of the classic member
    partitions are not revoked         the member's rebalance timeout

Source: Kafka, GroupMetadataManager.java (scheduleConsumerGroupSessionTimeout,
scheduleConsumerGroupRebalanceTimeout).
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from broker.controller.configs.group_settings import ConsumerGroupSettings
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.consumer.timers import MemberTimers
from broker.runtime.deadline import Deadline
from storage.environment.environment import Environment

SESSION_OVER: Final = "its session is over"
NOT_REVOKED: Final = "it does not give back partitions"


class MemberSessions:
    """Timers of the members of one shard's consumer groups."""

    def __init__(
        self,
        environment: Environment,
        group_settings: Callable[[str], ConsumerGroupSettings],
        expire: Callable[[ConsumerGroup, str, str], None],
    ) -> None:
        """`expire` fences a member of a group, with the reason."""
        self._clock = environment.clock
        self._timer = environment.timer
        self._group_settings = group_settings
        self._expire = expire

    def add(self, group: ConsumerGroup, member_id: str) -> None:
        """Add the timers of a member; none runs yet."""
        group.timers[member_id] = MemberTimers(
            Deadline(
                self._timer, self._clock, partial(self._expire, group, member_id, SESSION_OVER)
            )
        )

    def start(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """Start the timers of a member that was read from the log, or whose group migrates."""
        self.add(group, member.member_id)
        self._begin(group, member)
        self.await_revocation(group, member)

    def give_again(self, group: ConsumerGroup, member: ConsumerGroupMember, reason: str) -> None:
        """Start the timer again that has expired with this reason."""
        if reason == NOT_REVOKED:
            self.await_revocation(group, member)
        else:
            self._begin(group, member)

    def _begin(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        if member.classic is None:
            self.touch(group, member.member_id)
        else:
            group.timers[member.member_id].session.set(member.classic.session_timeout_ms)

    def touch(self, group: ConsumerGroup, member_id: str) -> None:
        """Restart a member's session."""
        timeout_ms = self._group_settings(group.group_id).session_timeout_ms
        group.timers[member_id].session.set(timeout_ms)

    def await_revocation(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """Give a member its rebalance timeout to revoke partitions, if it has to."""
        timers = group.timers[member.member_id]
        timers.cancel_rebalance()
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            return

        def fire() -> None:
            timers.rebalance = None
            present = group.members.get(member.member_id)
            if present is not None and present.member_epoch == member.member_epoch:
                self._expire(group, member.member_id, NOT_REVOKED)

        timers.rebalance = self._timer.call_later_ms(member.rebalance_timeout_ms, fire)
