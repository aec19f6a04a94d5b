"""The group coordinator: what the handlers call.

A group belongs to one partition of `__consumer_offsets`; who leads the partition coordinates the
group. A partition's groups and offsets are a *shard*:

    on_elected ──> waiting to load ──> loading ──> active ──> on_resigned
                    (COORDINATOR_LOAD_IN_PROGRESS)              (NOT_COORDINATOR)

Source: Kafka, GroupCoordinatorService.java, CoordinatorRuntime.java.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from broker.controller.images.features import GROUP_VERSION, SHARE_VERSION
from broker.controller.images.topic_names import CONSUMER_OFFSETS
from broker.coordinator.partitioner import partition_for_group
from broker.coordinator.unavailable_partitions import UnavailablePartitions
from broker.groups.classic_group import ClassicGroup
from broker.groups.classic_protocol import ClassicProtocol, Left
from broker.groups.consumer.backlog import Backlog
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.consumer_protocol import Client, ConsumerProtocol, Heartbeat
from broker.groups.consumer.migration_members import connect
from broker.groups.consumer.offload import ThreadOffload
from broker.groups.consumer.validation import check_heartbeat
from broker.groups.group import Group
from broker.groups.join_attempt import JoinAttempt
from broker.groups.loader import LogReader, fill_shard
from broker.groups.offset_manager import FetchedOffset, OffsetCommit, OffsetManager
from broker.groups.offsets_log import AtTurnEnd, Done, OffsetsLog
from broker.groups.shard import GroupShard
from broker.groups.share.share_group import ShareGroup
from broker.groups.share.share_protocol import ShareProtocol
from broker.groups.share.validation import check_share_heartbeat
from broker.groups.stats import CommittedOffset, GroupSnapshot, GroupStats
from broker.groups.transactional_offsets import TransactionalOffsetCommit, TransactionalOffsets
from broker.network.request import RequestContext
from broker.requests.answer import Answer
from broker.runtime.errors import ApiError
from broker.runtime.timer import Timer, TimerHandle
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal.consumer_offsets import STRING_SIZE_MAX
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import MemberIdentity
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from storage.environment.alerts import Alerts
from storage.environment.clock import Clock
from storage.environment.randomness import Randomness
from storage.errors import StorageError
from storage.producers.verification import VerificationGuard
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.replica_manager import ReplicaManager
    from broker.share.persister import SharePersister

logger = logging.getLogger(__name__)

OFFSETS_TOPIC = CONSUMER_OFFSETS

_MEMBER_ID_SUFFIX_LENGTH = 37
"""A dash and a UUID: what makes an instance id a member id."""

_NAME_LENGTH_MAX = STRING_SIZE_MAX // 4 - _MEMBER_ID_SUFFIX_LENGTH
"""Characters of a name, of at most four bytes each."""

_EXPIRED_PER_SLICE = 500
"""Offsets that are looked at for expiry before the loop gets its turn."""

_STARTED_PER_SLICE = 250
"""Members whose sessions are started before the loop gets its turn."""

_UNCOMMITTED_DELAY_MS = 50.0
"""Before the end of a log is looked at again that was not yet committed."""


class _Active(NamedTuple):
    """A shard that is loaded, and those who work on it."""

    shard: GroupShard
    protocol: ClassicProtocol
    offsets: OffsetManager
    transactional: TransactionalOffsets
    consumers: ConsumerProtocol
    shares: ShareProtocol

    def close(self) -> None:
        """Answer whoever waits with NOT_COORDINATOR, write nothing any more."""
        self.shard.log.close()
        self.protocol.close()
        self.consumers.close()
        self.shares.close()


class _Election:
    """A shard that is still to be loaded; `deleted` topics went away meanwhile."""

    __slots__ = ("deleted",)

    def __init__(self) -> None:
        self.deleted: set[str] = set()


class GroupCoordinator:
    """Coordinates the groups whose offsets partitions this broker leads.

    All methods run on the event loop and none blocks.

    Attributes:
        stats: Counts since the start.
        share_persister: Keeps share state; None: share groups are not served.
        on_share_state_altered: Told of a group without members whose share state was begun anew
            or deleted: who remembers it must read it again.
    """

    def __init__(
        self,
        settings: BrokerConfig,
        clock: Clock,
        timer: Timer,
        randomness: Randomness,
        replica_manager: "ReplicaManager",
        controller: "Controller",
        at_turn_end: AtTurnEnd | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._timer = timer
        self._randomness = randomness
        self._replica_manager = replica_manager
        self._controller = controller
        self._at_turn_end = at_turn_end
        self._running = False
        self._active: dict[int, _Active] = {}
        # By partition, one for each election: what was read for another one does not count.
        self._loading: dict[int, _Election] = {}
        self.unavailable = UnavailablePartitions(OFFSETS_TOPIC, alerts)
        self._to_load: deque[int] = deque()
        self._loader: asyncio.Task[None] | None = None
        self._backlog: Backlog[Heartbeat] = Backlog(timer, clock)
        self._expiry_timer: TimerHandle | None = None
        self._expiry: asyncio.Task[None] | None = None
        self.stats = GroupStats()
        self.share_persister: SharePersister | None = None
        self.on_share_state_altered: Callable[[str], None] = lambda group_id: None

    # -- life --

    async def start(self) -> None:
        """Begin to serve; shards come with `on_elected`."""
        self._running = True
        self._controller.subscribe(self._on_image)
        self._schedule_expiry()

    async def stop(self) -> None:
        """Answer whoever waits with NOT_COORDINATOR and stop every timer and task."""
        self._running = False
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        tasks = [task for task in (self._loader, self._expiry) if task is not None]
        self._loader = self._expiry = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for partition in [*self._active, *self._loading]:
            self.on_resigned(partition)

    def on_elected(self, partition_index: int) -> None:
        """This broker leads the offsets partition now: load its groups."""
        if partition_index in self._active or partition_index in self._loading:
            return
        self._loading[partition_index] = _Election()
        self._queue(partition_index)

    def on_resigned(self, partition_index: int) -> None:
        """Somebody else leads the offsets partition, or it was deleted."""
        self._loading.pop(partition_index, None)
        active = self._active.pop(partition_index, None)
        if active is not None:
            active.close()
            if active.shard.groups:
                logger.info(
                    "groups unloaded partition=%d groups=%d",
                    partition_index,
                    len(active.shard.groups),
                )

    def _queue(self, partition_index: int) -> None:
        if not self._running or partition_index not in self._loading:
            return
        self._to_load.append(partition_index)
        if self._loader is None or self._loader.done():
            self._loader = asyncio.get_running_loop().create_task(self._load_waiting())

    async def _load_waiting(self) -> None:
        while self._to_load:
            partition_index = self._to_load.popleft()
            election = self._loading.get(partition_index)
            if election is None:
                continue
            try:
                active = await self._load(partition_index)
                if active is None:
                    self._timer.call_later_ms(
                        _UNCOMMITTED_DELAY_MS, partial(self._queue, partition_index)
                    )
                elif self._loading.get(partition_index) is election:
                    await self._activate(partition_index, active, election)
            except Exception as error:
                # It stays without a coordinator: to serve it empty would forget offsets. Whatever
                # it is, it must not keep the others from being loaded.
                self.stats.load_failures += 1
                if not isinstance(error, (DecodeError, StorageError, OSError, KeyError)):
                    logger.exception("groups cannot be loaded partition=%d", partition_index)
                if self._loading.get(partition_index) is election:
                    del self._loading[partition_index]
                    self.unavailable.set(partition_index, f"groups cannot be loaded: {error}")

    async def _load(self, partition_index: int) -> _Active | None:
        """The shard; None while the end of its log is not committed: it belongs to it, too."""
        started_ms = self._clock.monotonic_ms()
        topic_partition = TopicPartition(OFFSETS_TOPIC, partition_index)
        partition = self._replica_manager.get_partition(*topic_partition)
        if partition is None:
            raise KeyError(str(topic_partition))
        log = partition.log
        end_offset = log.next_offset
        if log.high_watermark < end_offset:
            return None
        reader = LogReader(self._replica_manager, topic_partition)
        await reader.read(log.log_start_offset, end_offset)
        active = self._new_shard(topic_partition)
        await fill_shard(active.shard, active.protocol, reader)
        self.stats.loaded_partitions += 1
        self.stats.loaded_records += reader.records
        took_ms = self._clock.monotonic_ms() - started_ms
        self.stats.loading_ms += took_ms
        if reader.records:
            logger.info(
                "groups loaded partition=%d groups=%d offsets=%d records=%d elapsed_ms=%d",
                partition_index,
                len(active.shard.groups),
                active.shard.offsets.count,
                reader.records,
                took_ms,
            )
        return active

    def _gather_until(self, linger_ms: int) -> AtTurnEnd | None:
        """When what is gathered is written; None: nothing is gathered."""
        if linger_ms < 0:
            return self._at_turn_end
        return partial(self._timer.call_later_ms, linger_ms) if linger_ms else None

    def _new_shard(self, topic_partition: TopicPartition) -> _Active:
        settings = self._settings
        log = OffsetsLog(
            topic_partition,
            appender=self._replica_manager,
            clock=self._clock,
            timer=self._timer,
            timeout_ms=settings.offsets_commit_timeout_ms,
            codec=settings.offsets_topic_compression_codec,
            at_turn_end=self._gather_until(settings.group_coordinator_append_linger_ms),
        )
        shard = GroupShard(log, self._clock, self.stats)
        protocol = ClassicProtocol(
            shard,
            settings=settings,
            clock=self._clock,
            timer=self._timer,
            randomness=self._randomness,
        )

        def give_up() -> None:
            self._timer.call_later_ms(0, lambda: self._reload(shard))

        offsets = OffsetManager(
            shard,
            protocol,
            settings=settings,
            clock=self._clock,
            timer=self._timer,
            give_up=give_up,
        )
        transactional = TransactionalOffsets(
            shard, self._replica_manager, settings=settings, clock=self._clock
        )
        consumers = ConsumerProtocol(
            shard,
            settings=settings,
            clock=self._clock,
            timer=self._timer,
            randomness=self._randomness,
            offload=ThreadOffload(),
            image=lambda: self._controller.image,
            group_settings=self._controller.group_config,
            give_up=give_up,
            backlog=self._backlog,
        )
        connect(
            protocol,
            consumers,
            shard,
            settings=settings,
            clock=self._clock,
            timer=self._timer,
            randomness=self._randomness,
            image=lambda: self._controller.image,
        )
        shares = ShareProtocol(
            shard,
            settings=settings,
            clock=self._clock,
            timer=self._timer,
            image=lambda: self._controller.image,
            group_settings=self._controller.share_group_config,
            persister=lambda: self.share_persister,
            state_altered=lambda group_id: self.on_share_state_altered(group_id),
            give_up=give_up,
        )
        return _Active(shard, protocol, offsets, transactional, consumers, shares)

    def _reload(self, shard: GroupShard) -> None:
        """The log has refused a change that was made here already: what it says is true."""
        partition_index = shard.log.topic_partition.partition
        active = self._active.get(partition_index)
        if active is None or active.shard is not shard or not self._running:
            return
        self.on_resigned(partition_index)
        if self._replica_manager.get_partition(*shard.log.topic_partition) is None:
            # It has just left, with its topic or its disk: whoever took it is about to tell, and
            # when it is back it is elected.
            return
        logger.error("a change was refused: read anew partition=%d", partition_index)
        self.on_elected(partition_index)

    async def _activate(self, partition_index: int, active: _Active, election: _Election) -> None:
        """Serve a shard that was loaded; some members at a time, as there may be thousands."""
        try:
            await self._start_sessions(active)
        except BaseException:
            active.close()
            raise
        if self._loading.get(partition_index) is not election:
            # Resigned meanwhile.
            active.close()
            return
        del self._loading[partition_index]
        self.unavailable.clear(partition_index)
        self._active[partition_index] = active
        for group in list(active.shard.classic_groups()):
            active.protocol.prepare_over_capacity(group)
        # Some were deleted meanwhile, or before a crash that left their offsets in the log.
        gone = election.deleted | await self._unknown_topics(active)
        await self._delete_partitions(partition_index, active, gone)
        for share_group in list(active.shard.share_groups()):
            active.shares.forget_unknown_topics(share_group)
            await asyncio.sleep(0)

    async def _start_sessions(self, active: _Active) -> None:
        started = 0
        for group in list(active.shard.groups.values()):
            # Nobody joins or leaves before the shard is active.
            if isinstance(group, ConsumerGroup):
                for member in list(group.members.values()):
                    active.consumers.start_timer(group, member)
                    started += 1
                    if started % _STARTED_PER_SLICE == 0:
                        await asyncio.sleep(0)
            elif isinstance(group, ShareGroup):
                active.shares.start_timers(group)
                await asyncio.sleep(0)
            elif isinstance(group, ClassicGroup):
                for classic_member in list(group.members.values()):
                    classic_member.session.set(classic_member.session_timeout_ms)
                    started += 1
                    if started % _STARTED_PER_SLICE == 0:
                        await asyncio.sleep(0)

    async def _unknown_topics(self, active: _Active) -> set[str]:
        """Topics that offsets were committed for and that do not exist."""
        known = self._controller.image.topics
        unknown: set[str] = set()
        for position, group_id in enumerate(list(active.shard.groups)):
            names = active.shard.offsets.topic_names(group_id)
            unknown.update(name for name in names if name not in known)
            if position % _EXPIRED_PER_SLICE == _EXPIRED_PER_SLICE - 1:
                await asyncio.sleep(0)
        return unknown

    async def _delete_partitions(
        self, partition_index: int, active: _Active, topics: Collection[str]
    ) -> None:
        """Topics are gone: forget every group's offsets of them, some groups at a time."""
        if not topics:
            return
        group_ids = list(active.shard.groups)
        for start in range(0, len(group_ids), _EXPIRED_PER_SLICE):
            if self._active.get(partition_index) is not active:
                return
            active.offsets.delete_partitions(topics, group_ids[start : start + _EXPIRED_PER_SLICE])
            await asyncio.sleep(0)

    async def _on_image(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Topics are gone: so are the offsets that groups committed for them.

        With the offsets topic itself all groups are gone: what is kept of them here would be lost
        with the next start, and a topic made anew may even spread groups differently.
        """
        deleted_ids = old.topics_by_id.keys() - new.topics_by_id.keys()
        deleted = [old.topics_by_id[topic_id].name for topic_id in deleted_ids]
        if OFFSETS_TOPIC in deleted:
            for partition_index in [*self._active, *self._loading]:
                self.on_resigned(partition_index)
            self.unavailable.clear_all()
        has_new = not new.topics_by_id.keys() <= old.topics_by_id.keys()
        changed = frozenset(deleted).union(
            topic.name
            for topic_id, topic in new.topics_by_id.items()
            if (known := old.topics_by_id.get(topic_id)) is not topic
            and (known is None or len(known.partitions) != len(topic.partitions))
        )
        for election in self._loading.values():
            election.deleted.update(deleted)
        for partition_index, active in list(self._active.items()) if changed else ():
            active.consumers.topics_changed(changed, has_new=has_new)
            active.shares.topics_changed(changed, deleted_ids)
            await self._delete_partitions(partition_index, active, deleted)
            await asyncio.sleep(0)

    # -- who coordinates what --

    def partition_for(self, group_id: str) -> int:
        """The offsets partition of a group, whether the topic exists yet or not."""
        topic = self._controller.image.topics.get(OFFSETS_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        return partition_for_group(group_id, count or self._settings.offsets_topic_num_partitions)

    async def ensure_topic(self) -> None:
        """Create `__consumer_offsets` if it is not there.

        Raises:
            ApiError: It could not be created.
        """
        await self._controller.ensure_internal_topic(OFFSETS_TOPIC)

    def _find(self, group_id: str) -> _Active | ErrorCode:
        """The group's shard, or why it cannot be served here and now."""
        if not self._running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition_index = self.partition_for(group_id)
        active = self._active.get(partition_index)
        if active is not None:
            return active
        if partition_index in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

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
            ApiError: The request is refused, whatever the group is like.
        """
        if not self._running:
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
            ApiError: The request is refused, whatever the group is like.
        """
        if not self._running:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        check_share_heartbeat(request)
        shares = self.share_protocol(request.group_id)
        reply: Answer[ShareGroupHeartbeatResponse] = Answer()
        client = Client(context.client_id or "", f"/{context.connection.peer_host}")
        shares.heartbeat(request, client, reply)
        return reply.result()

    def share_protocol(self, group_id: str) -> ShareProtocol:
        """Who serves a share group.

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
            # While loading nobody's session runs: all is well, as far as one can say.
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

    def commit_offsets(
        self,
        request: OffsetCommitRequest,
        api_version: int,
        commits: Sequence[OffsetCommit],
        done: Done,
    ) -> None:
        """OffsetCommit; `done` gets what holds for all that have no error of their own."""
        active = self._find(request.group_id)
        if isinstance(active, ErrorCode):
            done(active)
        elif not can_be_recorded(request.group_id):
            done(ErrorCode.INVALID_GROUP_ID)
        else:
            active.offsets.commit(request, api_version, commits, done)

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

    def end_transaction(self, partition_index: int, producer_id: int, *, commit: bool) -> None:
        """A producer's marker is in an offsets partition: what its transaction holds is decided."""
        active = self._active.get(partition_index)
        if active is not None:
            active.transactional.end_transaction(producer_id, commit=commit)

    def is_loading_partition(self, partition_index: int) -> bool:
        """Whether a record appended now may be missed by the shard that is being read back."""
        return partition_index in self._loading

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
        share_group = active.shard.share_group(group_id)
        if share_group is None:
            active.offsets.delete_group(group_id, done)
            return

        def state_deleted(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                active.offsets.delete_group(group_id, done)
            else:
                done(code)

        active.shares.administration.delete_state(share_group, state_deleted)

    # -- to look at --

    @property
    def is_loading(self) -> bool:
        """Whether some group may be missing from what is seen because its shard still loads."""
        return bool(self._loading)

    @property
    def is_running(self) -> bool:
        """Whether requests are served."""
        return self._running

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
        """The assignor of groups whose members ask for none."""
        return self._settings.group_consumer_assignors[0]

    def find_group(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        """A group to read from; (NONE, None) when there is no such group."""
        active = self._find(group_id)
        if isinstance(active, ErrorCode):
            return active, None
        return ErrorCode.NONE, active.shard.groups.get(group_id)

    def groups(self) -> Iterator[Group]:
        """All groups that are coordinated here; not to be kept across turns of the loop."""
        for active in self._active.values():
            yield from active.shard.groups.values()

    def group_counts(self) -> dict[str, int]:
        """How many groups there are in each state, by the state's name."""
        counts: dict[str, int] = {}
        for group in self.groups():
            counts[group.state_name] = counts.get(group.state_name, 0) + 1
        return counts

    def snapshots(self) -> Iterator[GroupSnapshot]:
        """All groups in short, for metrics."""
        for active in self._active.values():
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
        for active in self._active.values():
            for group_id in active.shard.offsets.group_ids():
                for topic, partition, offset in active.shard.offsets.offsets(group_id):
                    yield CommittedOffset(group_id, topic, partition, offset)

    @property
    def committed_offset_count(self) -> int:
        """How many offsets are stored."""
        return sum(active.shard.offsets.count for active in self._active.values())

    # -- expiry --

    def _schedule_expiry(self) -> None:
        self._expiry_timer = self._timer.call_later_ms(
            self._settings.offsets_retention_check_interval_ms, self._start_expiry
        )

    def _start_expiry(self) -> None:
        if self._expiry is None or self._expiry.done():
            self._expiry = asyncio.get_running_loop().create_task(self.expire_offsets())
        self._schedule_expiry()

    async def expire_offsets(self) -> None:
        """Forget offsets and groups that are due, in slices."""
        looked_at = 0
        for partition_index in list(self._active):
            active = self._active.get(partition_index)
            for group_id in list(active.shard.groups) if active is not None else ():
                if self._active.get(partition_index) is not active or active is None:
                    break
                looked_at += 1 + active.offsets.expire(group_id)
                if looked_at >= _EXPIRED_PER_SLICE:
                    looked_at = 0
                    await asyncio.sleep(0)


def can_be_recorded(name: str) -> bool:
    """Whether a record has room for the name, whatever its characters, and for an id made of it.

    Flexible versions of the requests carry longer strings than the records do.
    """
    return len(name) <= _NAME_LENGTH_MAX
