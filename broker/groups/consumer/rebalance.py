"""The rebalance of consumer groups, one heartbeat at a time, up to the response.

    what has changed? subscriptions, topics: a new group epoch
    target            computed when the group epoch is ahead of it      `targets`
    one step          of the member towards the target                  `reconciliation`
    response          when all this is in the log                       `journal`

A member that needs the next target waits, parked, until it is there.

Source: Kafka, GroupMetadataManager.java (consumerGroupHeartbeat, maybeReconcile).
"""

import logging
from collections.abc import Callable
from functools import partial
from uuid import UUID

from broker.controller.configs.group_settings import ConsumerGroupSettings
from broker.controller.images.cluster_image import ClusterImage
from broker.groups.consumer.assignors.builtin import BUILTIN_ASSIGNORS
from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup, Parked
from broker.groups.consumer.hash_refresh import HashRefresh
from broker.groups.consumer.member import STATIC_LEAVE_EPOCH, ConsumerGroupMember
from broker.groups.consumer.reconciliation import Owned, reconcile
from broker.groups.consumer.regex_refresh import RegexRefresh
from broker.groups.consumer.responses import (
    HeartbeatReply,
    answer_when_written,
    assignment_message,
    refusal,
)
from broker.groups.consumer.sessions import MemberSessions
from broker.groups.consumer.targets import Targets
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.group_hashes import GroupHashes
from broker.groups.modern.journal import Journal
from broker.groups.modern.offload import Offload
from broker.groups.regex.topic_regex import InvalidRegexError, TopicRegex
from broker.groups.state.group_shard import GroupShard
from broker.runtime.batches import BATCH_SIZE
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from storage.environment.environment import Environment

logger = logging.getLogger(__name__)


class ConsumerRebalance:
    """Moves the members of one shard's groups towards their targets.

    Attributes:
        journal: Writes the changes.
        hashes: Metadata hashes of the groups.
    """

    def __init__(
        self,
        shard: GroupShard,
        sessions: MemberSessions,
        *,
        settings: BrokerConfig,
        environment: Environment,
        offload: Offload,
        image: Callable[[], ClusterImage],
        group_settings: Callable[[str], ConsumerGroupSettings],
    ) -> None:
        self._sessions = sessions
        self._timer = environment.timer
        self._image = image
        self._group_settings = group_settings
        self._stats = shard.stats
        self.journal = Journal(shard.log)
        self.hashes = GroupHashes()
        self._hash_refresh = HashRefresh(
            self.hashes, offload=offload, image=image, ready=self._resolved
        )
        self._regexes = RegexRefresh(
            interval_ms=settings.group_consumer_regex_refresh_interval_ms,
            clock=environment.clock,
            offload=offload,
            image=image,
            hashes=self.hashes,
            hash_of=self._hash_refresh.of,
            ready=self._resolved,
        )
        self._targets = Targets(
            {name: BUILTIN_ASSIGNORS[name] for name in settings.group_consumer_assignors},
            interval_ms=settings.group_consumer_assignment_interval_ms,
            clock=environment.clock,
            timer=environment.timer,
            offload=offload,
            image=image,
            journal=self.journal,
            ready=self._target_ready,
        )

    def hash_of(self, group: ConsumerGroup) -> int:
        """The metadata hash of the group's topics, or for now the one that it has."""
        return self._hash_refresh.of(group)

    def are_patterns_due(self, group: ConsumerGroup) -> bool:
        """Whether the group's patterns are to be resolved with the next heartbeat."""
        return self._regexes.is_due(group)

    def topics_created(self) -> None:
        """Note that there are new topics, which patterns may match."""
        self._regexes.topics_created()

    def advance(
        self,
        group: ConsumerGroup,
        changes: Changes,
        member: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        *,
        is_new_regex: bool,
        is_joining: bool,
        is_full: bool,
        owned: Owned | None,
        reply: HeartbeatReply,
    ) -> None:
        """Apply a member's request, reconcile it by one step, and answer when this is written.

        Args:
            group: The group, which is in the shard.
            changes: Made before; they are written with those made here.
            member: The member as it was, or a new one.
            updated: The member as it is now.
            is_new_regex: Whether it brings a pattern that the group has not seen.
            is_joining: Whether it waits for a target that includes it, as does a member whose
                subscription has changed.
            is_full: Whether the answer has its partitions even if these are the same.
            owned: What it reports to own.
            reply: Called once.
        """
        member_id = updated.member_id
        has_subscription_changed = self._subscribe(
            group, member, updated, changes, is_new_regex=is_new_regex
        )
        if member_id not in group.timers:
            self._sessions.add(group, member_id)
            # Of hundreds that join at once, the new target shows how many there are.
            logger.debug(
                "member joins group=%s member=%s instance=%s",
                log_value(group.group_id),
                log_value(member_id),
                log_value(updated.instance_id or ""),
            )
        self._sessions.touch(group, member_id)
        finish = partial(
            self._finish,
            member_id=member_id,
            before=member.assigned,
            owned=owned,
            has_subscription_changed=has_subscription_changed,
            is_full=is_full,
        )
        if group.group_epoch > group.assignment_epoch:
            is_there = self._targets.update(group, changes, joining=is_joining)
            if is_there:
                self.wake(group)
            elif is_joining or has_subscription_changed:
                self.journal.write(group, changes.records, _ignore)
                self._park(group, member_id, finish, reply)
                return
        elif is_joining and group.work.is_resolving and not group.topics_of(updated):
            # Its pattern is being resolved.
            self.journal.write(group, changes.records, _ignore)
            self._park(group, member_id, finish, reply)
            self._targets.defer(group)
            return
        response = finish(group, changes)
        self.journal.write(group, changes.records, partial(answer_when_written, reply, response))

    def is_new_pattern(
        self, group: ConsumerGroup, member: ConsumerGroupMember, updated: ConsumerGroupMember
    ) -> bool:
        """Whether the member brings a pattern that is new to the group.

        Raises:
            ApiError: INVALID_REGULAR_EXPRESSION.
        """
        regex = updated.subscribed_topic_regex
        if not regex or regex == member.subscribed_topic_regex or regex in group.regex_counts:
            return False
        try:
            TopicRegex.compile(regex)
        except InvalidRegexError as error:
            raise ApiError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
            ) from None
        return True

    def _subscribe(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        changes: Changes,
        *,
        is_new_regex: bool,
    ) -> bool:
        """Update the member; begin a new group epoch if its subscription has changed.

        Returns:
            Whether the member's subscription has changed.
        """
        old_regex, new_regex = member.subscribed_topic_regex, updated.subscribed_topic_regex
        if updated != member or member.member_id not in group.members:
            changes.put_member(updated)
        has_names_changed = updated.subscribed_topic_names != member.subscribed_topic_names
        has_regex_changed = old_regex != new_regex
        if has_regex_changed and old_regex and old_regex not in group.regex_counts:
            changes.remove_resolved(old_regex)
        # A pattern that is not resolved yet will make a new epoch when it is.
        bumps = (
            group.group_epoch == 0
            or has_names_changed
            or (has_regex_changed and (not new_regex or new_regex in group.resolved))
        )
        self._regexes.maybe_refresh(group, is_required=is_new_regex)
        if bumps or group.is_metadata_stale:
            group.is_metadata_stale = False
            metadata_hash = self._hash_refresh.of(group)
            if bumps or metadata_hash != group.metadata_hash:
                changes.set_epoch(group.group_epoch + 1, metadata_hash)
                self._stats.consumer_group_rebalances += 1
            if group.has_partition_metadata_record:
                changes.remove_partition_metadata()
        return has_names_changed or has_regex_changed

    def _finish(
        self,
        group: ConsumerGroup,
        changes: Changes,
        *,
        member_id: str,
        before: Assignment,
        owned: Owned | None,
        has_subscription_changed: bool,
        is_full: bool,
    ) -> ConsumerGroupHeartbeatResponse:
        """Reconcile the member by one step; return its response, for when that is written."""
        member = group.members.get(member_id)
        if member is None or member.member_epoch == STATIC_LEAVE_EPOCH:
            # It has left while it was waiting; a step would bring it back.
            return refusal(ApiError(ErrorCode.UNKNOWN_MEMBER_ID))
        try:
            member = self.reconcile(
                group,
                changes,
                member,
                has_subscription_changed=has_subscription_changed,
                owned=owned,
            )
        except ApiError as error:
            return refusal(error)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._group_settings(group.group_id).heartbeat_interval_ms,
        )
        if is_full or member.assigned != before:
            response.assignment = assignment_message(member.assigned)
        return response

    def reconcile(
        self,
        group: ConsumerGroup,
        changes: Changes,
        member: ConsumerGroupMember,
        *,
        has_subscription_changed: bool,
        owned: Owned | None,
    ) -> ConsumerGroupMember:
        """Reconcile a member by one step, and start the timer of its revocation.

        Raises:
            ApiError: FENCED_MEMBER_EPOCH, for a member in a state that is not known here.
        """
        epoch = group.assignment_epoch
        if not has_subscription_changed and member.is_reconciled_to(epoch):
            return member
        topics_by_id = self._image().topics_by_id
        subscribed = group.topics_of(member)

        def is_subscribed_to(topic_id: UUID) -> bool:
            topic = topics_by_id.get(topic_id)
            return topic is not None and topic.name in subscribed

        moved = reconcile(
            member,
            assignment_epoch=epoch,
            target=group.target_of(member.member_id),
            is_subscribed_to=is_subscribed_to,
            partition_epoch=group.partition_epoch,
            has_subscription_changed=has_subscription_changed,
            owned=owned,
        )
        if moved == member:
            return member
        changes.put_current(moved)
        if moved.classic is None:
            self._sessions.await_revocation(group, moved)
        return moved

    def _park(
        self,
        group: ConsumerGroup,
        member_id: str,
        finish: Callable[[ConsumerGroup, Changes], ConsumerGroupHeartbeatResponse],
        reply: HeartbeatReply,
    ) -> None:
        group.work.parked.append(Parked(member_id, group.group_epoch, finish, reply))

    def _target_ready(self, group: ConsumerGroup, changes: Changes) -> None:
        self.journal.write(group, changes.records, _ignore)
        self.wake(group)

    def wake(self, group: ConsumerGroup) -> None:
        """Answer requests that waited for the target, in batches."""
        work = group.work
        if not work.parked:
            return
        is_current = group.group_epoch <= group.assignment_epoch
        ready: list[Parked] = []
        still: list[Parked] = []
        for parked in work.parked:
            has_target = is_current or parked.group_epoch <= group.assignment_epoch
            is_over = has_target or parked.member_id not in group.members
            (ready if is_over else still).append(parked)
        work.parked = still
        if work.parked:
            self._targets.defer(group)
        self._answer_parked(group, ready)

    def _answer_parked(self, group: ConsumerGroup, ready: list[Parked]) -> None:
        if group.is_dead:
            # Since the last batch: it is another kind of group now, or another broker's.
            for parked in ready:
                parked.reply(refusal(ApiError(ErrorCode.NOT_COORDINATOR)))
            return
        now, later = ready[:BATCH_SIZE], ready[BATCH_SIZE:]
        if later:
            # Before a call can fail: the others must not wait for ever.
            self._timer.call_later_ms(0, lambda: self._answer_parked(group, later))
        changes = Changes(group)
        answers = [(parked.reply, parked.finish(group, changes)) for parked in now]
        for parked in now:
            if parked.member_id in group.timers:
                self._sessions.touch(group, parked.member_id)

        def written(code: ErrorCode) -> None:
            for reply, response in answers:
                answer_when_written(reply, response, code)

        self.journal.write(group, changes.records, written)

    def _resolved(self, group: ConsumerGroup, changes: Changes) -> None:
        self.journal.write(group, changes.records, _ignore)
        if group.work.parked and group.group_epoch <= group.assignment_epoch:
            self.wake(group)


def _ignore(code: ErrorCode) -> None:
    """No request waits for this write."""
