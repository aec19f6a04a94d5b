"""A shard of the share coordinator: the states in one partition of `__share_group_state`.

    record            state of a share-partition
    snapshot      ──> replaced as a whole
    update        ──> changed: start offset, leader epoch, batches joined (`state_batches`)
    tombstone     ──> deleted

Every so many updates a snapshot is written, so that a load never reads far back; the topic is not
compacted, since an update has only the changes. Records below the oldest valid snapshot are
redundant: `redundant_below`. So are updates above it whose own snapshot lies below: a later one
follows, or a tombstone.

Source: Kafka, ShareCoordinatorShard.java, ShareCoordinatorOffsetsManager.java.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from broker.coordinator.outcome import Done
from broker.coordinator.persister import (
    NO_EPOCH,
    UNINITIALIZED_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionKey,
)
from broker.coordinator.shard_log import ApplyAt, ShardLog
from broker.coordinator.topics_change import TopicsChange
from broker.runtime.log_value import log_value
from broker.share.state.batches import combine
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal.share_state import (
    SNAPSHOT_KEY_VERSION,
    UPDATE_KEY_VERSION,
    ShareSnapshotValue,
    ShareStateKey,
    ShareUpdateValue,
    StateBatch,
    decode_share_snapshot,
    decode_share_state_key,
    decode_share_update,
    encode_share_snapshot,
    encode_share_state_key,
    encode_share_update,
)

logger = logging.getLogger(__name__)

SHARE_PARTITIONS_MAX = 100_000
"""Most states in one shard. With 50 partitions this is five million on a broker."""

RECORDS_PER_WRITE = 50
"""Records of upkeep that are written together before yielding to the event loop."""

Record = tuple[ShareStateKey, ShareSnapshotValue | ShareUpdateValue | None]
"""A record to be written; without a value it is a tombstone."""


class KeptState:
    """A share-partition's state: its snapshot with all updates applied."""

    __slots__ = (
        "batches",
        "create_timestamp_ms",
        "delivery_complete_count",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "updates",
        "write_timestamp_ms",
    )

    def __init__(self, snapshot: ShareSnapshotValue, offset: int) -> None:
        self.snapshot_epoch = snapshot.snapshot_epoch
        self.state_epoch = snapshot.state_epoch
        self.leader_epoch = snapshot.leader_epoch
        self.start_offset = snapshot.start_offset
        self.create_timestamp_ms = snapshot.create_timestamp_ms
        self.write_timestamp_ms = snapshot.write_timestamp_ms
        self.batches: tuple[StateBatch, ...] = snapshot.batches
        self.delivery_complete_count = snapshot.delivery_complete_count
        # Written since the snapshot, which is the record at `snapshot_offset`.
        self.updates = 0
        self.snapshot_offset = offset

    def update(self, update: ShareUpdateValue) -> None:
        """Apply an update."""
        if update.start_offset != UNINITIALIZED_OFFSET:
            self.start_offset = update.start_offset
        if update.leader_epoch != NO_EPOCH:
            self.leader_epoch = update.leader_epoch
        self.batches = combine(self.batches, update.batches, self.start_offset)
        self.delivery_complete_count = update.delivery_complete_count
        self.updates += 1


class ShareShard:
    """The states of one partition; changed by records only, written or loaded.

    Implements `broker.coordinator.shard.Shard`.
    """

    __slots__ = ("_without_snapshot", "log", "records_per_snapshot", "states")

    def __init__(self, log: ShardLog, *, records_per_snapshot: int) -> None:
        self.log = log
        self.records_per_snapshot = records_per_snapshot
        self.states: dict[SharePartitionKey, KeptState] = {}
        # Of which only updates have been read yet, with the first one's offset.
        self._without_snapshot: dict[SharePartitionKey, int] = {}

    # -- life ------------------------------------------------------------------------------------

    async def on_loaded(self) -> None:
        """See `Shard.on_loaded`; each record was applied when it was replayed.

        State of which no snapshot came is lost, and told of.
        """
        for key, offset in self._without_snapshot.items():
            logger.error(
                "state of a share-partition is lost: its updates have no snapshot partition=%s "
                "offset=%d group=%s topic_id=%s index=%d",
                self.log.topic_partition,
                offset,
                log_value(key.group_id),
                key.topic_id,
                key.partition,
            )
        self._without_snapshot.clear()

    async def on_active(self, deleted_topics: Mapping[UUID, str]) -> None:
        """Delete the states of topics that were deleted meanwhile."""
        await self._forget_topics(deleted_topics.keys())

    async def on_topics_changed(self, change: TopicsChange) -> None:
        """Delete the states of deleted topics."""
        await self._forget_topics(change.deleted.keys())

    def on_unloaded(self) -> None:
        """See `Shard.on_unloaded`."""
        self.log.close()

    def summary(self) -> str:
        """See `Shard.summary`."""
        return f"states={len(self.states)}" if self.states else ""

    async def _forget_topics(self, deleted: Collection[UUID]) -> None:
        if not deleted:
            return
        gone = [key for key in self.states if key.topic_id in deleted]
        for at in range(0, len(gone), RECORDS_PER_WRITE):
            self.write(
                [self.deletion(key) for key in gone[at : at + RECORDS_PER_WRITE]], _ignore_outcome
            )
            await asyncio.sleep(0)

    # -- records into states ---------------------------------------------------------------------

    def write(self, records: Sequence[Record], done: Done) -> None:
        """Append the records and apply them at once; `done(NONE)` when committed."""

        def apply(base_offset: int) -> None:
            for place, record in enumerate(records):
                self.apply(record, base_offset + place)

        self.log.append(
            [encode_record(record) for record in records], apply, done, apply_at=ApplyAt.APPEND
        )

    def replay(
        self, raw_key: bytes, raw_value: bytes | None, offset: int, _producer_id: int
    ) -> None:
        """Apply a record of the log.

        An update whose snapshot is missing is passed over: after a prune that is below the log
        start, and there is a later one, which `on_loaded` checks.

        Raises:
            DecodeError: It is damaged, or of a newer release.
        """
        key = decode_share_state_key(raw_key)
        if key is None:
            raise DecodeError("record of an unknown kind")
        value: ShareSnapshotValue | ShareUpdateValue | None = None
        if raw_value is not None:
            decode = (
                decode_share_snapshot
                if key.version == SNAPSHOT_KEY_VERSION
                else decode_share_update
            )
            value = decode(raw_value)
        whose = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        if isinstance(value, ShareUpdateValue):
            if whose not in self.states:
                self._without_snapshot.setdefault(whose, offset)
                return
        elif key.version == SNAPSHOT_KEY_VERSION:
            self._without_snapshot.pop(whose, None)
        self.apply((key, value), offset)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """Do nothing: no record is transactional."""

    def apply(self, record: Record, offset: int) -> None:
        """Apply a record at `offset` of the log."""
        key, value = record
        whose = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        if value is None:
            if key.version == SNAPSHOT_KEY_VERSION:
                self.states.pop(whose, None)
        elif isinstance(value, ShareSnapshotValue):
            before = self.states.get(whose)
            state = self.states[whose] = KeptState(value, offset)
            if before is not None and before.leader_epoch > state.leader_epoch:
                # An initialisation does not change the leader epoch, nor its fencing.
                state.leader_epoch = before.leader_epoch
        else:
            self.states[whose].update(value)

    def redundant_below(self, end_offset: int) -> int:
        """The offset below which all records are redundant; `end_offset` if all are."""
        return min((state.snapshot_offset for state in self.states.values()), default=end_offset)

    # -- changes into records --------------------------------------------------------------------

    def initialization(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> Record:
        """The record of an initialisation."""
        known = self.states.get(key)
        return _snapshot_key(key), ShareSnapshotValue(
            0 if known is None else known.snapshot_epoch + 1,
            state_epoch,
            0,
            start_offset,
            now_ms,
            now_ms,
            (),
            UNKNOWN_COUNT,
        )

    def change(
        self,
        key: SharePartitionKey,
        *,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now_ms: int,
        leader_epoch: int = NO_EPOCH,
    ) -> Record:
        """The record of a change: an update, or a snapshot when one is due.

        `leader_epoch` is given by a new leader, else the current one stays.
        """
        known = self.states[key]
        if leader_epoch == NO_EPOCH:
            leader_epoch = known.leader_epoch
        if known.updates >= self.records_per_snapshot:
            start = known.start_offset if start_offset == UNINITIALIZED_OFFSET else start_offset
            return _snapshot_key(key), ShareSnapshotValue(
                known.snapshot_epoch + 1,
                known.state_epoch,
                leader_epoch,
                start,
                now_ms,
                now_ms,
                combine(known.batches, batches, start),
                delivery_complete_count,
            )
        return ShareStateKey(UPDATE_KEY_VERSION, *key), ShareUpdateValue(
            known.snapshot_epoch,
            leader_epoch,
            start_offset,
            combine((), batches, start_offset),
            delivery_complete_count,
        )

    def refreshed(self, key: SharePartitionKey, now_ms: int) -> Record:
        """A snapshot of an unchanged state, so that earlier records become redundant."""
        known = self.states[key]
        return _snapshot_key(key), ShareSnapshotValue(
            known.snapshot_epoch + 1,
            known.state_epoch,
            known.leader_epoch,
            known.start_offset,
            known.create_timestamp_ms,
            now_ms,
            known.batches,
            known.delivery_complete_count,
        )

    @staticmethod
    def deletion(key: SharePartitionKey) -> Record:
        """The record of a deletion."""
        return _snapshot_key(key), None


def _ignore_outcome(_code: ErrorCode) -> None:
    return


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value as they are written."""
    key, value = record
    if value is None:
        return encode_share_state_key(key), None
    if isinstance(value, ShareSnapshotValue):
        return encode_share_state_key(key), encode_share_snapshot(value)
    return encode_share_state_key(key), encode_share_update(value)


def _snapshot_key(key: SharePartitionKey) -> ShareStateKey:
    return ShareStateKey(SNAPSHOT_KEY_VERSION, *key)
