"""Writes of a member of a cluster into `__remote_log_metadata`: each batch once, under any leader.

    append ──one at a time per partition──> batch with a producer id and a sequence
      ──> this broker, or the leader by Produce with acks=all ──committed──> offset
             └──no leader, another one, no answer──> the same batch again, after a while

A leader change in the middle leaves it open whether the old leader's append has survived. The new
leader's log says so: it has the producer's sequence or not, and a batch that is there already is
not appended again (KIP-98). What is given up in the end may still appear; that producer id is not
used any more.

No attempt is made without a lease that is valid by the clock, and a leader takes none of a broker
that its image shows fenced or without one: what a leadership meant to say must not be said after
it, when the broker is back and another leads.

Source: Kafka, ProducerManager.java (remote/metadata/storage), whose producer is idempotent too.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker.controller.store.metadata_store import StoreError
from broker.remote.metadata_leaders import NO_LEADER, MetadataLeaders
from broker.remote.metadata_topic import REMOTE_LOG_METADATA
from broker.runtime.errors import ApiError, code_of
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from storage.errors import DiskError, StorageError
from storage.types.append_origin import AppendOrigin
from tiered.deadline import sleep_ms
from tiered.errors import RemoteStorageError

if TYPE_CHECKING:
    from broker.controller.producer_ids import ProducerIds
    from broker.replicas.replica_manager import ReplicaManager
    from storage.environment.environment import Environment

GIVE_UP_MS: Final = 25_000.0
"""Over all attempts of one batch: its caller waits a little longer (`METADATA_DEADLINE_MS`)."""

COMMIT_TIMEOUT_MS: Final = 10_000.0
BACK_OFF_FIRST_MS: Final = 20.0
BACK_OFF_MAX_MS: Final = 500.0

NO_PRODUCER_ID: Final = -1

_AGAIN: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        # The leader's image does not have this broker's registration yet.
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)


class _Lane:
    """The writes of one metadata partition: one after the other."""

    __slots__ = ("lock", "producer_id", "sequence")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.producer_id = NO_PRODUCER_ID
        self.sequence = 0


class MetadataWriter:
    """See the module. On the loop's thread."""

    def __init__(
        self,
        replicas: "ReplicaManager",
        leaders: MetadataLeaders,
        producer_ids: "ProducerIds",
        *,
        node_id: int,
        environment: "Environment",
    ) -> None:
        """`replicas`: what is led here; `producer_ids`: of this broker; `node_id`: its id."""
        self._replicas = replicas
        self._leaders = leaders
        self._producer_ids = producer_ids
        self._node_id = node_id
        self._clock = environment.clock
        self._timer = environment.timer
        self._lanes: dict[int, _Lane] = {}

    async def append(self, partition: int, values: Sequence[bytes]) -> int:
        """Write records without keys, all or none; returns the first one's offset.

        Raises:
            RemoteStorageError: It was refused, or the outcome is unknown: it may still appear.
        """
        lane = self._lanes.setdefault(partition, _Lane())
        async with lane.lock:
            if lane.producer_id == NO_PRODUCER_ID:
                lane.producer_id, lane.sequence = await self._next_id(), 0
            now_ms = self._clock.now_ms()
            batch = build_batch(
                [(None, value, (), now_ms) for value in values],
                producer_id=lane.producer_id,
                producer_epoch=0,
                base_sequence=lane.sequence,
            )
            is_written = False
            try:
                offset = await self._until_written(partition, bytes(batch))
                is_written = True
            finally:
                if is_written:
                    lane.sequence += len(values)
                else:
                    lane.producer_id = NO_PRODUCER_ID
            return offset

    async def _next_id(self) -> int:
        try:
            return await self._producer_ids.next()
        except (ApiError, StoreError) as error:
            raise RemoteStorageError(f"{REMOTE_LOG_METADATA}: no producer id: {error}") from error

    async def _until_written(self, partition: int, batch: bytes) -> int:
        give_up_ms = self._clock.monotonic_ms() + GIVE_UP_MS
        delay_ms = BACK_OFF_FIRST_MS
        while True:
            if self._clock.monotonic_ms() > self._replicas.terms.validity.until_ms:
                raise RemoteStorageError(
                    f"{REMOTE_LOG_METADATA}-{partition}: this broker has no valid lease"
                )
            leader = self._leaders.of(partition)
            if leader.node_id == self._node_id:
                code, offset = await self._here(partition, batch)
            elif leader.node_id == NO_LEADER:
                code, offset = ErrorCode.LEADER_NOT_AVAILABLE, -1
            else:
                code, offset = await self._leaders.produce(partition, leader, bytearray(batch))
            if code is ErrorCode.NONE:
                return offset
            if code not in _AGAIN or self._clock.monotonic_ms() + delay_ms >= give_up_ms:
                raise RemoteStorageError(f"{REMOTE_LOG_METADATA}-{partition}: {code.name}")
            await sleep_ms(self._timer, delay_ms)
            delay_ms = min(2 * delay_ms, BACK_OFF_MAX_MS)

    async def _here(self, partition: int, batch: bytes) -> tuple[ErrorCode, int]:
        found = self._replicas.leader_of(REMOTE_LOG_METADATA, partition)
        if found is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        try:
            info = found.append(
                memoryview(bytearray(batch)),
                self._clock.now_ms(),
                AppendOrigin.CLIENT,
                acks_all=True,
            )
        except (StorageError, ApiError) as error:
            if isinstance(error, DiskError):
                self._replicas.disk_failed(found, error)
            return code_of(error), -1
        outcome: asyncio.Future[tuple[ErrorCode, int]]
        outcome = asyncio.get_running_loop().create_future()

        def committed(code: ErrorCode, offset: int) -> None:
            if not outcome.done():
                outcome.set_result((code, offset))

        self._replicas.when_committed(
            found, info.first_offset, info.last_offset + 1, committed, COMMIT_TIMEOUT_MS
        )
        return await outcome
