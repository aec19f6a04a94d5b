"""A transactional producer and a read_committed reader that speak Kafka's protocol themselves.

The libraries know only the old protocol of transactions; here is the new one, too:

    version 1  AddPartitionsToTxn v3, Produce v11, TxnOffsetCommit v4, EndTxn v4: one epoch for all
    version 2  Produce v12, TxnOffsetCommit v5, EndTxn v5: partitions are added by the way, and
               each end of a transaction brings the next epoch (KIP-890)

A call that gets no answer in time gives up its connection and, where it is tried again, does so on
a new one: a late request may then arrive behind later ones. Coordinator and leader have a
connection each, as they would have on two brokers.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, parse_end_transaction_marker
from protocol.records.record import iterate_records
from tests.checker.clients.routes import GROUP, TRANSACTION, Address, Routes

Partition = tuple[str, int]
"""Topic and index."""

RETRIABLE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        # What an old producer is told while its transaction cannot be verified.
        ErrorCode.NOT_ENOUGH_REPLICAS,
        # It is there and may stay: another try is a duplicate, which is answered with its offset.
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)

READ_COMMITTED: Final = 1
LATEST: Final = -1
EARLIEST_LOCAL: Final = -4
"""Timestamps of ListOffsets; the second asks for what is on the leader's own disk (KIP-405)."""

RECORDS_MAX: Final = 64 << 20


class RefusedError(Exception):
    """The broker answered with an error that another try would not mend."""

    def __init__(self, code: int, api: ApiKey) -> None:
        super().__init__(f"{api.name}: {ErrorCode(code).name}")
        self.code = ErrorCode(code)


class GaveUpError(Exception):
    """No answer, or none but retriable errors, for as long as the caller wanted to wait."""


class RetryPolicy(NamedTuple):
    """How long a client waits, for an answer and in all."""

    answer_s: float = 5.0
    total_s: float = 30.0
    pause_s: float = 0.01


class Caller:
    """Calls that are repeated until there is an answer that says something."""

    def __init__(self, address: Address, client_id: str, policy: RetryPolicy) -> None:
        self.policy = policy
        self._routes = Routes(address, client_id, policy.answer_s)

    def close(self) -> None:
        """Leave."""
        self._routes.close()

    @property
    def is_routed(self) -> bool:
        """Whether there are several brokers, so that a request has to name partitions of one."""
        return self._routes.is_needed

    async def until_answered(
        self, request: Any, api: ApiKey, version: int, *, tries_max: int | None = None
    ) -> Any:
        """Repeat through lost connections, time-outs and retriable errors.

        Raises:
            RefusedError: Any other error.
            GaveUpError: Nothing else in `total_s`, or in so many tries.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.policy.total_s
        tries = 0
        while True:
            try:
                connection = await self._routes.connection_for(request, api)
                answer = await connection.call(request, api, version, self.policy.answer_s)
            except (OSError, TimeoutError):
                self._routes.forget(request, api)
                tries += 1
                if tries_max is not None and tries >= tries_max:
                    raise GaveUpError(api.name) from None
            else:
                code = _error_of(answer)
                if code == ErrorCode.NONE:
                    return answer
                if code not in RETRIABLE:
                    raise RefusedError(code, api)
                self._routes.forget(request, api)
            if loop.time() > deadline:
                raise GaveUpError(api.name)
            await asyncio.sleep(self.policy.pause_s * random.uniform(0.5, 1.5))


def _error_of(answer: Any) -> int:
    """The first error anywhere in an answer."""
    code: int = getattr(answer, "error_code", 0)
    if code:
        return code
    for name in (
        "coordinators",
        "responses",
        "topics",
        "groups",
        "results_by_topic_v3_and_below",
        "results_by_partition",
        "partition_responses",
        "partitions",
    ):
        for item in getattr(answer, name, None) or ():
            code = _error_of(item) or getattr(item, "partition_error_code", 0)
            if code:
                return code
    return 0


async def find_coordinator(caller: Caller, key: str, kind: int) -> None:
    """Ask until there is one: the first to ask makes the internal topic."""
    await caller.until_answered(
        FindCoordinatorRequest(coordinator_keys=[key], key_type=kind), ApiKey.FIND_COORDINATOR, 4
    )


class TransactionalProducer:
    """See the module.

    What a failure means is the caller's to decide; only calls without an answer are repeated.
    """

    def __init__(
        self,
        address: Address,
        transactional_id: str,
        *,
        version: int,
        policy: RetryPolicy,
        timeout_ms: int = 10_000,
    ) -> None:
        self.transactional_id = transactional_id
        self.version = version
        self.timeout_ms = timeout_ms
        self.coordinator = Caller(address, transactional_id, policy)
        self.leader = Caller(address, transactional_id, policy)
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[Partition, int] = {}
        self._added: set[Partition] = set()

    def close(self) -> None:
        """Leave without a word."""
        self.coordinator.close()
        self.leader.close()

    async def init(self) -> None:
        """Get a producer id or the next epoch; aborts what is open under the transactional id."""
        await find_coordinator(self.coordinator, self.transactional_id, TRANSACTION)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms
        )
        answer = await self.coordinator.until_answered(request, ApiKey.INIT_PRODUCER_ID, 4)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        self._added.clear()

    async def add_partitions(
        self, partitions: Sequence[Partition], *, tries_max: int | None = None
    ) -> None:
        """Version 1 says which partitions come; version 2 has no need to."""
        new = [one for one in partitions if one not in self._added]
        if self.version >= 2 or not new:
            return
        topics: dict[str, list[int]] = {}
        for topic, index in new:
            topics.setdefault(topic, []).append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in topics.items()
            ],
        )
        await self.coordinator.until_answered(
            request, ApiKey.ADD_PARTITIONS_TO_TXN, 3, tries_max=tries_max
        )
        self._added.update(new)

    async def produce(
        self, values: Mapping[Partition, Sequence[str]], *, tries_max: int | None = None
    ) -> dict[Partition, int]:
        """Send one batch to each partition; returns base offsets.

        A batch's sequence numbers are used up however it ends, as those of a batch in flight are.
        """
        if self.leader.is_routed and len(values) > 1:
            found: dict[Partition, int] = {}
            for partition, sent in values.items():
                found |= await self.produce({partition: sent}, tries_max=tries_max)
            return found
        topics: dict[str, list[PartitionProduceData]] = {}
        now_ms = int(time.time() * 1000)  # retention looks at it
        for (topic, index), sent in values.items():
            sequence = self._sequences.get((topic, index), 0)
            self._sequences[topic, index] = sequence + len(sent)
            batch = build_batch(
                [(None, value.encode(), (), now_ms) for value in sent],
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=sequence,
                transactional=True,
            )
            topics.setdefault(topic, []).append(PartitionProduceData(index=index, records=batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(name=name, partition_data=data) for name, data in topics.items()
            ],
        )
        answer = await self.leader.until_answered(
            request, ApiKey.PRODUCE, 12 if self.version >= 2 else 11, tries_max=tries_max
        )
        return {
            (topic.name, partition.index): partition.base_offset
            for topic in answer.responses
            for partition in topic.partition_responses
        }

    async def commit_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Make a group's offsets part of the transaction."""
        if self.version < 2:
            adding = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            await self.coordinator.until_answered(adding, ApiKey.ADD_OFFSETS_TO_TXN, 3)
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        version = 5 if self.version >= 2 else 4
        await self.coordinator.until_answered(request, ApiKey.TXN_OFFSET_COMMIT, version)

    async def end(self, *, commit: bool) -> None:
        """Commit or abort; repeated until there is an answer."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        version = 5 if self.version >= 2 else 4
        answer = await self.coordinator.until_answered(request, ApiKey.END_TXN, version)
        self._added.clear()
        if self.version >= 2:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()


class Fetched(NamedTuple):
    """What a reader gets of one partition."""

    records: list[tuple[int, str]]
    next_offset: int
    last_stable_offset: int
    high_watermark: int


class CommittedReader:
    """Reads partitions as a read_committed consumer does, without a group."""

    def __init__(self, address: Address, policy: RetryPolicy, name: str = "reader") -> None:
        self._caller = Caller(address, name, policy)

    def close(self) -> None:
        """Leave."""
        self._caller.close()

    async def fetch(
        self, partition: Partition, offset: int, *, max_wait_ms: int = 100, max_bytes: int = 1 << 20
    ) -> Fetched:
        """What is committed from `offset` on, at least one batch if there is any."""
        topic, index = partition
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=READ_COMMITTED,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        answer = await self._caller.until_answered(request, ApiKey.FETCH, 12)
        found = answer.responses[0].partitions[0]
        records, next_offset = committed_records(
            memoryview(found.records or b""),
            [(a.producer_id, a.first_offset) for a in found.aborted_transactions or ()],
            offset,
        )
        return Fetched(records, next_offset, found.last_stable_offset, found.high_watermark)

    async def end_offset(self, partition: Partition, *, committed: bool) -> int:
        """The last stable offset, or the high watermark."""
        return await self._offset(partition, LATEST, READ_COMMITTED if committed else 0)

    async def local_start(self, partition: Partition) -> int:
        """The first offset that its leader has on its own disk; those before are remote."""
        return await self._offset(partition, EARLIEST_LOCAL, READ_COMMITTED)

    async def _offset(self, partition: Partition, timestamp: int, isolation_level: int) -> int:
        topic, index = partition
        wanted = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        request = ListOffsetsRequest(
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        )
        answer = await self._caller.until_answered(request, ApiKey.LIST_OFFSETS, 8)
        offset: int = answer.topics[0].partitions[0].offset
        return offset

    async def commit_as_member(
        self, group: str, partition: Partition, offset: int, *, member_id: str, generation: int
    ) -> None:
        """Commit as a member of a generation would."""
        topic, index = partition
        wanted = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[wanted])],
        )
        await self._caller.until_answered(request, ApiKey.OFFSET_COMMIT, 8, tries_max=1)

    async def committed(self, group: str, topic: str, count: int) -> dict[int, int]:
        """A group's offsets, after what is pending has ended."""
        wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(count)))
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])], require_stable=True
        )
        await find_coordinator(self._caller, group, GROUP)
        answer = await self._caller.until_answered(request, ApiKey.OFFSET_FETCH, 8)
        partitions = answer.groups[0].topics[0].partitions
        return {one.partition_index: one.committed_offset for one in partitions}


def committed_records(
    data: memoryview, aborted: Sequence[tuple[int, int]], start: int
) -> tuple[list[tuple[int, str]], int]:
    """What a consumer keeps of a Fetch answer, and where it goes on.

    Args:
        data: The batches.
        aborted: Producer id and first offset of the aborted transactions that reach into them.
        start: The offset asked for; batches may begin before it.
    """
    waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
    dropped: set[int] = set()
    found: list[tuple[int, str]] = []
    next_offset = start
    for position, header in iterate_batches(data, allow_partial=True):
        next_offset = max(next_offset, header.next_offset)
        while waiting and waiting[-1][1] <= header.last_offset:
            dropped.add(waiting.pop()[0])
        batch = data[position : position + header.size]
        if header.is_control:
            marker = parse_end_transaction_marker(batch)
            if marker is not None and marker.control_type == ControlType.ABORT:
                dropped.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in dropped:
            continue
        found += [
            (record.offset, (record.value or b"").decode())
            for record in iterate_records(batch, max_size=RECORDS_MAX)
            if record.offset >= start
        ]
    return found, next_offset
