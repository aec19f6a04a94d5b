"""The protocol of consumer groups: ConsumerGroupHeartbeat does everything.

One heartbeat:

    who is it?        create or find the member, check its epoch      FENCED_MEMBER_EPOCH, ...
    what has changed? subscriptions, topics: a new group epoch
    target            compute it when the group epoch is ahead of it  `targets`
    one step          of the member towards the target                `reconciliation`
    answer            when all this is in the log                     `journal`

A heartbeat that finds nothing to do costs a few microseconds and writes nothing.

Source: Kafka, GroupMetadataManager.java (consumerGroupHeartbeat, consumerGroupLeave,
consumerGroupFenceMembers); KIP-848.
"""

import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

from broker.controller.configs.group_settings import ConsumerGroupSettings
from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.outcome import KeyValue
from broker.groups.consumer.assignors.builtin import BUILTIN_ASSIGNORS
from broker.groups.consumer.backlog import Backlog
from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup, Parked
from broker.groups.consumer.hash_refresh import HashRefresh
from broker.groups.consumer.member import STATIC_LEAVE_EPOCH, ConsumerGroupMember, MemberState
from broker.groups.consumer.reconciliation import Owned, owns_only, reconcile
from broker.groups.consumer.regex_refresh import RegexRefresh
from broker.groups.consumer.targets import Targets
from broker.groups.consumer.timers import MemberTimers
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.group_hashes import GroupHashes
from broker.groups.modern.journal import Journal
from broker.groups.modern.member import JOIN_EPOCH, LEAVE_EPOCH, Client
from broker.groups.modern.offload import Offload
from broker.groups.regex.topic_regex import InvalidRegexError, TopicRegex
from broker.groups.state.group import Group, GroupType
from broker.groups.state.group_shard import GroupShard, TooManyGroupsError
from broker.runtime.batches import PER_TURN
from broker.runtime.deadline import Deadline
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import Assignment as AssignmentMessage
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from storage.environment.environment import Environment

logger = logging.getLogger(__name__)

HeartbeatReply = Callable[[ConsumerGroupHeartbeatResponse], None]


class Heartbeat(NamedTuple):
    """A request, who sends it, and what takes the answer."""

    request: ConsumerGroupHeartbeatRequest
    client: Client
    reply: HeartbeatReply


class Migration(Protocol):
    """What turns groups of one protocol into those of the other while members go on."""

    def upgrade(self, group: Group, changes: list[KeyValue]) -> ConsumerGroup:
        """Make a consumer group of a classic one that has members, and put it into its place.

        Raises:
            ApiError: It may not be done; GROUP_ID_NOT_FOUND, with the reason.
        """
        ...

    def downgrade(self, group: ConsumerGroup, leaving: Iterable[ConsumerGroupMember]) -> bool:
        """Make a classic group of what is left without these members, if only classic ones are.

        It writes what there is to write. False: the group stays what it is.
        """
        ...


class ConsumerProtocol:
    """Serves the members of one shard's consumer groups.

    Attributes:
        migration: Converts groups; None: consumer groups and classic groups are kept apart.
    """

    def __init__(
        self,
        shard: GroupShard,
        *,
        settings: BrokerConfig,
        environment: Environment,
        offload: Offload,
        image: Callable[[], ClusterImage],
        group_settings: Callable[[str], ConsumerGroupSettings],
        backlog: Backlog[Heartbeat] | None = None,
    ) -> None:
        """Make it.

        Args:
            shard: Whose groups.
            settings: Of the broker.
            environment: Clock and timers; randomness for member ids.
            offload: Runs what takes long.
            image: The cluster as it is now.
            group_settings: Of one group.
            backlog: Where heartbeats wait that change groups; None: none waits.
        """
        self._shard = shard
        self._clock = environment.clock
        self._timer = environment.timer
        self._randomness = environment.randomness
        self._image = image
        self._group_settings = group_settings
        self._max_size = settings.group_consumer_max_size
        self._stats = shard.stats
        self._backlog = backlog
        self._is_closed = False
        self.assignors = {
            name: BUILTIN_ASSIGNORS[name] for name in settings.group_consumer_assignors
        }
        self.default_assignor = next(iter(self.assignors))
        self.journal = Journal(shard.log)
        self.hashes = GroupHashes()
        self.migration: Migration | None = None
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
            self.assignors,
            interval_ms=settings.group_consumer_assignment_interval_ms,
            clock=environment.clock,
            timer=environment.timer,
            offload=offload,
            image=image,
            journal=self.journal,
            ready=self._target_ready,
        )

    # -- heartbeat --

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, reply: HeartbeatReply
    ) -> None:
        """Answer a request that `validation` has let through."""
        if self._is_quiet(request, client, reply):
            return
        if (
            request.member_epoch != JOIN_EPOCH
            and request.group_id not in self._shard.groups
            and not self._backlog
        ):
            # It changes nothing either, and is not to take the place of one that does. Where some
            # wait it may be a member that leaves behind its own joining.
            reply(_refusal(_no_such_group(request.group_id, exists=False)))
            return
        heartbeat = Heartbeat(request, client, reply)
        if self._backlog is None:
            self._serve(heartbeat)
        elif not self._backlog.offer(self, heartbeat):
            reply(_refusal(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)))

    def serve(self, requests: Sequence[Heartbeat]) -> None:
        """Answer requests that may change groups; what they change is written together."""
        if len(requests) == 1:
            self._serve_safely(requests[0])
            return
        with self.journal.gathering():
            for heartbeat in requests:
                self._serve_safely(heartbeat)

    def _serve_safely(self, heartbeat: Heartbeat) -> None:
        try:
            self._serve(heartbeat)
        except Exception:
            # The others must not wait for ever, nor must this one.
            logger.exception("heartbeat failed")
            heartbeat.reply(_refusal(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)))

    def _serve(self, heartbeat: Heartbeat) -> None:
        request, client, reply = heartbeat
        try:
            if self._is_closed:
                raise ApiError(ErrorCode.NOT_COORDINATOR)
            if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
                self._leave(request, reply)
            else:
                self._heartbeat(request, client, reply)
        except ApiError as error:
            reply(_refusal(error))

    def _is_quiet(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, reply: HeartbeatReply
    ) -> bool:
        """Answer a heartbeat that brings nothing new to a member that has all it shall have."""
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return False
        member = group.members.get(request.member_id)
        epoch = request.member_epoch
        if (
            member is None
            or epoch != member.member_epoch
            or epoch != group.group_epoch
            or epoch != group.assignment_epoch
            or epoch <= JOIN_EPOCH
            or member.state is not MemberState.STABLE
            or group.is_metadata_stale
            or self._regexes.is_due(group)
            or group.work.unwritten
            or request.topic_partitions is not None
            or request.subscribed_topic_names is not None
            or request.subscribed_topic_regex is not None
            or request.rebalance_timeout_ms != -1
            or request.server_assignor is not None
            or request.rack_id is not None
            or request.instance_id != member.instance_id
            or member.classic is not None
            or client.client_id != member.client_id
            or client.client_host != member.client_host
        ):
            return False
        settings = self._group_settings(group.group_id)
        group.timers[member.member_id].session.set(settings.session_timeout_ms)
        reply(
            ConsumerGroupHeartbeatResponse(
                member_id=member.member_id,
                member_epoch=epoch,
                heartbeat_interval_ms=settings.heartbeat_interval_ms,
            )
        )
        return True

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, reply: HeartbeatReply
    ) -> None:
        is_joining = request.member_epoch == JOIN_EPOCH
        records: list[KeyValue] = []
        group = self._group_for(request.group_id, records, is_joining=is_joining)
        if len(group.members) >= self._max_size and request.member_id not in group.members:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {self._max_size} members.",
            )
        member_id = request.member_id or self._new_member_id()
        member, replaced = _find_member(group, request, member_id)
        updated = _updated(member, request, client)
        is_new_regex = self._check_regex(group, member, updated)
        if self._shard.groups.get(group.group_id) is not group:
            try:
                self._shard.add_group(group)
            except TooManyGroupsError:
                raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED) from None
        # From here on nothing is refused: what changes is written.
        changes = Changes(group)
        changes.records += records
        if replaced is not None:
            changes.replace_member(replaced, member)
        is_full = is_joining or (
            request.rebalance_timeout_ms != -1
            and request.topic_partitions is not None
            and not (
                request.subscribed_topic_names is None and request.subscribed_topic_regex is None
            )
        )
        self.advance(
            group,
            changes,
            member,
            updated,
            is_new_regex=is_new_regex,
            is_joining=is_joining,
            is_full=is_full,
            owned=request.topic_partitions,
            reply=reply,
        )

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
        """Take over what a member says, move it one step on, and answer when this is written.

        Args:
            group: The group, which is in the shard.
            changes: Made before; they are written with what changes here.
            member: The member as it was, or a new one.
            updated: The member as it is now.
            is_new_regex: Whether it brings a pattern that the group has not seen.
            is_joining: Whether it waits for a target that has a place for it; a member whose
                subscription has changed does so, too.
            is_full: Whether the answer has its partitions even if these are the same.
            owned: What it reports to own.
            reply: Called once.
        """
        member_id = updated.member_id
        has_subscription_changed = self._subscribe(
            group, member, updated, changes, is_new_regex=is_new_regex
        )
        if member_id not in group.timers:
            group.timers[member_id] = MemberTimers(
                Deadline(self._timer, self._clock, partial(self._expire_session, group, member_id))
            )
            # Of hundreds that come at once, the new target tells how many there are.
            logger.debug(
                "member joins group=%s member=%s instance=%s",
                log_value(group.group_id),
                log_value(member_id),
                log_value(updated.instance_id or ""),
            )
        self._touch(group, member_id)
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
                self._wake(group)
            elif is_joining or has_subscription_changed:
                self.journal.write(group, changes.records, _nobody)
                self._park(group, member_id, finish, reply)
                return
        elif is_joining and group.work.is_resolving and not group.topics_of(updated):
            # Its pattern stands for nothing yet, but will in a moment.
            self.journal.write(group, changes.records, _nobody)
            self._park(group, member_id, finish, reply)
            self._targets.defer(group)
            return
        response = finish(group, changes)
        self.journal.write(group, changes.records, partial(_answer, reply, response))

    def _group_for(
        self, group_id: str, records: list[KeyValue], *, is_joining: bool
    ) -> ConsumerGroup:
        group = self._shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not is_joining or group is None:
            if group is None and is_joining:
                return ConsumerGroup(group_id)
            raise _no_such_group(group_id, exists=group is not None)
        if group.type is not GroupType.CLASSIC:
            raise _no_such_group(group_id, exists=True)
        if group.is_empty:
            records += group.tombstones()
            return ConsumerGroup(group_id)
        if self.migration is None:
            raise _no_such_group(group_id, exists=True)
        return self.migration.upgrade(group, records)

    def _new_member_id(self) -> str:
        return urlsafe_b64encode(self._randomness.uuid4().bytes).rstrip(b"=").decode()

    def _check_regex(
        self, group: ConsumerGroup, member: ConsumerGroupMember, updated: ConsumerGroupMember
    ) -> bool:
        """Whether the member brings a pattern that nobody in the group has brought before."""
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
        """Take over what the member says; begin a new group epoch if that matters to others.

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
        """Move the member one step on; its answer, to be given when the changes are written."""
        member = group.members.get(member_id)
        if member is None or member.member_epoch == STATIC_LEAVE_EPOCH:
            # It has left while it was waiting; a step would bring it back.
            return _refusal(ApiError(ErrorCode.UNKNOWN_MEMBER_ID))
        try:
            member = self.reconcile(
                group,
                changes,
                member,
                has_subscription_changed=has_subscription_changed,
                owned=owned,
            )
        except ApiError as error:
            return _refusal(error)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._group_settings(group.group_id).heartbeat_interval_ms,
        )
        if is_full or member.assigned != before:
            response.assignment = _assignment_message(member.assigned)
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
        """Move a member one step towards its target, and time how long it takes to give back.

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
            self._time_revocation(group, moved)
        return moved

    # -- waiting for a target --

    def _park(
        self,
        group: ConsumerGroup,
        member_id: str,
        finish: Callable[[ConsumerGroup, Changes], ConsumerGroupHeartbeatResponse],
        reply: HeartbeatReply,
    ) -> None:
        group.work.parked.append(Parked(member_id, group.group_epoch, finish, reply))

    def _target_ready(self, group: ConsumerGroup, changes: Changes) -> None:
        self.journal.write(group, changes.records, _nobody)
        self._wake(group)

    def _wake(self, group: ConsumerGroup) -> None:
        """Answer those who waited for the target that is there now, some at a time."""
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
            # Since the last turn: it is another kind of group now, or another broker's.
            for parked in ready:
                parked.reply(_refusal(ApiError(ErrorCode.NOT_COORDINATOR)))
            return
        now, later = ready[:PER_TURN], ready[PER_TURN:]
        if later:
            # Before anything can go wrong here: the others must not wait for ever.
            self._timer.call_later_ms(0, lambda: self._answer_parked(group, later))
        changes = Changes(group)
        answers = [(parked.reply, parked.finish(group, changes)) for parked in now]
        for parked in now:
            if parked.member_id in group.timers:
                self._touch(group, parked.member_id)

        def written(code: ErrorCode) -> None:
            for reply, response in answers:
                _answer(reply, response, code)

        self.journal.write(group, changes.records, written)

    def _resolved(self, group: ConsumerGroup, changes: Changes) -> None:
        self.journal.write(group, changes.records, _nobody)
        if group.work.parked and group.group_epoch <= group.assignment_epoch:
            self._wake(group)

    # -- leave --

    def _leave(self, request: ConsumerGroupHeartbeatRequest, reply: HeartbeatReply) -> None:
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise _no_such_group(request.group_id, exists=group is not None)
        member = _known_member(group, request.member_id, request.instance_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        is_away = request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH
        logger.debug(
            "member leaves group=%s member=%s returns=%s",
            log_value(group.group_id),
            log_value(member.member_id),
            is_away,
        )
        answer = partial(_answer, reply, response)
        if is_away:
            changes = Changes(group)
            changes.put_current(
                member._replace(member_epoch=STATIC_LEAVE_EPOCH, pending_revocation={})
            )
            group.timers[member.member_id].cancel_rebalance()
            self.journal.write(group, changes.records, answer)
        else:
            self.fence(group, [member], answer)

    def fence(
        self,
        group: ConsumerGroup,
        members: list[ConsumerGroupMember],
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Remove members; the group becomes a classic one if only classic members are left."""
        if self.migration is not None and self.migration.downgrade(group, members):
            # What they leave behind is written with the group's new form.
            self.journal.write(group, [], done)
            return
        changes = Changes(group)
        for member in members:
            changes.remove_member(member.member_id)
        for regex in {member.subscribed_topic_regex for member in members}:
            if regex and regex not in group.regex_counts:
                changes.remove_resolved(regex)
        changes.set_epoch(group.group_epoch + 1, self._hash_refresh.of(group))
        self.journal.write(group, changes.records, done)
        gone = {member.member_id for member in members}
        if any(parked.member_id in gone for parked in group.work.parked):
            self._wake(group)

    # -- time --

    def _touch(self, group: ConsumerGroup, member_id: str) -> None:
        timeout_ms = self._group_settings(group.group_id).session_timeout_ms
        group.timers[member_id].session.set(timeout_ms)

    def _expire_session(self, group: ConsumerGroup, member_id: str) -> None:
        self.expire(group, member_id, "its session is over")

    def _time_revocation(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        timers = group.timers[member.member_id]
        timers.cancel_rebalance()
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            return

        def fire() -> None:
            timers.rebalance = None
            present = group.members.get(member.member_id)
            if present is not None and present.member_epoch == member.member_epoch:
                self.expire(group, member.member_id, "it does not give back partitions")

        timers.rebalance = self._timer.call_later_ms(member.rebalance_timeout_ms, fire)

    def expire(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        """Fence a member that does not do in time what it has to."""
        member = group.members.get(member_id)
        if member is None or group.is_dead:
            return
        logger.info(
            "member fenced, removed from the group group=%s member=%s reason=%s",
            log_value(group.group_id),
            log_value(member_id),
            reason,
        )
        self._stats.expired_members += 1
        self.fence(group, [member], _nobody)

    def start_timers(self, group: ConsumerGroup) -> None:
        """Begin to time the members of a group that was read from the log."""
        for member in group.members.values():
            self.start_timer(group, member)

    def start_timer(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """Begin to time a member that did not join here."""
        member_id = member.member_id
        group.timers[member_id] = MemberTimers(
            Deadline(self._timer, self._clock, partial(self._expire_session, group, member_id))
        )
        if member.classic is None:
            self._touch(group, member_id)
        else:
            group.timers[member_id].session.set(member.classic.session_timeout_ms)
        self._time_revocation(group, member)

    # -- what happens around it --

    def topics_changed(self, changed: frozenset[str], *, has_new: bool) -> None:
        """Topics were created, extended or deleted: groups that read them look at it."""
        if has_new:
            self._regexes.topics_created()
        for group in self._shard.groups_of(ConsumerGroup):
            # The views look the few names up that have changed, rather than all they have.
            if not (
                group.name_counts.keys().isdisjoint(changed)
                and group.regex_topic_counts.keys().isdisjoint(changed)
            ):
                group.is_metadata_stale = True

    def close(self) -> None:
        """This broker is no longer the coordinator: answer everybody, stop every timer."""
        self._is_closed = True
        for group in self._shard.groups_of(ConsumerGroup):
            parked, group.work.parked = group.work.parked, []
            group.die(self._clock.now_ms())
            for one in parked:
                one.reply(_refusal(ApiError(ErrorCode.NOT_COORDINATOR)))


def _find_member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str
) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
    """The member as the group knows it, or a new one; and the static one whose place it takes."""
    instance_id = request.instance_id
    if request.member_epoch != JOIN_EPOCH:
        member = _known_member(group, member_id, instance_id)
        _check_epoch(member, request)
        return member, None
    if instance_id is None:
        known = group.members.get(member_id)
        if known is None:
            return ConsumerGroupMember(member_id), None
        _check_epoch(known, request)
        return known, None
    existing = group.members.get(group.static_members.get(instance_id, ""))
    if existing is None:
        return group.members.get(member_id) or ConsumerGroupMember(member_id), None
    if (
        existing.member_id == member_id
        and existing.classic is None
        and existing.member_epoch != STATIC_LEAVE_EPOCH
        and JOIN_EPOCH in (existing.member_epoch, existing.previous_member_epoch)
    ):
        # It has missed the answer. Kafka refuses it, which a client takes for the end; there the
        # answer is given at once, here it waits for the target, and a broker may die meanwhile.
        return existing, None
    if existing.classic is None and existing.member_epoch != STATIC_LEAVE_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.member_id} member.",
        )
    # It gets what its predecessor had, from the first epoch on.
    heir = existing._replace(
        member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    return heir, existing


def _known_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {group.group_id}.",
            )
        return member
    member = group.members.get(group.static_members.get(instance_id, ""))
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _check_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """Refuse a member in an epoch that it cannot be in.

    The epoch before is taken from a member that has no more than it shall have: the answer with
    the new epoch may have got lost. Who joins under the id of a member is that member, which has
    lost its state.
    """
    epoch = request.member_epoch
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if epoch < member.member_epoch:
        if epoch == member.previous_member_epoch and (
            owns_only(request.topic_partitions, member.assigned)
        ):
            return
        kind = "smaller"
    else:
        kind = "greater"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {kind} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.member_epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerGroupMember:
    """The member with what the request says of it; what it leaves out stays as it is."""
    names = request.subscribed_topic_names
    new_names = member.subscribed_topic_names if names is None else frozenset(names)
    if new_names == member.subscribed_topic_names:
        new_names = member.subscribed_topic_names
    regex = request.subscribed_topic_regex
    rebalance_timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms
        ),
        server_assignor=request.server_assignor or member.server_assignor,
        subscribed_topic_names=new_names,
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.client_host,
        classic=None,
    )


def _assignment_message(assigned: Assignment) -> AssignmentMessage:
    return AssignmentMessage(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=topic_id, partitions=list(partitions)
            )
            for topic_id, partitions in assigned.items()
        ]
    )


def _refusal(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _no_such_group(group_id: str, *, exists: bool) -> ApiError:
    message = (
        f"Group {group_id} is not a consumer group."
        if exists
        else f"Consumer group {group_id} not found."
    )
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _answer(
    reply: HeartbeatReply, response: ConsumerGroupHeartbeatResponse, code: ErrorCode
) -> None:
    reply(response if code is ErrorCode.NONE else _refusal(ApiError(code)))


def _nobody(code: ErrorCode) -> None:
    """Nobody waits to hear that this was written."""
