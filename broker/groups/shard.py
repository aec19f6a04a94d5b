"""A shard of the group coordinator: the groups and offsets in one partition of the topic.

    replay ──> newest records ──on_loaded──> groups, offsets, sessions ──on_active──> served
                                                                    offsets of deleted topics go

Source: Kafka, GroupCoordinatorShard.java.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final
from uuid import UUID

from broker.coordinator.latest_records import LatestRecords
from broker.coordinator.shard_log import ShardLog
from broker.coordinator.slices import Slices
from broker.coordinator.topics_change import TopicsChange
from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.protocol import ClassicProtocol
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.protocol import ConsumerProtocol
from broker.groups.offsets.offset_manager import OffsetManager
from broker.groups.offsets.transactional import TransactionalOffsets
from broker.groups.replay import OFFSET_KEYS_BELOW, fill_shard
from broker.groups.share.protocol import ShareProtocol
from broker.groups.share.share_group import ShareGroup
from broker.groups.state.group_shard import GroupShard
from storage.environment.clock import Clock

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage

GROUPS_PER_SLICE: Final = 500
"""Groups searched for offsets of deleted topics before yielding to the event loop."""

_WORK_PER_GROUP: Final = 25
"""Units of work (`Slices`) of visiting a whole group."""


class GroupCoordinatorShard:
    """State, and the protocols that work on it. Implements `broker.coordinator.shard.Shard`.

    Attributes:
        log: Of the shard.
        shard: Groups and offsets.
        protocol: Of classic groups.
        offsets: Commits and fetches offsets.
        transactional: Commits offsets as part of transactions.
        consumers: Protocol of consumer groups.
        shares: Protocol of share groups.
    """

    __slots__ = (
        "_clock",
        "_image",
        "_read",
        "consumers",
        "log",
        "offsets",
        "protocol",
        "shard",
        "shares",
        "transactional",
    )

    def __init__(
        self,
        shard: GroupShard,
        protocol: ClassicProtocol,
        offsets: OffsetManager,
        transactional: TransactionalOffsets,
        consumers: ConsumerProtocol,
        shares: ShareProtocol,
        *,
        clock: Clock,
        image: Callable[[], "ClusterImage"],
    ) -> None:
        self.log: ShardLog = shard.log
        self.shard = shard
        self.protocol = protocol
        self.offsets = offsets
        self.transactional = transactional
        self.consumers = consumers
        self.shares = shares
        self._clock = clock
        self._image = image
        self._read = LatestRecords(transactional_below=OFFSET_KEYS_BELOW)

    # -- loading ---------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """See `Shard.replay`."""
        self._read.replay(key, value, offset, producer_id)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """See `Shard.replay_marker`."""
        self._read.replay_marker(producer_id, commit=commit)

    async def on_loaded(self) -> None:
        """Decode groups and offsets, and start the members' sessions."""
        slices = Slices(self._clock)
        read, self._read = self._read, LatestRecords()
        await fill_shard(self.shard, self.protocol, read, slices)
        await self._start_sessions(slices)

    async def _start_sessions(self, slices: Slices) -> None:
        # No member joins or leaves before the shard is active.
        for group in list(self.shard.groups.values()):
            if isinstance(group, ConsumerGroup):
                for member in list(group.members.values()):
                    self.consumers.sessions.start(group, member)
                    if slices.is_due():
                        await slices.pause()
            elif isinstance(group, ShareGroup):
                self.shares.start_timers(group)
                if slices.is_due(_WORK_PER_GROUP):
                    await slices.pause()
            elif isinstance(group, ClassicGroup):
                for classic_member in list(group.members.values()):
                    classic_member.session.set(classic_member.session_timeout_ms)
                    if slices.is_due():
                        await slices.pause()

    def summary(self) -> str:
        """See `Shard.summary`."""
        if not self.shard.groups:
            return ""
        return f"groups={len(self.shard.groups)} offsets={self.shard.offsets.count}"

    # -- serving ---------------------------------------------------------------------------------

    async def on_active(self, deleted_topics: Mapping[UUID, str]) -> None:
        """Delete offsets of deleted topics; see `Shard.on_active`."""
        for group in list(self.shard.groups_of(ClassicGroup)):
            self.protocol.prepare_over_capacity(group)
        await self._delete_partitions(set(deleted_topics.values()))
        slices = Slices(self._clock)
        for share_group in list(self.shard.groups_of(ShareGroup)):
            if self.log.is_closed:
                return
            self.shares.forget_topics(share_group, deleted_topics.keys())
            if slices.is_due(_WORK_PER_GROUP):
                await slices.pause()

    async def on_topics_changed(self, change: TopicsChange) -> None:
        """Delete the offsets that groups committed for deleted topics."""
        if not change.changed:
            return
        self.consumers.topics_changed(change.changed, has_new=change.has_new)
        self.shares.topics_changed(change.changed, change.deleted.keys())
        await self._delete_partitions(change.deleted.values())
        await asyncio.sleep(0)

    async def _delete_partitions(self, topics: Collection[str]) -> None:
        """Delete every group's offsets of deleted topics, in slices."""
        if not topics:
            return
        group_ids = list(self.shard.groups)
        for start in range(0, len(group_ids), GROUPS_PER_SLICE):
            if self.log.is_closed:
                return
            known = self._image().topics
            self.offsets.delete_partitions(
                topics,
                group_ids[start : start + GROUPS_PER_SLICE],
                again={name: known[name].topic_id for name in topics if name in known},
            )
            await asyncio.sleep(0)

    def on_unloaded(self) -> None:
        """Answer all waiting requests with NOT_COORDINATOR, and close the log."""
        self.log.close()
        self.protocol.close()
        self.consumers.close()
        self.shares.close()
