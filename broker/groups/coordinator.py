"""The group coordinator, as the request handlers call it.

A group belongs to one partition of `__consumer_offsets`; the partition's leader coordinates the
group. A partition's groups and offsets are a shard (`broker.groups.shard`), which the
`CoordinatorRuntime` loads and unloads.

Source: Kafka, GroupCoordinatorService.java.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from broker.controller.images.features import GROUP_VERSION, SHARE_VERSION
from broker.controller.images.topic_names import CONSUMER_OFFSETS
from broker.coordinator.elected_appender import ElectedAppender
from broker.coordinator.outcome import Done
from broker.coordinator.runtime import CoordinatorRuntime, CoordinatorTopic, OnFailed
from broker.coordinator.shard_log import AtIterationEnd, ShardLog
from broker.coordinator.topic_coordinator import TopicCoordinator
from broker.coordinator.upkeep import Upkeep
from broker.groups.classic.join_attempt import JoinAttempt
from broker.groups.classic.protocol import ClassicProtocol, Left
from broker.groups.consumer.backlog import Backlog
from broker.groups.consumer.protocol import ConsumerProtocol
from broker.groups.consumer.responses import Heartbeat
from broker.groups.consumer.validation import check_heartbeat
from broker.groups.migration.members import connect
from broker.groups.modern.member import Client
from broker.groups.modern.offload import ThreadOffload
from broker.groups.offsets.offset_manager import FetchedOffset, OffsetManager
from broker.groups.offsets.transactional import TransactionalOffsetCommit, TransactionalOffsets
from broker.groups.shard import GroupCoordinatorShard
from broker.groups.share.protocol import ShareProtocol
from broker.groups.share.share_group import ShareGroup
from broker.groups.share.validation import check_share_heartbeat
from broker.groups.state.group import Group
from broker.groups.state.group_shard import GroupShard
from broker.groups.state.stats import CommittedOffset, GroupSnapshot, GroupStats
from broker.replicas.replica_manager import INTERNAL_APPEND_TIMEOUT_MS
from broker.requests.answer import Answer
from broker.requests.request_context import RequestContext
from broker.runtime.errors import ApiError
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.hot.offset_commit import OffsetCommitRequest
from protocol.internal.consumer_offsets import STRING_SIZE_MAX
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import MemberIdentity
from protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.producers.verification import VerificationGuard
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.coordinator.persister import SharePersister
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

OFFSETS_TOPIC = CONSUMER_OFFSETS

AnyGroup = TypeVar("AnyGroup", bound=Group)

_MEMBER_ID_SUFFIX_LENGTH = 37
"""A dash and a UUID: what makes an instance id a member id."""

_NAME_LENGTH_MAX = STRING_SIZE_MAX // 4 - _MEMBER_ID_SUFFIX_LENGTH
"""Characters of a name, of at most four bytes each."""

READ_SIZE = 256 * 1024
"""Bytes read at a time when a partition is loaded."""

_EXPIRED_PER_SLICE = 500
"""Offsets checked for expiry before yielding to the event loop."""


class GroupCoordinator(TopicCoordinator[GroupCoordinatorShard]):
    """Coordinates the groups whose offsets partitions this broker leads.

    All methods run on the event loop and none blocks.

    Attributes:
        stats: Counts since the start.
        share_persister: Keeps share state; None: share groups are not served.
        on_share_state_altered: Called with a group without members whose share state was reset
            or deleted: caches of it must be read again.
    """

    def __init__(
        self,
        settings: BrokerConfig,
        environment: Environment,
        replica_manager: "ReplicaManager",
        controller: "Controller",
        at_iteration_end: AtIterationEnd | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._replica_manager = replica_manager
        self._controller = controller
        self._at_iteration_end = at_iteration_end
        self._backlog: Backlog[Heartbeat] = Backlog(environment.timer, environment.clock)
        self._upkeep = Upkeep(environment.timer)
        self.stats = GroupStats()
        super().__init__(
            CoordinatorRuntime(
                CoordinatorTopic(
                    OFFSETS_TOPIC, "groups", settings.offsets_topic_num_partitions, READ_SIZE
                ),
                self._build_shard,
                timeout_ms=settings.offsets_commit_timeout_ms,
                environment=environment,
                replicas=replica_manager,
                controller=controller,
                stats=self.stats,
                alerts=alerts,
            )
        )
        self._find = self._runtime.find
        self.share_persister: SharePersister | None = None
        self.on_share_state_altered: Callable[[str], None] = lambda group_id: None

    # -- life --

    async def start(self) -> None:
        """Begin to serve; shards come with `on_elected`."""
        await self._runtime.start()
        self._upkeep.every(
            self._settings.offsets_retention_check_interval_ms, "expiry", self.expire_offsets
        )

    async def stop(self) -> None:
        """Answer all waiting requests with NOT_COORDINATOR and stop all timers and tasks."""
        await self._upkeep.stop()
        await self._runtime.stop()

    def _gather_until(self, linger_ms: int) -> AtIterationEnd | None:
        """When gathered records are written; None: they are not gathered."""
        if linger_ms < 0:
            return self._at_iteration_end
        return partial(self._environment.timer.call_later_ms, linger_ms) if linger_ms else None

    def _build_shard(
        self, topic_partition: TopicPartition, leader_epoch: int, on_failed: OnFailed
    ) -> GroupCoordinatorShard:
        settings, environment = self._settings, self._environment
        appender = ElectedAppender(
            self._replica_manager, leader_epoch, timeout_ms=INTERNAL_APPEND_TIMEOUT_MS
        )
        log = ShardLog(
            topic_partition,
            appender=appender,
            environment=environment,
            timeout_ms=INTERNAL_APPEND_TIMEOUT_MS,
            on_failed=on_failed,
            answer_within_ms=settings.offsets_commit_timeout_ms,
            codec=settings.offsets_topic_compression_codec,
            at_iteration_end=self._gather_until(settings.group_coordinator_append_linger_ms),
        )
        shard = GroupShard(log, environment.clock, self.stats)
        protocol = ClassicProtocol(shard, settings=settings, environment=environment)
        offsets = OffsetManager(shard, protocol, settings=settings, environment=environment)
        transactional = TransactionalOffsets(
            shard, appender, settings=settings, clock=environment.clock
        )
        consumers = ConsumerProtocol(
            shard,
            settings=settings,
            environment=environment,
            offload=ThreadOffload(),
            image=lambda: self._controller.image,
            group_settings=self._controller.group_config,
            backlog=self._backlog,
        )
        connect(
            protocol,
            consumers,
            shard,
            settings=settings,
            environment=environment,
            image=lambda: self._controller.image,
        )
        shares = ShareProtocol(
            shard,
            settings=settings,
            environment=environment,
            image=lambda: self._controller.image,
            group_settings=self._controller.share_group_config,
            persister=lambda: self.share_persister,
            state_altered=lambda group_id: self.on_share_state_altered(group_id),
        )
        return GroupCoordinatorShard(
            shard,
            protocol,
            offsets,
            transactional,
            consumers,
            shares,
            clock=environment.clock,
            image=lambda: self._controller.image,
        )

    # -- membership --

    def join_group(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> "JoinGroupResponse | Answer[JoinGroupResponse]":
        """JoinGroup; parked while the group prepares to rebalance."""
        reply: Answer[JoinGroupResponse] = Answer()
        has_null_names = context.api_version >= 7

        def answer(response: JoinGroupResponse) -> None:
            if not has_null_names and response.protocol_name is None:
                response.protocol_name = ""
            reply(response)

        attempt = JoinAttempt(
            request,
            api_version=context.api_version,
            client_id=context.client_id or "",
            client_host=f"/{context.connection.peer_host}",
            reply=answer,
        )
        code = self._check_join(request)
        if code is not ErrorCode.NONE:
            attempt.refuse(code, request.member_id)
            return reply.result()
        active = self._find(request.group_id)
        if isinstance(active, ErrorCode):
            attempt.refuse(active, request.member_id)
        else:
            active.protocol.join(request, attempt)
        return reply.result()

    def _check_join(self, request: JoinGroupRequest) -> ErrorCode:
        if not request.group_id or not can_be_recorded(request.group_id):
            return ErrorCode.INVALID_GROUP_ID
        names = (request.protocol_type, *(protocol.name for protocol in request.protocols))
        if not all(can_be_recorded(name) for name in (request.group_instance_id or "", *names)):
            return ErrorCode.INVALID_REQUEST
        if not (
            self._settings.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= self._settings.group_max_session_timeout_ms
        ):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return ErrorCode.NONE

    def consumer_group_heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> "ConsumerGroupHeartbeatResponse | Answer[ConsumerGroupHeartbeatResponse]":
        """ConsumerGroupHeartbeat; answered when what it changes is committed.

        Raises:
            ApiError: The request is invalid for any group.
        """
        if not self._runtime.is_running:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        check_heartbeat(request, context.api_version, self._settings.group_consumer_assignors)
        active = self._find(request.group_id)
        if isinstance(active, ErrorCode):
            raise ApiError(active)
        reply: Answer[ConsumerGroupHeartbeatResponse] = Answer()
        client = Client(context.client_id or "", f"/{context.connection.peer_host}")
        active.consumers.heartbeat(request, client, reply)
        return reply.result()

    def share_group_heartbeat(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> "ShareGroupHeartbeatResponse | Answer[ShareGroupHeartbeatResponse]":
        """ShareGroupHeartbeat; answered when what it changes is committed.

        Raises:
            ApiError: The request is invalid for any group.
        """
        if not self._runtime.is_running:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        check_share_heartbeat(request)
        shares = self.share_protocol(request.group_id)
        reply: Answer[ShareGroupHeartbeatResponse] = Answer()
        client = Client(context.client_id or "", f"/{context.connection.peer_host}")
        shares.heartbeat(request, client, reply)
        return reply.result()

    def share_protocol(self, group_id: str) -> ShareProtocol:
        """The protocol that serves a share group.

        Raises:
            ApiError: It cannot be served here and now.
        """
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            raise ApiError(active)
        return active.shares

    def sync_group(
        self, request: SyncGroupRequest
    ) -> "SyncGroupResponse | Answer[SyncGroupResponse]":
        """SyncGroup; parked until the leader's assignment is committed."""
        if not request.group_id:
            return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        active = self._find(request.group_id)
        if isinstance(active, ErrorCode):
            if active is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # A rebalance is not in the log, so the one this member is in is lost: it has to
                # start over with JoinGroup. Clients do not know LOAD_IN_PROGRESS here.
                active = ErrorCode.REBALANCE_IN_PROGRESS
            return SyncGroupResponse(error_code=active)
        reply: Answer[SyncGroupResponse] = Answer()
        active.protocol.sync(request, reply)
        return reply.result()

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat of a member."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            # While loading no session runs: the heartbeat succeeds.
            return ErrorCode.NONE if active is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else active
        return active.protocol.heartbeat(group_id, member_id, group_instance_id, generation)

    def leave_group(self, group_id: str, members: Iterable[MemberIdentity], done: Left) -> None:
        """LeaveGroup of one or more members: the group's error, and one answer for each."""
        if not group_id:
            done(ErrorCode.INVALID_GROUP_ID, [])
            return
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            done(active, [])
        else:
            active.protocol.leave(group_id, members, done)

    # -- offsets --

    def commit_offsets(self, request: OffsetCommitRequest, api_version: int, done: Done) -> None:
        """OffsetCommit; `done` gets what holds for all that have no error in the request."""
        active = self._find(request.group_id)
        if isinstance(active, ErrorCode):
            done(active)
        elif not can_be_recorded(request.group_id):
            done(ErrorCode.INVALID_GROUP_ID)
        else:
            active.offsets.commit(request, api_version, done)

    def commit_transactional_offsets(
        self,
        request: TxnOffsetCommitRequest,
        api_version: int,
        commits: Sequence[TransactionalOffsetCommit],
        done: Done,
        *,
        guard: VerificationGuard | None = None,
    ) -> None:
        """TxnOffsetCommit; `done` gets what holds for all that have no error of their own."""
        active = self._find(request.group_id)
        if not request.group_id or not can_be_recorded(request.group_id):
            done(ErrorCode.INVALID_GROUP_ID)
        elif isinstance(active, ErrorCode):
            done(active)
        else:
            active.transactional.commit(request, api_version, commits, done, guard=guard)

    def end_transaction(
        self,
        partition_index: int,
        producer_id: int,
        *,
        commit: bool,
        before_record: int | None = None,
    ) -> None:
        """Apply a producer's committed marker in an offsets partition to its pending offsets.

        See `OffsetStore.end_transaction`. Without a shard nothing is to be done: the next one finds
        the marker in the log.
        """
        active = self._runtime.shard_at(partition_index)
        if active is not None:
            active.transactional.end_transaction(
                producer_id, commit=commit, before_record=before_record
            )

    def is_loading_partition(self, partition_index: int) -> bool:
        """Whether a record appended now may be missed by the shard that is being read back."""
        return self._runtime.is_loading_partition(partition_index)

    def fetch_offsets(
        self,
        group_id: str,
        topics: Sequence[tuple[str, UUID, Sequence[int]]] | None,
        *,
        require_stable: bool,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> tuple[ErrorCode, list[list[FetchedOffset]]]:
        """OffsetFetch of one group: its error, and for each topic the partitions asked for."""
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            return active, []
        group = active.shard.groups.get(group_id)
        if group is not None:
            code = group.validate_offset_fetch(member_id, member_epoch)
            if code is not ErrorCode.NONE:
                return code, []
        return ErrorCode.NONE, [
            active.offsets.fetch(
                group_id, topic, topic_id, partitions, require_stable=require_stable
            )
            for topic, topic_id, partitions in topics or ()
        ]

    def committed_topics(self, group_id: str) -> list[tuple[str, list[int]]]:
        """Topics and partitions that the group has committed; empty when it is not served here."""
        active = self._find(group_id)
        return [] if isinstance(active, ErrorCode) else active.offsets.topics(group_id)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[tuple[str, int]],
        done: Callable[[ErrorCode, list[ErrorCode]], None],
    ) -> None:
        """OffsetDelete: the group's error, and one for each partition."""
        if not group_id:
            done(ErrorCode.INVALID_GROUP_ID, [])
            return
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            done(active, [])
        else:
            active.offsets.delete(group_id, partitions, done)

    def delete_group(self, group_id: str, done: Done) -> None:
        """DeleteGroups of one group."""
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            done(active)
            return
        group = active.shard.groups.get(group_id)
        if group is not None:
            group.expire_sessions()
        share_group = active.shard.group(group_id, ShareGroup)
        if share_group is None:
            active.offsets.delete_group(group_id, done)
            return

        def state_deleted(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                active.offsets.delete_group(group_id, done)
            else:
                done(code)

        active.shares.administration.delete_state(share_group, state_deleted)

    # -- views --

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether groups of KIP-848 are switched on."""
        return (
            "consumer" in self._settings.group_coordinator_rebalance_protocols
            and self._controller.image.features.get(GROUP_VERSION, 0) >= 1
        )

    @property
    def serves_share_groups(self) -> bool:
        """Whether groups of KIP-932 are switched on."""
        return (
            self.share_persister is not None
            and self._controller.image.features.get(SHARE_VERSION, 0) >= 1
        )

    @property
    def default_assignor(self) -> str:
        """The assignor of groups whose members prefer none."""
        return self._settings.group_consumer_assignors[0]

    def find_group(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        """A group for reading; (NONE, None) when there is no such group."""
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            return active, None
        return ErrorCode.NONE, active.shard.groups.get(group_id)

    def group_of(self, group_id: str, kind: type[AnyGroup], name: str) -> AnyGroup:
        """A group of one kind for reading; `name` is the kind's, as clients read it.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND: there is none, or it is of another kind. Else why it
                cannot be served here and now.
        """
        code, group = self.find_group(group_id)
        if code is not ErrorCode.NONE:
            raise ApiError(code, code.message)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, kind):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {name} group.")
        return group

    def groups(self) -> Iterator[Group]:
        """All groups that are coordinated here; not to be kept across loop iterations."""
        for active in self._runtime.shards():
            yield from active.shard.groups.values()

    def snapshots(self) -> Iterator[GroupSnapshot]:
        """All groups in short, for metrics."""
        for active in self._runtime.shards():
            for group in active.shard.groups.values():
                yield GroupSnapshot(
                    group.group_id,
                    group.state_name,
                    group.protocol_type or "",
                    group.generation_or_epoch,
                    group.member_count,
                    sum(len(p) for _, p in active.shard.offsets.topics(group.group_id)),
                )

    def committed_offsets(self) -> Iterator[CommittedOffset]:
        """All committed offsets, for lag."""
        for active in self._runtime.shards():
            for group_id in active.shard.offsets.group_ids():
                for topic, partition, offset in active.shard.offsets.offsets(group_id):
                    yield CommittedOffset(group_id, topic, partition, offset)

    @property
    def committed_offset_count(self) -> int:
        """How many offsets are stored."""
        return sum(active.shard.offsets.count for active in self._runtime.shards())

    # -- expiry --

    async def expire_offsets(self) -> None:
        """Delete expired offsets and groups, in slices."""
        checked = 0
        for active in list(self._runtime.shards()):
            for group_id in list(active.shard.groups):
                if active.log.is_closed:
                    break
                checked += 1 + active.offsets.expire(group_id)
                if checked >= _EXPIRED_PER_SLICE:
                    checked = 0
                    await asyncio.sleep(0)


def can_be_recorded(name: str) -> bool:
    """Whether a record has room for the name, whatever its characters, and for an id made of it.

    Flexible versions of the requests carry longer strings than the records do.
    """
    return len(name) <= _NAME_LENGTH_MAX
