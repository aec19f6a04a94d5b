"""Offsets that are committed as part of a transaction (TxnOffsetCommit, KIP-98, KIP-447).

    TxnOffsetCommit ──> transactional batch in the offsets log ──> pending ──┬─ commit ──> stored
                                                                             └─ abort ───> gone

Offsets wait in memory from the moment their batch is in the log until the marker is committed:
OffsetFetch with `require_stable` refuses to answer for their partitions meanwhile. A marker that is
only in this log could be lost with it, and the offsets that it stored would go back. The batch
belongs to the producer, so the log's last stable offset waits as well, and a marker that has
overtaken the commit refuses it.

Source: Kafka, OffsetMetadataManager.java (commitTransactionalOffset, replay, endTransaction).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

from broker.coordinator.outcome import OUTCOME_UNKNOWN, Done, code_for_clients
from broker.groups.classic.classic_group import create_classic_group
from broker.groups.state.group_shard import GroupShard, TooManyGroupsError
from broker.groups.state.offset_store import (
    GroupTopicPartition,
    OffsetAndMetadata,
    is_metadata_too_large,
)
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_offsets import (
    NO_TIMESTAMP,
    OffsetCommitValue,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponsePartition,
)
from protocol.records.builder import build_batch
from storage.environment.clock import Clock
from storage.producers.verification import TransactionTerms, VerificationGuard
from storage.types.topic_partition import TopicPartition


class TransactionalOffsetCommit(NamedTuple):
    """One partition of a TxnOffsetCommit, and its part of the response."""

    topic: str
    topic_id: UUID
    request: TxnOffsetCommitRequestPartition
    response: TxnOffsetCommitResponsePartition


class TransactionalAppender(Protocol):
    """The replica manager's interface for transactional offsets."""

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
        *,
        terms: TransactionTerms | None = None,
    ) -> int:
        """Append a batch; return its base offset, or -1 if nothing was written.

        `on_committed` is called once, as `append_internal` does, perhaps before this returns.
        """
        ...


class TransactionalOffsets:
    """Offsets of one shard that wait for the end of a transaction."""

    __slots__ = ("_appender", "_clock", "_codec", "_metadata_size_max", "_shard")

    def __init__(
        self,
        shard: GroupShard,
        appender: TransactionalAppender,
        *,
        settings: BrokerConfig,
        clock: Clock,
    ) -> None:
        self._shard = shard
        self._appender = appender
        self._clock = clock
        self._codec = settings.offsets_topic_compression_codec
        self._metadata_size_max = settings.offset_metadata_max_bytes

    def commit(
        self,
        request: TxnOffsetCommitRequest,
        api_version: int,
        commits: Sequence[TransactionalOffsetCommit],
        done: Done,
        *,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Write offsets that wait for the producer's marker; `done` once they are committed.

        Partitions refused on their own account have their error set in `commits`.

        Args:
            request: With the producer, and its consumer.
            api_version: Of the request.
            commits: The offsets, of partitions that exist.
            done: Gets the error code of all partitions without an error of their own.
            guard: From the verification of this transaction (KIP-890).
        """
        code = self._validate(request, api_version)
        if code is not ErrorCode.NONE:
            done(code)
            return
        group_id = request.group_id
        now_ms = self._clock.now_ms()
        values: list[tuple[GroupTopicPartition, OffsetCommitValue]] = []
        for commit in commits:
            partition = commit.request
            metadata = partition.committed_metadata or ""
            if is_metadata_too_large(metadata, self._metadata_size_max):
                commit.response.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            values.append(
                (
                    GroupTopicPartition(group_id, commit.topic, partition.partition_index),
                    OffsetCommitValue(
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        metadata,
                        now_ms,
                        NO_TIMESTAMP,
                        commit.topic_id,
                    ),
                )
            )
        if not values:
            done(ErrorCode.NONE)
            return
        batch = build_batch(
            [
                (encode_offset_commit_key(*key), encode_offset_commit_value(value), (), now_ms)
                for key, value in values
            ],
            codec=self._codec,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            transactional=True,
        )

        # A batch has one producer: it shares none, and comes behind what was committed before it.
        self._shard.log.flush()
        base_offset = self._appender.append_coordinated(
            self._shard.log.topic_partition,
            batch,
            partial(self._written, done),
            terms=None if guard is None else TransactionTerms(guard),
        )
        if base_offset < 0:
            return
        self._shard.stats.offset_commits += len(values)
        for position, (key, value) in enumerate(values):
            self._shard.offsets.put_pending(
                request.producer_id, key, OffsetAndMetadata(value, base_offset + position)
            )

    def _written(self, done: Done, code: ErrorCode, _offset: int) -> None:
        """The batch of a commit is committed, or was refused, or its outcome is unknown."""
        if code in OUTCOME_UNKNOWN:
            # What waits in memory may be in no log; then its marker ends the wait of those
            # alone whose offsets the log has given out again.
            self._shard.log.fail(code)
        done(code_for_clients(code))

    def _validate(self, request: TxnOffsetCommitRequest, api_version: int) -> ErrorCode:
        group = self._shard.groups.get(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                return ErrorCode.ILLEGAL_GENERATION
            # A producer without consumer metadata, or one that assigns partitions itself.
            try:
                group = create_classic_group(self._shard, request.group_id)
            except TooManyGroupsError:
                return ErrorCode.GROUP_MAX_SIZE_REACHED
        code = group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            transactional=True,
            api_version=api_version,
        )
        # A transactional client sends generations only.
        return ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.STALE_MEMBER_EPOCH else code

    def end_transaction(
        self, producer_id: int, *, commit: bool, before_record: int | None = None
    ) -> None:
        """Store or drop a producer's pending offsets: its marker is committed in the log.

        See `OffsetStore.end_transaction`.
        """
        self._shard.offsets.end_transaction(producer_id, commit=commit, before_record=before_record)
