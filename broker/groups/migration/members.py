"""Classic members of a consumer group, while it migrates (KIP-848).

To them it is a classic group with another leader; the responses reflect the reconciliation that the
coordinator does with every member:

    JoinGroup   has the member's subscription and owned partitions ──> one step towards its target;
                parked until there is a target for it. The generation is the member's epoch.
    SyncGroup   its assignment after that step
    Heartbeat   REBALANCE_IN_PROGRESS when there is another step to take: join again
    LeaveGroup  removes it; a group of which only such members are left becomes a classic one

A member that has to join again has its rebalance timeout to do so, and as long again to fetch its
assignment; else it is fenced.

Source: Kafka, GroupMetadataManager.java (classicGroupJoinToConsumerGroup and its siblings).
"""

import logging
from collections.abc import Callable, Iterable

from broker.controller.images.cluster_image import ClusterImage
from broker.groups.classic.classic_group import SyncReply
from broker.groups.classic.join_attempt import JoinAttempt
from broker.groups.classic.protocol import ClassicProtocol, Left
from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.consumer.protocol import ConsumerProtocol
from broker.groups.migration.conversion import assignment_bytes, by_topic_id, fits_into_record
from broker.groups.migration.member_rules import (
    check_generation,
    check_protocol,
    classic_member,
    find_member,
    leaving_member,
    supports_one_protocol,
    updated_member,
    waits_for_partitions,
)
from broker.groups.migration.steps import GroupMigration
from broker.groups.state.group import Group
from broker.groups.state.group_shard import GroupShard
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal.consumer_protocol import (
    ConsumerSubscription,
    decode_subscription,
    message_version,
)
from protocol.internal.consumer_subscription import PROTOCOL_TYPE
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import MemberIdentity, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from storage.environment.environment import Environment

logger = logging.getLogger(__name__)

MEMBER_ID_REQUIRED_FROM_VERSION = 4
"""Of JoinGroup (KIP-394)."""

CLIENT_ID_IN_MEMBER_ID_MAX = 1_000
"""Characters of the client id that become part of a member id."""


class ClassicMembers:
    """The classic protocol for members of one shard's consumer groups."""

    def __init__(
        self,
        consumers: ConsumerProtocol,
        migration: GroupMigration,
        *,
        settings: BrokerConfig,
        environment: Environment,
        image: Callable[[], ClusterImage],
    ) -> None:
        self._consumers = consumers
        self._migration = migration
        self._timer = environment.timer
        self._randomness = environment.randomness
        self._image = image
        self._max_size = settings.group_consumer_max_size

    # -- join --

    def join(self, group: Group, request: JoinGroupRequest, attempt: JoinAttempt) -> None:
        """Answer JoinGroup to a group with members, now or when there is a target."""
        assert isinstance(group, ConsumerGroup)
        try:
            self._join(group, request, attempt)
        except ApiError as error:
            # Without the member's id, as Kafka answers here.
            attempt.refuse(error.code)

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, attempt: JoinAttempt) -> None:
        member_id, instance_id = request.member_id, attempt.group_instance_id
        if len(group.members) >= self._max_size and member_id not in group.members:
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not supports_one_protocol(group, attempt) or not fits_into_record(attempt.protocols):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_unknown = not member_id
        if is_unknown:
            prefix = instance_id or attempt.client_id[:CLIENT_ID_IN_MEMBER_ID_MAX]
            member_id = f"{prefix}-{self._randomness.uuid4()}"
            if instance_id is None and attempt.api_version >= MEMBER_ID_REQUIRED_FROM_VERSION:
                # The id need not be kept: a member may join with any id.
                attempt.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
                return
        try:
            subscription = decode_subscription(attempt.protocols[0][1])
        except DecodeError:
            # Kafka fails here with UNKNOWN_SERVER_ERROR, which a client takes for retriable.
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None
        member, replaced = find_member(group, member_id, instance_id, is_unknown=is_unknown)
        self._consumers.check_log()
        updated = updated_member(member, attempt, subscription)
        changes = Changes(group)
        if (
            replaced is not None
            and not replaced.uses_classic_protocol
            and self._migration.may_downgrade(group, [replaced], joining=1)
        ):
            self._replace_and_downgrade(group, replaced, member, updated, subscription, attempt)
            return
        if replaced is not None:
            changes.replace_member(replaced, member)
        self._consumers.rebalance.advance(
            group,
            changes,
            member,
            updated,
            is_new_regex=False,
            is_joining=True,
            is_full=False,
            owned=self._owned(subscription),
            reply=lambda response: self._joined(group, attempt, response),
        )

    def _joined(
        self, group: ConsumerGroup, attempt: JoinAttempt, response: ConsumerGroupHeartbeatResponse
    ) -> None:
        member_id = response.member_id or ""
        if response.error_code != ErrorCode.NONE:
            attempt.refuse(ErrorCode(response.error_code), member_id)
            return
        timers = group.timers.get(member_id)
        if timers is not None:
            timers.cancel_join()
            timers.session.set(attempt.session_timeout_ms)
            self._time_sync(group, member_id, attempt.rebalance_timeout_ms)
        self._answer_join(attempt, member_id, response.member_epoch)

    @staticmethod
    def _answer_join(attempt: JoinAttempt, member_id: str, epoch: int) -> None:
        attempt.reply(
            JoinGroupResponse(
                error_code=ErrorCode.NONE,
                generation_id=epoch,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=attempt.protocols[0][0],
                # No member leads: the coordinator assigns.
                leader="",
                member_id=member_id,
                members=[],
            )
        )

    def _replace_and_downgrade(
        self,
        group: ConsumerGroup,
        replaced: ConsumerGroupMember,
        member: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        subscription: ConsumerSubscription,
        attempt: JoinAttempt,
    ) -> None:
        """Replace the last member of the new protocol, which rejoins with the classic one."""
        has_changed = updated.subscribed_topic_names != member.subscribed_topic_names or bool(
            replaced.subscribed_topic_regex
        )
        changes = Changes(group)
        changes.replace_member(replaced, member)
        changes.put_member(updated)
        if has_changed:
            changes.set_epoch(group.group_epoch + 1, group.metadata_hash)
        else:
            updated = self._consumers.rebalance.reconcile(
                group,
                changes,
                updated,
                has_subscription_changed=False,
                owned=self._owned(subscription),
            )

        def done(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._answer_join(attempt, updated.member_id, updated.member_epoch)
            else:
                attempt.refuse(code, updated.member_id)

        # Others may not have reached their target yet, which a generation takes for reached.
        is_rebalancing = has_changed or not all(
            one.is_reconciled_to(group.group_epoch) for one in group.members.values()
        )
        if not self._migration.convert_to_classic(
            group, [], changes.records, done, is_rebalancing=is_rebalancing
        ):
            self._consumers.sessions.start(group, group.members[updated.member_id])

    def _owned(
        self, subscription: ConsumerSubscription
    ) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=topic_id, partitions=list(partitions)
            )
            for topic_id, partitions in by_topic_id(subscription.owned, self._image()).items()
        ]

    # -- sync --

    def sync(self, group: Group, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Answer SyncGroup with the member's assignment."""
        assert isinstance(group, ConsumerGroup)
        try:
            member = classic_member(group, request.member_id, request.group_instance_id)
            check_generation(member, request.generation_id)
            check_protocol(member, request)
            if (
                group.group_epoch > member.member_epoch
                and member.state is not MemberState.UNREVOKED_PARTITIONS
            ):
                self._time_join(group, member)
                raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        except ApiError as error:
            reply(SyncGroupResponse(error_code=error.code))
            return
        classic = member.classic
        assert classic is not None

        def done(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                reply(SyncGroupResponse(error_code=code))
                return
            timers = group.timers.get(member.member_id)
            if timers is not None:
                timers.cancel_sync()
                timers.session.set(classic.session_timeout_ms)
            version = message_version(classic.supported_protocols[0].metadata)
            reply(
                SyncGroupResponse(
                    error_code=ErrorCode.NONE,
                    protocol_type=request.protocol_type,
                    protocol_name=request.protocol_name,
                    assignment=assignment_bytes(member.assigned, self._image(), version),
                )
            )

        self._consumers.journal.write(group, [], done)

    # -- heartbeat --

    def heartbeat(
        self, group: Group, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Reset a member's session; REBALANCE_IN_PROGRESS when there is another step to take."""
        assert isinstance(group, ConsumerGroup)
        try:
            member = classic_member(group, member_id, instance_id)
            check_generation(member, generation)
        except ApiError as error:
            return error.code
        assert member.classic is not None
        timers = group.timers.get(member_id)
        if timers is not None:
            timers.session.set(member.classic.session_timeout_ms)
        if (
            member.member_epoch < group.group_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (
                member.state is MemberState.UNRELEASED_PARTITIONS
                and not waits_for_partitions(group, member)
            )
        ):
            self._time_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # -- leave --

    def leave(self, group: Group, identities: Iterable[MemberIdentity], done: Left) -> None:
        """Remove members, of either protocol; each gets its own answer, when this is written."""
        assert isinstance(group, ConsumerGroup)
        leaving: dict[str, ConsumerGroupMember] = {}
        responses = []
        for identity in identities:
            code = ErrorCode.NONE
            try:
                member = leaving_member(group, identity)
            except ApiError as error:
                code = error.code
            else:
                leaving[member.member_id] = member
                logger.info(
                    "member leaves group=%s member=%s reason=%s",
                    log_value(group.group_id),
                    log_value(member.member_id),
                    log_value(identity.reason or "not provided"),
                )
            responses.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        if not leaving:
            done(ErrorCode.NONE, responses)
            return
        try:
            self._consumers.check_log()
        except ApiError as error:
            done(error.code, [])
            return

        def written(code: ErrorCode) -> None:
            done(code, responses if code is ErrorCode.NONE else [])

        self._consumers.fence(group, list(leaving.values()), written)

    # -- time --

    def _time_join(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        timers = group.timers.get(member.member_id)
        if timers is None or timers.join is not None:
            return

        def fire() -> None:
            timers.join = None
            self._consumers.expire(group, member.member_id, "it does not join again")
            if group.timers.get(member.member_id) is timers:
                # Nobody can be fenced now.
                self._time_join(group, member)

        timers.join = self._timer.call_later_ms(member.rebalance_timeout_ms, fire)

    def _time_sync(self, group: ConsumerGroup, member_id: str, timeout_ms: int) -> None:
        timers = group.timers[member_id]
        timers.cancel_sync()

        def fire() -> None:
            timers.sync = None
            self._consumers.expire(group, member_id, "it does not fetch its assignment")
            if group.timers.get(member_id) is timers:
                self._time_sync(group, member_id, timeout_ms)

        timers.sync = self._timer.call_later_ms(timeout_ms, fire)


def connect(
    classic: ClassicProtocol,
    consumers: ConsumerProtocol,
    shard: GroupShard,
    *,
    settings: BrokerConfig,
    environment: Environment,
    image: Callable[[], ClusterImage],
) -> None:
    """Enable conversions between the protocols of one shard."""
    migration = GroupMigration(
        shard, classic, consumers, settings=settings, clock=environment.clock, image=image
    )
    consumers.migration = migration
    classic.modern = ClassicMembers(
        consumers,
        migration,
        settings=settings,
        environment=environment,
        image=image,
    )
