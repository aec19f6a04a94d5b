"""A raw client of a cluster: it finds leaders and coordinators, and tries again as clients do.

    client = ClusterClient(cluster)
    producer = await client.producer("tx")              a transactional one, transaction version 2
    await producer.send("t", 0, b"a")                   to the partition's leader
    await producer.commit_offsets("g", "t", {0: 1})     to the group's coordinator
    await producer.end(commit=True)                     at the transaction's coordinator
    await client.committed("g", "t")                    the newest stable offset
    await client.read_committed("t", 0)                 what a read_committed consumer sees

What is retried is what Kafka's clients retry: connections that end, and errors that say so. A
request whose answer was lost is sent again; with sequences or epochs it does no harm.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from protocol.error_codes import ErrorCode as E
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
from protocol.records.record import iterate_records
from tests.fakes.network.client import Client, RefusedError

if TYPE_CHECKING:
    from tests.harness.brokers import ClusterHarness

GROUP: Final = 0
TRANSACTION: Final = 1

WITHIN_S: Final = 60.0
AGAIN_S: Final = 0.02

RETRIABLE: Final = frozenset(
    {
        E.NOT_LEADER_OR_FOLLOWER,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_LEADER_EPOCH,
        E.NOT_COORDINATOR,
        E.COORDINATOR_NOT_AVAILABLE,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.CONCURRENT_TRANSACTIONS,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.LEADER_NOT_AVAILABLE,
        E.OFFSET_NOT_AVAILABLE,
        E.UNSTABLE_OFFSET_COMMIT,
        E.NETWORK_EXCEPTION,
        E.KAFKA_STORAGE_ERROR,
        E.BROKER_NOT_AVAILABLE,
    }
)


def check(code: int) -> None:
    """Raise what is not NONE."""
    if code:
        raise RefusedError(E(code), None)


class ClusterClient:
    """See the module.

    Attributes:
        retries: Errors that were met and retried, in order.
    """

    def __init__(self, cluster: "ClusterHarness") -> None:
        self._cluster = cluster
        self._clients: dict[tuple[int, int], Client] = {}
        self.retries: list[str] = []

    # -- whom to ask -----------------------------------------------------------------------------

    async def at(self, node_id: int) -> Client:
        """A connection to the broker that runs there now."""
        node = self._cluster.nodes[node_id]
        if not node.is_running:
            raise ConnectionError(f"broker {node_id} does not run")
        key = (node_id, id(node.broker))
        if key not in self._clients:
            self._clients[key] = await self._cluster.client(node_id)
        return self._clients[key]

    async def any(self) -> Client:
        """A connection to some broker: another one after something had to be retried."""
        running = self._cluster.running
        return await self.at(running[len(self.retries) % len(running)].settings.node_id)

    async def coordinator(self, kind: int, key: str) -> int:
        """Node id of a coordinator, as FindCoordinator names it now."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        (found,) = (await (await self.any()).call(request)).coordinators
        check(found.error_code)
        node_id: int = found.node_id
        return node_id

    async def leader(self, topic: str, partition: int) -> int:
        """Node id of a leader, as Metadata names it now."""
        return (await self.led(topic, partition))[0]

    async def led(self, topic: str, partition: int) -> tuple[int, int]:
        """Node id and epoch of a leader, as Metadata names them now."""
        found = (await (await self.any()).metadata(topic)).topics[0]
        check(found.error_code)
        (one,) = [p for p in found.partitions if p.partition_index == partition]
        check(one.error_code)
        return one.leader_id, one.leader_epoch

    async def retry(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        """What the attempt returns, once it meets nothing that is to be retried."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                try:
                    return await attempt()
                except RefusedError as error:
                    if error.code not in RETRIABLE:
                        raise
                    self.retries.append(error.code.name)
                except (ConnectionError, OSError, TimeoutError) as error:
                    self.retries.append(type(error).__name__)
                    self._drop_closed()
                await asyncio.sleep(AGAIN_S)

    def _drop_closed(self) -> None:
        for key, client in list(self._clients.items()):
            if client._reading.done():
                del self._clients[key]

    async def coordinated(self, kind: int, key: str, request: Any, **options: Any) -> Any:
        """The answer of a key's coordinator, whoever it is by now."""
        client = await self.at(await self.coordinator(kind, key))
        return await asyncio.wait_for(client.call(request, **options), 10)

    # -- offsets ---------------------------------------------------------------------------------

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit as a consumer without membership."""
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=i, committed_offset=offset)
                        for i, offset in offsets.items()
                    ],
                )
            ],
        )

        async def attempt() -> None:
            answer = await self.coordinated(GROUP, group, request, version=9)
            for partition in answer.topics[0].partitions:
                check(partition.error_code)

        await self.retry(attempt)

    async def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """The group's offset, once it is stable; -1 without any."""
        wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])], require_stable=True
        )

        async def attempt() -> int:
            (answer,) = (await self.coordinated(GROUP, group, request, version=9)).groups
            check(answer.error_code)
            found = answer.topics[0].partitions[0]
            check(found.error_code)
            offset: int = found.committed_offset
            return offset

        found: int = await self.retry(attempt)
        return found

    async def stable_offset(self, topic: str, partition: int) -> int:
        """The last stable offset of a partition."""
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)],
                )
            ],
        )

        async def attempt() -> int:
            client = await self.at(await self.leader(topic, partition))
            answer = (await client.call(request)).topics[0].partitions[0]
            check(answer.error_code)
            offset: int = answer.offset
            return offset

        found: int = await self.retry(attempt)
        return found

    # -- records ---------------------------------------------------------------------------------

    async def read_committed(self, topic: str, partition: int) -> list[bytes]:
        """Values of all committed records, in order, up to the last stable offset."""
        end = await self.stable_offset(topic, partition)
        values: list[bytes] = []
        deadline = time.monotonic() + WITHIN_S
        offset = 0
        while offset < end:
            found = await self.retry(partial(self._fetch_committed, topic, partition, offset))
            data = memoryview(found.records or b"")
            aborted = sorted(
                (one.first_offset, one.producer_id) for one in found.aborted_transactions or ()
            )
            open_aborts: set[int] = set()
            for position, header in iterate_batches(data, allow_partial=True):
                while aborted and aborted[0][0] <= header.last_offset:
                    open_aborts.add(aborted.pop(0)[1])
                if header.is_control:
                    open_aborts.discard(header.producer_id)
                elif header.last_offset >= offset and not (
                    header.is_transactional and header.producer_id in open_aborts
                ):
                    records = iterate_records(data[position:], max_size=1 << 24)
                    values += [bytes(r.value or b"") for r in records if r.offset >= offset]
                offset = max(offset, header.next_offset)
            if not len(data):
                # Remote storage may have been slower than `remote.fetch.max.wait.ms`.
                assert time.monotonic() < deadline, f"nothing at {offset} of {end}"
                await asyncio.sleep(AGAIN_S)
        return values

    async def _fetch_committed(self, topic: str, partition: int, offset: int) -> Any:
        leader, epoch = await self.led(topic, partition)
        # With the epoch: what was the leader may follow by now, and lack what is committed since.
        wanted = FetchPartition(
            partition=partition,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            partition_max_bytes=16 << 20,
        )
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=16 << 20,
            isolation_level=1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        client = await self.at(leader)
        answer = await asyncio.wait_for(client.call(request), 10)
        check(answer.error_code)
        found = answer.responses[0].partitions[0]
        check(found.error_code)
        return found

    # -- producers -------------------------------------------------------------------------------

    async def producer(self, transactional_id: str) -> "TransactionalProducer":
        """A transactional producer, initialised."""
        producer = TransactionalProducer(self, transactional_id)
        await producer.init()
        return producer


class TransactionalProducer:
    """A producer of transaction version 2: the brokers add its partitions to its transactions."""

    def __init__(self, client: ClusterClient, transactional_id: str) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def init(self) -> None:
        """InitProducerId."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000
        )

        async def attempt() -> Any:
            answer = await self.client.coordinated(TRANSACTION, self.transactional_id, request)
            check(answer.error_code)
            return answer

        answer = await self.client.retry(attempt)
        self._begin(answer.producer_id, answer.producer_epoch)

    def _begin(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences.clear()

    async def send(self, topic: str, partition: int, *values: bytes) -> int:
        """One batch to the partition's leader; its offset."""
        sequence = self._sequences.get((topic, partition), 0)
        data = build_batch(
            [(None, value, (), 1_000) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(index=partition, records=data)]
                )
            ],
        )

        async def attempt() -> int:
            client = await self.client.at(await self.client.leader(topic, partition))
            answer = await asyncio.wait_for(client.call(request, 12), 10)
            response = answer.responses[0].partition_responses[0]
            check(response.error_code)
            offset: int = response.base_offset
            return offset

        offset: int = await self.client.retry(attempt)
        self._sequences[topic, partition] = sequence + len(values)
        return offset

    async def commit_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """TxnOffsetCommit."""
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=-1,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=i, committed_offset=offset)
                        for i, offset in offsets.items()
                    ],
                )
            ],
        )

        async def attempt() -> None:
            answer = await self.client.coordinated(GROUP, group, request, version=5)
            for partition in answer.topics[0].partitions:
                check(partition.error_code)

        await self.client.retry(attempt)

    async def end(self, *, commit: bool) -> None:
        """EndTxn; the next transaction has the epoch of the answer."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

        async def attempt() -> Any:
            answer = await self.client.coordinated(
                TRANSACTION, self.transactional_id, request, version=5
            )
            check(answer.error_code)
            return answer

        answer = await self.client.retry(attempt)
        self._begin(answer.producer_id, answer.producer_epoch)
