"""The rebalance of a classic group: from one generation to the next, and members' time-outs.

    prepare ──> wait for joins ──> complete: new generation, all members are answered
                                       └──> wait for SyncGroup of all, at most the rebalance timeout

The join phase ends when all members have joined, or with the longest rebalance timeout. In the
first one their number is unknown, and `group.initial.rebalance.delay.ms` is how long to wait:

    |<---------- half of the delay ---------->|
    |          new members ...        |< fifth >| no new one in it: done; else another fifth

Kafka waits for the whole delay, and for all of it again when a member has joined meanwhile: twice
3 s where a hundred consumers that start together are served after 1.5 s here. A member that joins
later costs one more rebalance, as it does after Kafka's delay.

Source: Kafka, GroupMetadataManager.java (prepareRebalance, completeClassicGroupJoin and theirs).
"""

import logging
from collections.abc import Callable

from broker.groups.classic.classic_group import ClassicGroup, JoinReply
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.classic.records import group_record
from broker.groups.classic.responses import answer_and_remove, joined, take_syncs
from broker.groups.state.group_shard import GroupShard
from broker.runtime.batches import in_batches
from broker.runtime.deadline import Deadline
from broker.runtime.log_value import log_value
from broker.runtime.timer import Timer
from protocol.error_codes import ErrorCode
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

SETTLING_SHARE = 2
"""The first join phase lasts at least this part of the initial delay."""

EXTENSION_SHARE = 5
"""The first join phase ends when no member has joined for this part of the initial delay."""

_EMPTY = ClassicGroupState.EMPTY
_PREPARING = ClassicGroupState.PREPARING_REBALANCE
_COMPLETING = ClassicGroupState.COMPLETING_REBALANCE
_STABLE = ClassicGroupState.STABLE
_DEAD = ClassicGroupState.DEAD


class Rebalance:
    """Rebalances of the classic groups of one shard."""

    def __init__(
        self, shard: GroupShard, *, initial_delay_ms: int, clock: Clock, timer: Timer
    ) -> None:
        self._shard = shard
        self._initial_delay_ms = initial_delay_ms
        self._clock = clock
        self._timer = timer
        self._stats = shard.stats

    # -- the join phase --

    def prepare_or_complete_join(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance, or complete the join phase under way if it can end now."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.maybe_complete_join(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Start to wait for joins."""
        if group.state is _COMPLETING:
            for member in group.members.values():
                member.assignment = b""
            self.refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._cancel_sync_timer(group)
        group.pending_sync.clear()
        is_initial = group.state is _EMPTY
        group.transition_to(_PREPARING, self._clock.now_ms())
        self._stats.started_rebalances += 1
        logger.info(
            "group prepares to rebalance group=%s generation=%d reason=%s",
            log_value(group.group_id),
            group.generation,
            log_value(reason),
        )
        if is_initial:
            group.new_member_added = True
            delay_ms = self._initial_delay_ms
            first_ms = delay_ms // SETTLING_SHARE - delay_ms // EXTENSION_SHARE
            longest_ms = max(group.rebalance_timeout_ms, delay_ms)
            self._schedule_initial(group, first_ms, longest_ms - first_ms)
        elif group.has_all_members_joined:
            self._complete_join(group)
        else:
            self._schedule_join(group, group.rebalance_timeout_ms, self._complete_join)

    def refuse_syncs(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Answer all parked SyncGroups with an error, in batches."""
        in_batches(
            self._timer,
            take_syncs(group.members.values()),
            lambda taken: taken[0](SyncGroupResponse(error_code=code)),
        )

    def _schedule_join(
        self, group: ClassicGroup, delay_ms: int, callback: Callable[[ClassicGroup], None]
    ) -> None:
        if group.join_timer is not None:
            group.join_timer.cancel()

        def fire() -> None:
            group.join_timer = None
            if group.state is _PREPARING:
                callback(group)

        group.join_timer = self._timer.call_later_ms(delay_ms, fire)

    def _schedule_initial(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Complete the first join phase after a delay; extend it if a new member joined."""

        def complete_or_extend(group: ClassicGroup) -> None:
            extension_ms = min(self._initial_delay_ms // EXTENSION_SHARE, remaining_ms)
            if group.new_member_added and extension_ms > 0:
                group.new_member_added = False
                self._schedule_initial(group, extension_ms, remaining_ms - extension_ms)
            else:
                self._complete_join(group)

        self._schedule_join(group, delay_ms, complete_or_extend)

    def maybe_complete_join(self, group: ClassicGroup) -> None:
        """End the join phase if all members have joined; a first one waits for its delay."""
        if (
            group.state is _PREPARING
            and group.previous_state is not _EMPTY
            and group.has_all_members_joined
        ):
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        """End the join phase: remove absent members, start the generation, answer all joins."""
        if group.join_timer is not None:
            group.join_timer.cancel()
            group.join_timer = None
        # Static members may be away for their session timeout without a rebalance.
        late = [m.member_id for m in group.not_yet_rejoined() if m.group_instance_id is None]
        for member_id in late:
            group.remove(member_id)
        if late:
            logger.info(
                "members did not rejoin within the rebalance timeout, removed group=%s members=%d",
                log_value(group.group_id),
                len(late),
            )
        if group.members and not group.elect_joined_leader():
            # Only static members are left and none has joined: wait for them or for their
            # session timeouts.
            self._schedule_join(group, group.rebalance_timeout_ms, self._complete_join)
            return
        group.start_generation(self._clock.now_ms())
        if group.state is _EMPTY:
            self._persist_empty(group)
            return
        logger.info(
            "group has a new generation group=%s generation=%d members=%d protocol=%s",
            log_value(group.group_id),
            group.generation,
            len(group.members),
            log_value(group.protocol_name or ""),
        )
        waiting: list[tuple[JoinReply, JoinGroupResponse]] = []
        for member in group.members.values():
            reply = member.join_reply
            leads = group.leader_id == member.member_id
            group.set_join_reply(member, None)
            member.is_new = False
            member.session.set(member.session_timeout_ms)
            group.pending_sync.add(member.member_id)
            if reply is not None:
                waiting.append((reply, joined(group, member, members=leads)))
        in_batches(self._timer, waiting, lambda taken: taken[0](taken[1]))
        self._schedule_sync(group)

    def _persist_empty(self, group: ClassicGroup) -> None:
        name = log_value(group.group_id)
        logger.info("group is empty group=%s generation=%d", name, group.generation)

        def done(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                # The previous generation becomes current again if the broker stops now; its
                # members then time out. So this is only a warning.
                logger.warning(
                    "append to __consumer_offsets failed, empty group not recorded group=%s "
                    "error=%s",
                    name,
                    code.name,
                )

        self._shard.log.append([group_record(group)], lambda _: None, done)

    # -- the sync phase --

    def _schedule_sync(self, group: ClassicGroup) -> None:
        self._cancel_sync_timer(group)
        generation = group.generation

        def fire() -> None:
            group.sync_timer = None
            if group.generation == generation and group.state in (_COMPLETING, _STABLE):
                self._expire_pending_sync(group)

        group.sync_timer = self._timer.call_later_ms(group.rebalance_timeout_ms, fire)

    def _expire_pending_sync(self, group: ClassicGroup) -> None:
        """Remove members that joined the generation and sent no SyncGroup in time."""
        silent = list(group.pending_sync)
        if not silent:
            return
        for member_id in silent:
            answer_and_remove(group, group.members[member_id])
        self.prepare(group, f"{len(silent)} members sent no SyncGroup")

    def remove_pending_sync(self, group: ClassicGroup, member_id: str) -> None:
        """Note a member's SyncGroup; the last one stops the timer."""
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._cancel_sync_timer(group)

    def _cancel_sync_timer(self, group: ClassicGroup) -> None:
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    # -- expiry --

    def session(self, group: ClassicGroup, member_id: str) -> Deadline:
        """A member's session timer, not yet running."""
        return Deadline(self._timer, self._clock, lambda: self._expire_session(group, member_id))

    def _expire_session(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if group.state is _DEAD or member is None or member.has_satisfied_heartbeat:
            return
        logger.info(
            "member session expired, removed from the group group=%s member=%s",
            log_value(group.group_id),
            log_value(member_id),
        )
        self._stats.expired_members += 1
        answer_and_remove(group, member)
        self.after_removal(group, f"session of {member_id} has expired")

    def expire_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a pending member that has not joined in time."""
        if group.state is _DEAD or member_id not in group.pending_members:
            return
        group.remove(member_id)
        if group.state is _PREPARING:
            self.after_removal(group, "")

    def after_removal(self, group: ClassicGroup, reason: str) -> None:
        """Rebalance after a member was removed, or end the join phase that waited for it."""
        if group.state in (_STABLE, _COMPLETING):
            self.prepare(group, reason)
        elif group.state is _PREPARING and group.has_all_members_joined:
            # Here even a first rebalance ends early: no member is left that could still join.
            self._complete_join(group)
