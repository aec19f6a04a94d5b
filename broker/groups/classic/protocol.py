"""The classic rebalance: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

One generation, seen from a member:

    JoinGroup ──(parked: PreparingRebalance)──> member list to the leader, generation to all
    SyncGroup ──(parked: CompletingRebalance)─> the leader's assignment is written to the log,
                                                then each member gets its part (Stable)
    Heartbeat ... until it gets REBALANCE_IN_PROGRESS, and the member joins again

This module handles the requests; the phases of a rebalance are in
`broker.groups.classic.rebalance`.

Source: Kafka, GroupMetadataManager.java (classicGroup...), GroupCoordinator.scala before it;
KIP-134 (initial delay), 345 (static members), 394 (member id required), 559 (protocol type and
name), 800 (reasons), 814 (static leader skips the assignment).
"""

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from broker.groups.classic.classic_group import (
    ClassicGroup,
    ClassicMember,
    SyncReply,
    create_classic_group,
)
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.classic.join_attempt import JoinAttempt
from broker.groups.classic.rebalance import Rebalance
from broker.groups.classic.records import group_record
from broker.groups.classic.responses import (
    answer_and_remove,
    answer_join,
    answer_sync,
    joined,
    synced,
    take_syncs,
)
from broker.groups.state.group import Group, GroupType
from broker.groups.state.group_shard import GroupShard, TooManyGroupsError
from broker.runtime.batches import in_batches
from broker.runtime.deadline import Deadline
from broker.runtime.log_value import log_value
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import MemberIdentity, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from storage.environment.environment import Environment

logger = logging.getLogger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000
"""How long a new member may be parked in JoinGroup before it is removed."""

PENDING_MEMBERS_MAX = 10_000
"""Most pending members of a group: they have an id and have not joined with it yet."""

CLIENT_ID_IN_MEMBER_ID_MAX = 1_000
"""Characters of the client id that become part of a member id."""

_EMPTY = ClassicGroupState.EMPTY
_PREPARING = ClassicGroupState.PREPARING_REBALANCE
_COMPLETING = ClassicGroupState.COMPLETING_REBALANCE
_STABLE = ClassicGroupState.STABLE
_DEAD = ClassicGroupState.DEAD


Left = Callable[[ErrorCode, list[MemberResponse]], None]
"""Called once with the error of LeaveGroup, and without one with an answer for each member."""


class ModernMembers(Protocol):
    """Serves classic members of consumer groups; see `broker.groups.migration.members`.

    Every `group` is a consumer group.
    """

    def join(self, group: Group, request: JoinGroupRequest, attempt: JoinAttempt) -> None:
        """Answer JoinGroup."""
        ...

    def sync(self, group: Group, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Answer SyncGroup."""
        ...

    def heartbeat(
        self, group: Group, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Keep a member's session alive."""
        ...

    def leave(self, group: Group, identities: Iterable[MemberIdentity], done: Left) -> None:
        """Remove members."""
        ...


class ClassicProtocol:
    """Runs the rebalances of one shard's groups.

    Attributes:
        modern: Serves requests to consumer groups with members; None: there are no such groups.
    """

    def __init__(
        self,
        shard: GroupShard,
        *,
        settings: BrokerConfig,
        environment: Environment,
    ) -> None:
        self._shard = shard
        self._clock = environment.clock
        self._timer = environment.timer
        self._randomness = environment.randomness
        self._rebalance = Rebalance(
            shard,
            initial_delay_ms=settings.group_initial_rebalance_delay_ms,
            clock=environment.clock,
            timer=environment.timer,
        )
        self._group_max_size = settings.group_max_size
        self._stats = shard.stats
        self.modern: ModernMembers | None = None

    def _modern_of(self, group: Group | None) -> ModernMembers | None:
        """The handler of the group's classic members if it is a consumer group."""
        is_consumer = group is not None and group.type is GroupType.CONSUMER
        return self.modern if is_consumer else None

    # -- join --

    def join(self, request: JoinGroupRequest, attempt: JoinAttempt) -> None:
        """Answer JoinGroup now, or when the join phase is over."""
        member_id = request.member_id
        found = self._shard.groups.get(request.group_id)
        if isinstance(found, ClassicGroup):
            group: ClassicGroup | None = found
        elif found is None:
            group = None
        elif found.type is not GroupType.CONSUMER:
            attempt.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        elif not found.is_empty and self.modern is not None:
            self.modern.join(found, request, attempt)
            return
        elif found.is_empty and not self._shard.log.takes_records:
            # Its tombstones would be missing: the next coordinator would find two groups.
            attempt.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
            return
        else:
            group = self._without_members(found, attempt, member_id)
        if group is None:
            if member_id:
                attempt.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
                return
            if not attempt.protocol_type or not attempt.protocols:
                attempt.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
                return
            try:
                group = create_classic_group(self._shard, request.group_id)
            except TooManyGroupsError:
                attempt.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
                return
        if not self._accepts(group, member_id):
            group.remove(member_id)
            attempt.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
            self._rebalance.maybe_complete_join(group)
        elif not group.supports_protocols(attempt.protocol_type, attempt.protocols):
            attempt.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        elif member_id:
            self._join_existing(group, member_id, attempt)
        else:
            self._join_new(group, attempt)

    def _without_members(
        self, group: Group, attempt: JoinAttempt, member_id: str
    ) -> ClassicGroup | None:
        """The classic group that replaces an empty group of the other protocol."""
        if not group.is_empty or member_id or not attempt.protocol_type or not attempt.protocols:
            return None
        made = ClassicGroup(
            group.group_id, state=_EMPTY, current_state_timestamp_ms=self._clock.now_ms()
        )
        records = [*group.tombstones(), group_record(made)]
        self._shard.add_group(made)
        # Joining members are answered after it: the first generation is written behind it.
        log = self._shard.log
        log.append(records, lambda _: None, lambda _: None, refused=log.fail)
        return made

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether the group has room for the member, or contains it."""
        if group.state is _EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is _PREPARING:
            # Parked members are counted, not those of the last generation: if the limit was
            # lowered meanwhile, the last ones to rejoin have to go.
            waiting = member is not None and member.join_reply is not None
            return waiting or group.awaiting_join < self._group_max_size
        return member is not None or len(group.members) < self._group_max_size

    def _join_new(self, group: ClassicGroup, attempt: JoinAttempt) -> None:
        instance_id = attempt.group_instance_id
        prefix = instance_id or attempt.client_id[:CLIENT_ID_IN_MEMBER_ID_MAX]
        new_member_id = f"{prefix}-{self._randomness.uuid4()}"
        if instance_id is not None:
            existing = group.static_members.get(instance_id)
            if existing is None:
                self._add_member(group, new_member_id, attempt)
            else:
                self._replace_static_member(group, group.members[existing], new_member_id, attempt)
        elif attempt.api_version >= 4:
            if len(group.pending_members) >= PENDING_MEMBERS_MAX:
                attempt.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
                return
            # The client joins again with the id. If the response gets lost, an unused id has to
            # time out, instead of a member that the rebalance waits for (KIP-394).
            pending = Deadline(
                self._timer,
                self._clock,
                lambda: self._rebalance.expire_pending(group, new_member_id),
            )
            pending.set(attempt.session_timeout_ms)
            group.pending_members[new_member_id] = pending
            attempt.refuse(ErrorCode.MEMBER_ID_REQUIRED, new_member_id)
        else:
            self._add_member(group, new_member_id, attempt)

    def _join_existing(self, group: ClassicGroup, member_id: str, attempt: JoinAttempt) -> None:
        if member_id in group.pending_members:
            if attempt.group_instance_id is not None:
                # Ids of pending members are given to dynamic members only.
                attempt.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
                return
            self._add_member(group, member_id, attempt)
            return
        code = group.validate_member(member_id, attempt.group_instance_id)
        if code is not ErrorCode.NONE:
            attempt.refuse(code, member_id)
            return
        member = group.members[member_id]
        changed = member.protocols != attempt.protocols
        leads = group.leader_id == member_id
        if (
            group.state is _PREPARING
            or changed
            # A leader that joins again wants another assignment: it saw topics change.
            or (group.state is _STABLE and leads)
        ):
            self._update_member(group, member, attempt)
            self._rebalance.prepare_or_complete_join(group, f"{member_id} joins: {attempt.reason}")
        else:
            # It did not get the response of this generation: send it again.
            attempt.reply(joined(group, member, members=leads and group.state is _COMPLETING))

    def _add_member(self, group: ClassicGroup, member_id: str, attempt: JoinAttempt) -> None:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=attempt.group_instance_id,
            client_id=attempt.client_id,
            client_host=attempt.client_host,
            rebalance_timeout_ms=attempt.rebalance_timeout_ms,
            session_timeout_ms=attempt.session_timeout_ms,
            protocols=attempt.protocols,
            session=self._rebalance.session(group, member_id),
        )
        member.is_new = True
        if group.state is _PREPARING and group.previous_state is _EMPTY:
            group.new_member_added = True
        pending = group.pending_members.get(member_id)
        if pending is not None:
            pending.cancel()
        group.add(member, attempt.reply, attempt.protocol_type)
        member.session.set(NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete_join(group, f"new member {member_id}: {attempt.reason}")

    def _update_member(
        self, group: ClassicGroup, member: ClassicMember, attempt: JoinAttempt
    ) -> None:
        group.update(
            member,
            protocols=attempt.protocols,
            rebalance_timeout_ms=attempt.rebalance_timeout_ms,
            session_timeout_ms=attempt.session_timeout_ms,
        )
        if member.join_reply is not None:
            # The same member on another connection: the first response is not read any more.
            member.join_reply(
                JoinGroupResponse(
                    error_code=ErrorCode.REBALANCE_IN_PROGRESS,
                    member_id=member.member_id,
                    protocol_name=None,
                )
            )
        group.set_join_reply(member, attempt.reply)

    def _replace_static_member(
        self, group: ClassicGroup, old: ClassicMember, new_member_id: str, attempt: JoinAttempt
    ) -> None:
        """Replace a static member that joins without its member id: KIP-345."""
        old_leader_id = group.leader_id
        answer_join(group, old, ErrorCode.FENCED_INSTANCE_ID)
        answer_sync(old, ErrorCode.FENCED_INSTANCE_ID)
        member = ClassicMember(
            member_id=new_member_id,
            group_instance_id=old.group_instance_id,
            client_id=attempt.client_id,
            client_host=attempt.client_host,
            rebalance_timeout_ms=attempt.rebalance_timeout_ms,
            session_timeout_ms=attempt.session_timeout_ms,
            protocols=attempt.protocols,
            session=self._rebalance.session(group, new_member_id),
            assignment=old.assignment,
        )
        member.join_reply = attempt.reply
        group.replace_static(old, member)
        member.session.set(member.session_timeout_ms)
        reason = f"static member {new_member_id} joins: {attempt.reason}"
        if group.state is _STABLE and group.select_protocol() == group.protocol_name:
            self._persist_static_member(group, old, member, old_leader_id, attempt)
        elif group.state is _STABLE or group.state is _COMPLETING:
            # In CompletingRebalance the leader has the old id only, and would assign to that.
            self._rebalance.prepare(group, reason)
        else:
            self._rebalance.maybe_complete_join(group)

    def _persist_static_member(
        self,
        group: ClassicGroup,
        old: ClassicMember,
        new: ClassicMember,
        old_leader_id: str | None,
        attempt: JoinAttempt,
    ) -> None:
        """Write the member's new id to the log, then replace it; the generation stays."""
        generation = group.generation

        def done(code: ErrorCode) -> None:
            if group.state is _DEAD or group.members.get(new.member_id) is not new:
                return
            if code is not ErrorCode.NONE:
                group.set_join_reply(new, None)
                answer_sync(new, code)
                new.session.cancel()
                group.replace_static(new, old)
                old.session.set(old.session_timeout_ms)
                attempt.refuse(code)
                self._rebalance.maybe_complete_join(group)
            elif group.state is _STABLE and group.generation == generation:
                reply, new_leads = new.join_reply, group.leader_id == new.member_id
                group.set_join_reply(new, None)
                response = joined(group, new, members=new_leads and attempt.api_version >= 9)
                if attempt.api_version >= 9:
                    response.skip_assignment = new_leads
                else:
                    # A leader would compute an assignment that a stable group does not take: so
                    # the response names another leader, its own old id (KIP-814).
                    response.leader = old_leader_id or ""
                if reply is not None:
                    reply(response)
            # Else a rebalance has begun meanwhile, and responds when it is complete.

        self._shard.log.append([group_record(group)], lambda _: None, done)

    def prepare_over_capacity(self, group: ClassicGroup) -> None:
        """Rebalance a loaded group that is larger than `group.max.size` now allows."""
        if len(group.members) > self._group_max_size:
            self._rebalance.prepare(group, "over capacity when loaded")

    # -- sync --

    def sync(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Answer SyncGroup now, or when the leader's assignment has been committed."""

        def refuse(code: ErrorCode) -> None:
            reply(SyncGroupResponse(error_code=code))

        found = self._shard.groups.get(request.group_id)
        modern = self._modern_of(found)
        if found is not None and modern is not None and not found.is_empty:
            modern.sync(found, request, reply)
            return
        group = self._shard.group(request.group_id, ClassicGroup)
        if group is None or group.state is _EMPTY:
            refuse(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        code = self._validate_sync(group, request)
        if code is not ErrorCode.NONE:
            refuse(code)
            return
        member = group.members[request.member_id]
        if group.state is _COMPLETING:
            # The same member on another connection: the first response is not read any more.
            answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
            member.sync_reply = reply
            self._rebalance.remove_pending_sync(group, member.member_id)
            if group.leader_id == member.member_id:
                self._assign(group, {a.member_id: a.assignment for a in request.assignments})
        else:
            self._rebalance.remove_pending_sync(group, member.member_id)
            reply(synced(group, member))

    def _validate_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
        code = group.validate_member(request.member_id, request.group_instance_id)
        if code is not ErrorCode.NONE:
            return code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if (
            request.protocol_type is not None
            and group.protocol_type is not None
            and request.protocol_type != group.protocol_type
        ) or (
            request.protocol_name is not None
            and group.protocol_name is not None
            and request.protocol_name != group.protocol_name
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is _PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """Write the leader's assignment; answer SyncGroups once it is committed."""
        generation = group.generation

        def done(code: ErrorCode) -> None:
            # A member may have joined or left while it was being written.
            if group.state is not _COMPLETING or group.generation != generation:
                return
            if code is ErrorCode.NONE:
                group.transition_to(_STABLE, self._clock.now_ms())
                self._stats.completed_rebalances += 1
                for member in group.members.values():
                    member.assignment = assignments.get(member.member_id, b"")
                waiting = [
                    (reply, synced(group, member))
                    for reply, member in take_syncs(group.members.values())
                ]
                in_batches(self._timer, waiting, lambda taken: taken[0](taken[1]))
            else:
                for member in group.members.values():
                    member.assignment = b""
                self._rebalance.refuse_syncs(group, code)
                self._rebalance.prepare(group, f"assignment not recorded: {code.name}")

        self._shard.log.append([group_record(group, assignments)], lambda _: None, done)

    # -- heartbeat --

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Reset a member's session; REBALANCE_IN_PROGRESS when it has to join again."""
        group = self._shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            modern = self._modern_of(group)
            if group is None or modern is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return modern.heartbeat(group, member_id, group_instance_id, generation)
        code = group.validate_member(member_id, group_instance_id)
        if code is not ErrorCode.NONE:
            return code
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        member = group.members[member_id]
        member.session.set(member.session_timeout_ms)
        if group.state is _PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def touch(self, group: ClassicGroup, member_id: str) -> None:
        """Reset a member's session after an offset commit."""
        member = group.members.get(member_id)
        if member is not None and group.state in (_STABLE, _PREPARING):
            member.session.set(member.session_timeout_ms)

    # -- leave --

    def leave(self, group_id: str, identities: Iterable[MemberIdentity], done: Left) -> None:
        """Remove members; each gets its own answer.

        An identity without a member id names a static member by its instance id: so an
        administrator removes it for good.
        """
        found = self._shard.groups.get(group_id)
        modern = self._modern_of(found)
        if found is not None and modern is not None:
            modern.leave(found, identities, done)
            return
        group = self._shard.group(group_id, ClassicGroup)
        responses = []
        left = 0
        for identity in identities:
            code = (
                ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._leave_one(group, identity)
            )
            left += code is ErrorCode.NONE
            responses.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        if group is not None and left:
            if group.state in (_STABLE, _COMPLETING):
                self._rebalance.prepare(group, f"{left} members left")
            else:
                self._rebalance.maybe_complete_join(group)
        done(ErrorCode.NONE, responses)

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if not member_id:
            member_id = group.static_members.get(identity.group_instance_id or "", "")
            if not member_id:
                return ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id in group.pending_members:
            group.remove(member_id)
            return ErrorCode.NONE
        else:
            code = group.validate_member(member_id, identity.group_instance_id)
            if code is not ErrorCode.NONE:
                return code
        logger.info(
            "member leaves group=%s member=%s reason=%s",
            log_value(group.group_id),
            log_value(member_id),
            log_value(identity.reason or "not provided"),
        )
        answer_and_remove(group, group.members[member_id])
        return ErrorCode.NONE

    def session(self, group: ClassicGroup, member_id: str) -> Deadline:
        """A member's session timer, not yet running."""
        return self._rebalance.session(group, member_id)

    # -- conversion to and from the other protocol --

    def begin_rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Make all members join again."""
        self._rebalance.prepare(group, reason)

    def abandon(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Answer all parked requests, stop all timers: the group is converted, or moves away."""
        for timer in (group.join_timer, group.sync_timer):
            if timer is not None:
                timer.cancel()
        for pending in group.pending_members.values():
            pending.cancel()
        for member in group.members.values():
            answer_join(group, member, code)
            answer_sync(member, code)
            member.session.cancel()
        group.transition_to(_DEAD, self._clock.now_ms())

    # -- closing --

    def close(self) -> None:
        """Answer all parked requests and stop all timers: this broker resigned as coordinator."""
        for group in self._shard.groups_of(ClassicGroup):
            self.abandon(group, ErrorCode.NOT_COORDINATOR)
