"""The protocol of share groups: ShareGroupHeartbeat joins, rebalances and leaves.

One heartbeat:

    member            create or find it, check its epoch                  FENCED_MEMBER_EPOCH, ...
    changes           of subscriptions, topics, partitions whose share    a new group epoch
                      state was initialized
    target            compute it when the group epoch is ahead of it      `targets`
    assignment        the member gets its target, all at once
    answer            when all this is in the log                         `journal`
    then              initialize share state of new partitions            `initializer`

So a member gets the partitions of a new topic with its second heartbeat; clients send that as soon
as they have applied the first response.

Source: Kafka, GroupMetadataManager.java (shareGroupHeartbeat, shareGroupLeave,
shareGroupFenceMember); KIP-932.
"""

import logging
from collections.abc import Callable, Collection
from functools import partial
from uuid import UUID

from broker.controller.configs.group_settings import ShareGroupSettings
from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.persister import UNINITIALIZED_OFFSET, SharePersister
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.group_hashes import GroupHashes
from broker.groups.modern.journal import Journal
from broker.groups.modern.member import JOIN_EPOCH, LEAVE_EPOCH, Client
from broker.groups.modern.offload import Offload, ThreadOffload
from broker.groups.share.administration import ShareGroupAdministration
from broker.groups.share.changes import ShareChanges
from broker.groups.share.initializer import Initializer
from broker.groups.share.kept_state import Topics
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.share_group import ShareGroup
from broker.groups.share.simple_assignor import ASSIGNORS
from broker.groups.share.targets import ShareTargets
from broker.groups.state.group_shard import GroupShard, TooManyGroupsError
from broker.runtime.deadline import Deadline
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages.share_group_heartbeat import Assignment as AssignmentMessage
from protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from storage.environment.environment import Environment

logger = logging.getLogger(__name__)

HeartbeatReply = Callable[[ShareGroupHeartbeatResponse], None]


class ShareProtocol:
    """The share group protocol of one shard.

    Attributes:
        administration: Administrative requests.
    """

    def __init__(
        self,
        shard: GroupShard,
        *,
        settings: BrokerConfig,
        environment: Environment,
        image: Callable[[], ClusterImage],
        group_settings: Callable[[str], ShareGroupSettings],
        persister: Callable[[], SharePersister | None],
        state_altered: Callable[[str], None],
        offload: Offload | None = None,
    ) -> None:
        """`offload` runs long computations, by default in threads of the running loop.

        `state_altered` is called with a group whose share state was reset or deleted.
        """
        self._shard = shard
        self._clock = environment.clock
        self._timer = timer = environment.timer
        self._image = image
        self._group_settings = group_settings
        self._max_size = settings.group_share_max_size
        self._retry_ms = max(
            settings.group_share_initialize_retry_interval_ms, settings.offsets_commit_timeout_ms
        )
        self._stats = shard.stats
        self._hashes = GroupHashes()
        self._journal = Journal(shard.log)
        self._targets = ShareTargets(
            ASSIGNORS[settings.group_share_assignors[0]],
            image=image,
            offload=offload or ThreadOffload(),
            journal=self._journal,
            timer=timer,
        )
        self._initializer = Initializer(self._journal, persister, timer)
        self.administration = ShareGroupAdministration(
            shard, self._journal, self._initializer, persister, state_altered, environment, image
        )

    # -- heartbeat --

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: Client, reply: HeartbeatReply
    ) -> None:
        """Answer a request that has passed `validation`."""
        try:
            if request.member_epoch == LEAVE_EPOCH:
                self._leave(request, reply)
            else:
                self._heartbeat(request, client, reply)
        except ApiError as error:
            reply(_refusal(error))

    def _heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: Client, reply: HeartbeatReply
    ) -> None:
        is_joining = request.member_epoch == JOIN_EPOCH
        if is_joining:
            self._check_log()
        group = self._group_for(request.group_id, is_joining=is_joining)
        member_id = request.member_id
        if len(group.members) >= self._max_size and member_id not in group.members:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {self._max_size} members.",
            )
        member = group.members.get(member_id)
        if member is None:
            if not is_joining:
                raise _unknown_member(group, member_id)
            member = ShareGroupMember(member_id)
        _check_epoch(member, request.member_epoch)
        updated = _updated(member, request, client)
        if not self._shard.log.takes_records and self._would_change(group, member, updated):
            if member_id in group.sessions:
                # It lives.
                timeout_ms = self._group_settings(group.group_id).session_timeout_ms
                group.sessions[member_id].set(timeout_ms)
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._shard.groups.get(group.group_id) is not group:
            try:
                self._shard.add_group(group)
            except TooManyGroupsError:
                raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED) from None
        # From here on nothing is refused: changes are written.
        changes = ShareChanges(group)
        has_new_epoch = self._subscribe(group, changes, member, updated)
        if member_id not in group.sessions:
            self._start_session(group, member_id)
            logger.info(
                "member joins share group=%s member=%s",
                log_value(group.group_id),
                log_value(member_id),
            )
        settings = self._group_settings(group.group_id)
        group.sessions[member_id].set(settings.session_timeout_ms)
        is_there = group.group_epoch <= group.assignment_epoch or self._targets.update(
            group, changes
        )
        wants_place = is_joining or updated.subscribed_topic_names != member.subscribed_topic_names
        if is_there or not wants_place:
            self._give(group, changes, request, member, updated, reply, is_forced=has_new_epoch)
            return
        # Its changes are written now; it is answered when there is a target that includes it.
        self._journal.write(group, changes.records, lambda _: None)

        def ready(code: ErrorCode) -> None:
            found = group.members.get(member_id)
            if group.is_dead:
                # Since the target was computed: others were answered before.
                code = ErrorCode.NOT_COORDINATOR
            if code is not ErrorCode.NONE:
                reply(_refusal(ApiError(code)))
            elif found is None:
                reply(_refusal(_unknown_member(group, member_id)))
            else:
                self._give(
                    group, ShareChanges(group), request, member, found, reply, is_forced=True
                )

        self._targets.wait(group, ready)

    def _give(
        self,
        group: ShareGroup,
        changes: ShareChanges,
        request: ShareGroupHeartbeatRequest,
        before: ShareGroupMember,
        member: ShareGroupMember,
        reply: HeartbeatReply,
        *,
        is_forced: bool,
    ) -> None:
        """Assign the member its target, and answer when that is written."""
        reached = self._reconcile(group, changes, member, is_forced=is_forced)
        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=reached.member_epoch,
            heartbeat_interval_ms=self._group_settings(group.group_id).heartbeat_interval_ms,
        )
        if (
            request.member_epoch == JOIN_EPOCH
            or request.subscribed_topic_names is not None
            or reached.assigned != before.assigned
        ):
            response.assignment = _assignment_message(reached.assigned)
        missing = self._ask_for_state(group, changes)
        self._journal.write(
            group, changes.records, partial(self._written, group, missing, reply, response)
        )

    def _written(
        self,
        group: ShareGroup,
        missing: Topics,
        reply: HeartbeatReply,
        response: ShareGroupHeartbeatResponse,
        code: ErrorCode,
    ) -> None:
        reply(response if code is ErrorCode.NONE else _refusal(ApiError(code)))
        # State whose request was not written in time is requested after the retry interval.
        if missing and code is ErrorCode.NONE and not group.is_dead:
            offsets = {
                topic_id: dict.fromkeys(sorted(topic.partitions), UNINITIALIZED_OFFSET)
                for topic_id, topic in missing.items()
            }
            self._initializer.begin(group, offsets, lambda _: None)

    def _would_change(
        self, group: ShareGroup, member: ShareGroupMember, updated: ShareGroupMember
    ) -> bool:
        """Whether a heartbeat of a member may change its group."""
        image = self._image()
        return (
            updated != member
            or not group.has_reached_target(member)
            or group.lacks_partitions(image)
            or (group.is_metadata_stale and self._hashes.of(group, image) != group.metadata_hash)
        )

    def _check_log(self) -> None:
        """Refuse what would change a group while its log takes no record.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the client comes again.
        """
        if not self._shard.log.takes_records:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _group_for(self, group_id: str, *, is_joining: bool) -> ShareGroup:
        group = self._shard.groups.get(group_id)
        if isinstance(group, ShareGroup):
            if is_joining and group.work.is_altered:
                raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The group is being changed.")
            return group
        if group is not None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        if not is_joining:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return ShareGroup(group_id)

    def _subscribe(
        self,
        group: ShareGroup,
        changes: ShareChanges,
        member: ShareGroupMember,
        updated: ShareGroupMember,
    ) -> bool:
        """Update the member; begin a new group epoch if its subscription has changed."""
        if updated != member or member.member_id not in group.members:
            changes.put_member(updated)
        image = self._image()
        bumps = (
            updated.subscribed_topic_names != member.subscribed_topic_names
            or group.lacks_partitions(image)
        )
        if not bumps and not group.is_metadata_stale:
            return False
        metadata_hash = self._hashes.of(group, image)
        group.is_metadata_stale = False
        if not bumps and metadata_hash == group.metadata_hash:
            return False
        changes.set_epoch(group.group_epoch + 1, metadata_hash)
        self._stats.share_group_rebalances += 1
        return True

    def _reconcile(
        self,
        group: ShareGroup,
        changes: ShareChanges,
        member: ShareGroupMember,
        *,
        is_forced: bool,
    ) -> ShareGroupMember:
        epoch = group.assignment_epoch
        if not is_forced and member.member_epoch == epoch:
            return member
        topics_by_id = self._image().topics_by_id
        names = member.subscribed_topic_names

        def is_subscribed_to(topic_id: UUID) -> bool:
            topic = topics_by_id.get(topic_id)
            return topic is not None and topic.name in names

        moved = member.reconciled(epoch, group.target_of(member.member_id), is_subscribed_to)
        if moved != member:
            changes.put_current(moved)
        return moved

    def _ask_for_state(self, group: ShareGroup, changes: ShareChanges) -> Topics:
        """Record partitions without share state as initializing."""
        missing = group.kept.missing(
            group.subscribed_topics(),
            self._image(),
            now_ms=self._clock.monotonic_ms(),
            retry_ms=self._retry_ms,
        )
        if missing:
            changes.set_kept(group.kept.asked_for(missing))
        return missing

    # -- leave --

    def _leave(self, request: ShareGroupHeartbeatRequest, reply: HeartbeatReply) -> None:
        group = self._group_for(request.group_id, is_joining=False)
        if request.member_id not in group.members:
            raise _unknown_member(group, request.member_id)
        self._check_log()
        logger.info(
            "member leaves share group=%s member=%s",
            log_value(group.group_id),
            log_value(request.member_id),
        )
        response = ShareGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        self._remove(group, request.member_id, partial(self._written, group, {}, reply, response))

    def _remove(self, group: ShareGroup, member_id: str, done: Callable[[ErrorCode], None]) -> None:
        changes = ShareChanges(group)
        changes.remove_member(member_id)
        changes.set_epoch(group.group_epoch + 1, self._hashes.of(group, self._image()))
        self._journal.write(group, changes.records, done)

    # -- time --

    def _start_session(self, group: ShareGroup, member_id: str) -> None:
        group.sessions[member_id] = Deadline(
            self._timer, self._clock, partial(self._expire, group, member_id)
        )

    def _expire(self, group: ShareGroup, member_id: str) -> None:
        if group.is_dead or member_id not in group.members:
            return
        if not self._shard.log.takes_records:
            # Nobody can be fenced, and its heartbeats may be refused.
            timeout_ms = self._group_settings(group.group_id).session_timeout_ms
            group.sessions[member_id].set(timeout_ms)
            return
        logger.info(
            "member is fenced share group=%s member=%s reason=its session is over",
            log_value(group.group_id),
            log_value(member_id),
        )
        self._stats.expired_members += 1
        self._remove(group, member_id, lambda _: None)

    def start_timers(self, group: ShareGroup) -> None:
        """Start the sessions of the members of a loaded group."""
        timeout_ms = self._group_settings(group.group_id).session_timeout_ms
        for member_id in group.members:
            self._start_session(group, member_id)
            group.sessions[member_id].set(timeout_ms)

    # -- events --

    def topics_changed(self, changed: frozenset[str], deleted: Collection[UUID]) -> None:
        """Mark the metadata of groups that read created, extended or deleted topics as stale.

        The share coordinator deletes the state of deleted topics by itself.
        """
        for group in self._shard.groups_of(ShareGroup):
            if not changed.isdisjoint(group.name_counts):
                group.is_metadata_stale = True
            if deleted:
                self.forget_topics(group, deleted)

    def forget_topics(self, group: ShareGroup, topic_ids: Collection[UUID]) -> None:
        """Drop topics that were deleted."""
        kept = group.kept.without(topic_ids)
        if kept != group.kept:
            changes = ShareChanges(group)
            changes.set_kept(kept)
            self._journal.write(group, changes.records, lambda _: None)

    def close(self) -> None:
        """Stop all timers: this broker resigned as coordinator."""
        for group in self._shard.groups_of(ShareGroup):
            group.die(self._clock.now_ms())


def _check_epoch(member: ShareGroupMember, epoch: int) -> None:
    """Refuse a member with an invalid epoch.

    The previous epoch is accepted: the response with the new one may have got lost. A join under
    the id of a member is that member, which has lost its state.
    """
    known = member.member_epoch
    if epoch in (JOIN_EPOCH, known):
        return
    if epoch > known:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by "
            f"the group coordinator ({known}). The member must abandon all its partitions and "
            "rejoin.",
        )
    if epoch < known and epoch != member.previous_member_epoch:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by "
            f"the group coordinator ({known}), and it does not match the previous member epoch "
            f"({member.previous_member_epoch}). The member must abandon all its partitions and "
            "rejoin.",
        )


def _updated(
    member: ShareGroupMember, request: ShareGroupHeartbeatRequest, client: Client
) -> ShareGroupMember:
    """The member with the request's fields; those left out stay as they are."""
    names = request.subscribed_topic_names
    new_names = member.subscribed_topic_names if names is None else frozenset(names)
    if new_names == member.subscribed_topic_names:
        new_names = member.subscribed_topic_names
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.client_host,
        subscribed_topic_names=new_names,
    )


def _assignment_message(assigned: Assignment) -> AssignmentMessage:
    return AssignmentMessage(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )


def _refusal(error: ApiError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _unknown_member(group: ShareGroup, member_id: str) -> ApiError:
    return ApiError(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )
