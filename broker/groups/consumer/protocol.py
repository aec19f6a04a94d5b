"""The protocol of consumer groups: ConsumerGroupHeartbeat joins, rebalances and leaves.

One heartbeat:

    identification    create or find the member, check its epoch      FENCED_MEMBER_EPOCH, ...
    rebalance         new group epoch, target, one step, response     `rebalance`
    session           restarted                                       `sessions`

A heartbeat that changes nothing costs a few microseconds and writes nothing.

Source: Kafka, GroupMetadataManager.java (consumerGroupHeartbeat, consumerGroupLeave,
consumerGroupFenceMembers); KIP-848.
"""

import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from broker.controller.configs.group_settings import ConsumerGroupSettings
from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.outcome import KeyValue
from broker.groups.consumer.backlog import Backlog
from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.identification import find_member, known_member, updated_member
from broker.groups.consumer.member import STATIC_LEAVE_EPOCH, ConsumerGroupMember, MemberState
from broker.groups.consumer.rebalance import ConsumerRebalance
from broker.groups.consumer.responses import (
    Heartbeat,
    HeartbeatReply,
    answer_when_written,
    no_such_group,
    refusal,
)
from broker.groups.consumer.sessions import MemberSessions
from broker.groups.modern.member import JOIN_EPOCH, LEAVE_EPOCH, Client
from broker.groups.modern.offload import Offload
from broker.groups.state.group import Group, GroupType
from broker.groups.state.group_shard import GroupShard, TooManyGroupsError
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from storage.environment.environment import Environment

logger = logging.getLogger(__name__)


class Migration(Protocol):
    """Online conversion of groups from one protocol to the other."""

    def upgrade(self, group: Group, changes: list[KeyValue]) -> ConsumerGroup:
        """Replace a classic group with members by a consumer group.

        Raises:
            ApiError: It is not allowed; GROUP_ID_NOT_FOUND, with the reason.
        """
        ...

    def downgrade(self, group: ConsumerGroup, leaving: Iterable[ConsumerGroupMember]) -> bool:
        """Make a classic group of the members that stay, if all of them are classic.

        It writes the records. False: the group stays a consumer group.
        """
        ...


class ConsumerProtocol:
    """Serves the members of one shard's consumer groups.

    Attributes:
        rebalance: Moves members towards their targets.
        sessions: Timers of the members.
        journal: Writes changes of groups.
        hashes: Metadata hashes of groups.
        migration: Converts groups; None: groups are not converted.
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
        """A protocol without requests under way.

        Args:
            shard: Whose groups.
            settings: Of the broker.
            environment: Clock and timers; randomness for member ids.
            offload: Runs long computations.
            image: Returns the current cluster image.
            group_settings: Of one group.
            backlog: Queues heartbeats that change groups; None: they are served at once.
        """
        self._shard = shard
        self._clock = environment.clock
        self._randomness = environment.randomness
        self._group_settings = group_settings
        self._max_size = settings.group_consumer_max_size
        self._stats = shard.stats
        self._backlog = backlog
        self._is_closed = False
        self.sessions = MemberSessions(environment, group_settings, self.expire)
        self.rebalance = ConsumerRebalance(
            shard,
            self.sessions,
            settings=settings,
            environment=environment,
            offload=offload,
            image=image,
            group_settings=group_settings,
        )
        self.journal = self.rebalance.journal
        self.hashes = self.rebalance.hashes
        self.migration: Migration | None = None

    # -- heartbeat --

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, reply: HeartbeatReply
    ) -> None:
        """Answer a request that has passed `validation`."""
        if self._is_quiet(request, client, reply):
            return
        if (
            request.member_epoch != JOIN_EPOCH
            and request.group_id not in self._shard.groups
            and not self._backlog
        ):
            # It changes nothing either, and must not take the place of one that does. If some
            # wait it may be a member that leaves behind its own joining.
            reply(refusal(no_such_group(request.group_id, exists=False)))
            return
        heartbeat = Heartbeat(request, client, reply)
        if self._backlog is None:
            self._serve(heartbeat)
        elif not self._backlog.offer(self, heartbeat):
            reply(refusal(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)))

    def serve(self, requests: Sequence[Heartbeat]) -> None:
        """Answer requests that may change groups; their changes are written together."""
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
            logger.exception(
                "heartbeat failed group=%s member=%s",
                log_value(heartbeat.request.group_id),
                log_value(heartbeat.request.member_id),
            )
            heartbeat.reply(refusal(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)))

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
            reply(refusal(error))

    def _is_quiet(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, reply: HeartbeatReply
    ) -> bool:
        """Answer a heartbeat without changes, of a member that has reached its target."""
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
            or self.rebalance.are_patterns_due(group)
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
        if is_joining:
            self.check_log()
        records: list[KeyValue] = []
        group = self._group_for(request.group_id, records, is_joining=is_joining)
        if len(group.members) >= self._max_size and request.member_id not in group.members:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {self._max_size} members.",
            )
        member_id = request.member_id or self._new_member_id()
        member, replaced = find_member(group, request, member_id)
        updated = updated_member(member, request, client)
        if not self._shard.log.takes_records and self._would_change(group, member, updated):
            if member_id in group.timers:
                # It lives.
                self.sessions.touch(group, member_id)
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        is_new_regex = self.rebalance.is_new_pattern(group, member, updated)
        if self._shard.groups.get(group.group_id) is not group:
            try:
                self._shard.add_group(group)
            except TooManyGroupsError:
                raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED) from None
        # From here on nothing is refused: changes are written.
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
        self.rebalance.advance(
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

    def _would_change(
        self, group: ConsumerGroup, member: ConsumerGroupMember, updated: ConsumerGroupMember
    ) -> bool:
        """Whether a heartbeat of a member may change its group."""
        return (
            updated != member
            or not group.has_reached_target(member)
            or member.state is not MemberState.STABLE
            or (group.is_metadata_stale and self.rebalance.hash_of(group) != group.metadata_hash)
        )

    def check_log(self) -> None:
        """Refuse what would change a group while its log takes no record.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the client comes again.
        """
        if not self._shard.log.takes_records:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _group_for(
        self, group_id: str, records: list[KeyValue], *, is_joining: bool
    ) -> ConsumerGroup:
        group = self._shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not is_joining or group is None:
            if group is None and is_joining:
                return ConsumerGroup(group_id)
            raise no_such_group(group_id, exists=group is not None)
        if group.type is not GroupType.CLASSIC:
            raise no_such_group(group_id, exists=True)
        if group.is_empty:
            records += group.tombstones()
            return ConsumerGroup(group_id)
        if self.migration is None:
            raise no_such_group(group_id, exists=True)
        return self.migration.upgrade(group, records)

    def _new_member_id(self) -> str:
        return urlsafe_b64encode(self._randomness.uuid4().bytes).rstrip(b"=").decode()

    # -- leave --

    def _leave(self, request: ConsumerGroupHeartbeatRequest, reply: HeartbeatReply) -> None:
        group = self._shard.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise no_such_group(request.group_id, exists=group is not None)
        member = known_member(group, request.member_id, request.instance_id)
        self.check_log()
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
        answer = partial(answer_when_written, reply, response)
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
            # Their removal is written with the classic group.
            self.journal.write(group, [], done)
            return
        changes = Changes(group)
        for member in members:
            changes.remove_member(member.member_id)
        for regex in {member.subscribed_topic_regex for member in members}:
            if regex and regex not in group.regex_counts:
                changes.remove_resolved(regex)
        changes.set_epoch(group.group_epoch + 1, self.rebalance.hash_of(group))
        self.journal.write(group, changes.records, done)
        gone = {member.member_id for member in members}
        if any(parked.member_id in gone for parked in group.work.parked):
            self.rebalance.wake(group)

    # -- time --

    def expire(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        """Fence a member whose timer has expired, or give it its time again.

        While the log takes no record nobody can be fenced, and its heartbeats may be refused.
        """
        member = group.members.get(member_id)
        if member is None or group.is_dead:
            return
        if not self._shard.log.takes_records:
            self.sessions.give_again(group, member, reason)
            return
        logger.info(
            "member fenced, removed from the group group=%s member=%s reason=%s",
            log_value(group.group_id),
            log_value(member_id),
            reason,
        )
        self._stats.expired_members += 1
        self.fence(group, [member], _ignore)

    def start_timers(self, group: ConsumerGroup) -> None:
        """Start the timers of the members of a group that was read from the log, or migrates."""
        for member in group.members.values():
            self.sessions.start(group, member)

    # -- events --

    def topics_changed(self, changed: frozenset[str], *, has_new: bool) -> None:
        """Mark the metadata of groups that read created, extended or deleted topics as stale."""
        if has_new:
            self.rebalance.topics_created()
        for group in self._shard.groups_of(ConsumerGroup):
            # The few changed names are looked up in the groups, rather than all of theirs.
            if not (
                group.name_counts.keys().isdisjoint(changed)
                and group.regex_topic_counts.keys().isdisjoint(changed)
            ):
                group.is_metadata_stale = True

    def close(self) -> None:
        """Answer all parked requests and stop all timers: this broker resigned as coordinator."""
        self._is_closed = True
        for group in self._shard.groups_of(ConsumerGroup):
            parked, group.work.parked = group.work.parked, []
            group.die(self._clock.now_ms())
            for one in parked:
                one.reply(refusal(ApiError(ErrorCode.NOT_COORDINATOR)))


def _ignore(code: ErrorCode) -> None:
    """No request waits for this write."""
