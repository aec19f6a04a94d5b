"""A small raw client: any request as a message, and the few things scenarios do all the time.

Bytes are made and read by `protocol`; the connection is the test's own. Requests may be pipelined:
`send` returns a future, answers are matched in order, as Kafka promises them. `sent` counts what
went out, per API: the ground truth for the broker's counters.
"""

import asyncio
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self
from uuid import UUID

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.headers import decode_response_header, encode_request_header
from protocol.messages import module_of
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
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
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.record import Record, iterate_records

NAMES_UP_TO = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}
"""Newest versions that name topics by name; the helpers here use them."""

TOPIC = 2
"""Resource type of a topic in the config APIs."""

EARLIEST = -2
LATEST = -1
RECORDS_MAX = 64 << 20
ANSWER_TIMEOUT_S = 60.0


class Read(NamedTuple):
    """One partition's part of a Fetch answer."""

    error: ErrorCode
    records: list[Record]
    high_watermark: int
    log_start_offset: int
    size: int
    preferred: int = -1


class _Sent(NamedTuple):
    api: ApiKey
    version: int
    correlation_id: int
    answer: "asyncio.Future[Any]"


class Client:
    """One connection; `close` it, or use it in `async with`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._correlation_id = 0
        self._unanswered: deque[_Sent] = deque()
        self._versions: dict[int, tuple[int, int]] = {}
        self.sent: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, host: str, port: int, client_id: str = "test") -> Self:
        """Connect and ask what is served."""
        return await cls.over(*await asyncio.open_connection(host, port), client_id)

    @classmethod
    async def over(
        cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str = "test"
    ) -> Self:
        """A client on a connection; asks what is served."""
        client = cls(reader, writer, client_id)
        try:
            answer = await client.call(ApiVersionsRequest(), 0)
        except OSError:
            await client.close()
            raise
        client._versions = {k.api_key: (k.min_version, k.max_version) for k in answer.api_keys}
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave; what is unanswered fails with ConnectionResetError."""
        self._writer.close()
        await asyncio.wait([self._reading])

    async def closed_by_broker(self) -> None:
        """Wait until the broker has closed the connection."""
        await asyncio.wait_for(asyncio.shield(self._reading), ANSWER_TIMEOUT_S)

    # -- any request -----------------------------------------------------------------------------

    def newest(self, api: ApiKey) -> int:
        """The newest version that both sides speak, with topic names where we use names."""
        theirs = self._versions[api][1]
        return min(theirs, NAMES_UP_TO.get(api, theirs))

    def send(self, request: Any, version: int | None = None) -> "asyncio.Future[Any]":
        """Send a message; the future is its answer (and fails when the connection ends)."""
        codec = sys.modules[type(request).__module__]
        api = ApiKey(codec.API_KEY)
        if version is None:
            version = self.newest(api)
        self._correlation_id += 1
        head = encode_request_header(api, version, self._correlation_id, self._client_id)
        data = head + codec.encode_request(request, version)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not (api is ApiKey.PRODUCE and request.acks == 0):
            self._unanswered.append(_Sent(api, version, self._correlation_id, answer))
        self._writer.write(len(data).to_bytes(4, "big") + data)
        self.sent[api.name] += 1
        self.sent_bytes[api.name] += len(data)
        return answer

    async def call(self, request: Any, version: int | None = None) -> Any:
        """Send a message and wait for its answer."""
        return await asyncio.wait_for(self.send(request, version), ANSWER_TIMEOUT_S)

    async def _read(self) -> None:
        try:
            while True:
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                frame = await self._reader.readexactly(size)
                sent = self._unanswered.popleft()
                correlation_id, position = decode_response_header(frame, sent.api, sent.version)
                assert correlation_id == sent.correlation_id, "answers are out of order"
                codec = module_of(sent.api)
                answer = codec.decode_response(memoryview(frame)[position:], sent.version)
                if not sent.answer.done():
                    sent.answer.set_result(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            while self._unanswered:
                answer = self._unanswered.popleft().answer
                if not answer.done():
                    answer.set_exception(ConnectionResetError("connection ended"))
                    answer.exception()

    # -- topics ----------------------------------------------------------------------------------

    async def create_topic(self, name: str, partitions: int = 1, **configs: object) -> UUID:
        """Create; keyword `segment_bytes=100` is the key `segment.bytes`."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
                for key, value in configs.items()
            ],
        )
        (result,) = (await self.call(CreateTopicsRequest(topics=[topic]))).topics
        _check(result.error_code, result.error_message)
        topic_id: UUID = result.topic_id
        return topic_id

    async def delete_topic(self, name: str) -> None:
        """Delete."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
        (result,) = (await self.call(request)).responses
        _check(result.error_code, result.error_message)

    async def alter_topic(self, name: str, **configs: object) -> None:
        """Set some settings, leaving the others."""
        altered = [
            AlterableConfig(name=key.replace("_", "."), value=str(value))
            for key, value in configs.items()
        ]
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=altered)
        answer = await self.call(IncrementalAlterConfigsRequest(resources=[resource]))
        _check(answer.responses[0].error_code, answer.responses[0].error_message)

    async def topic_configs(self, name: str) -> dict[str, str]:
        """All settings of a topic as told by DescribeConfigs."""
        resource = DescribeConfigsResource(
            resource_type=TOPIC, resource_name=name, configuration_keys=None
        )
        (result,) = (await self.call(DescribeConfigsRequest(resources=[resource]))).results
        _check(result.error_code, result.error_message)
        return {entry.name: entry.value for entry in result.configs}

    async def metadata(self, *names: str, auto_create: bool = False) -> Any:
        """Metadata of some topics, of all without names."""
        topics = [MetadataRequestTopic(name=name) for name in names] if names else None
        return await self.call(
            MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create)
        )

    # -- records ---------------------------------------------------------------------------------

    async def produce(self, topic: str, *values: bytes | None, **options: Any) -> int:
        """Write one batch of records without keys; returns its base offset. See `try_produce`."""
        answer = await self.try_produce(topic, [(None, value) for value in values], **options)
        _check(answer.error_code, answer.error_message)
        base_offset: int = answer.base_offset
        return base_offset

    async def try_produce(
        self,
        topic: str,
        records: Iterable[tuple[bytes | None, bytes | None]],
        *,
        partition: int = 0,
        acks: int = -1,
        timestamp_ms: int | None = None,
        timeout_ms: int = 10_000,
        **batch: Any,
    ) -> Any:
        """Write one batch of (key, value); returns the partition's part of the answer."""
        now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        data = build_batch([(key, value, (), now_ms) for key, value in records], **batch)
        request = produce_request(topic, partition, data, acks=acks, timeout_ms=timeout_ms)
        if acks == 0:
            # Nothing comes back.
            self.send(request).cancel()
            return None
        return (await self.call(request)).responses[0].partition_responses[0]

    def start_fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 16 << 20,
        rack: str = "",
        leader_epoch: int = -1,
        isolation_level: int = 0,
        version: int | None = None,
    ) -> "asyncio.Future[Any]":
        """Send a Fetch of one partition; its answer goes to `read_of`."""
        wanted = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
            current_leader_epoch=leader_epoch,
        )
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            rack_id=rack,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        return self.send(request, version)

    async def fetch(self, topic: str, offset: int, **options: Any) -> Read:
        """Fetch once; options as in `start_fetch`."""
        return read_of(
            await asyncio.wait_for(self.start_fetch(topic, offset, **options), ANSWER_TIMEOUT_S)
        )

    async def read_all(self, topic: str, *, partition: int = 0) -> list[Record]:
        """Everything from the log start offset to the high watermark.

        An answer may be empty before the end: remote storage was slower than
        `remote.fetch.max.wait.ms`, and is asked again.
        """
        offset = await self.offset(topic, EARLIEST, partition=partition)
        end = await self.offset(topic, LATEST, partition=partition)
        found: list[Record] = []
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while offset < end:
            read = await self.fetch(topic, offset, partition=partition)
            assert read.error is ErrorCode.NONE, read
            if not read.records:
                if read.size:
                    # Compaction may leave nothing up to the end of the log.
                    break
                assert time.monotonic() < deadline, f"nothing at {offset} of {end}"
                await asyncio.sleep(0.01)
                continue
            found += [record for record in read.records if record.offset >= offset]
            offset = read.records[-1].offset + 1
        return found

    async def offset(self, topic: str, timestamp: int = LATEST, *, partition: int = 0) -> int:
        """ListOffsets."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        answer = (await self.call(request)).topics[0].partitions[0]
        _check(answer.error_code, None)
        offset: int = answer.offset
        return offset

    async def delete_records(self, topic: str, before: int, *, partition: int = 0) -> int:
        """Move the log start offset; returns it."""
        wanted = DeleteRecordsPartition(partition_index=partition, offset=before)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=10_000
        )
        answer = (await self.call(request)).topics[0].partitions[0]
        _check(answer.error_code, None)
        low_watermark: int = answer.low_watermark
        return low_watermark

    async def init_producer_id(self) -> tuple[int, int]:
        """A producer id and its epoch."""
        answer = await self.call(InitProducerIdRequest(transactional_id=None))
        _check(answer.error_code, None)
        return answer.producer_id, answer.producer_epoch

    # -- committed offsets -----------------------------------------------------------------------

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit as a consumer without membership."""
        partitions = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)]
        )
        await self.find_coordinator(group)
        for partition in (await self.call(request)).topics[0].partitions:
            _check(partition.error_code, None)

    async def find_coordinator(self, group: str) -> None:
        """Ask until the group's coordinator is there: the offsets topic is made on the first ask.

        Its partition may then still be read back, which offset requests are told by an error.
        """
        for _ in range(1000):
            request = FindCoordinatorRequest(coordinator_keys=[group])
            (found,) = (await self.call(request)).coordinators
            if found.error_code == ErrorCode.NONE:
                code, _ = await self.try_committed(group, "any")
                if code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    return
            await asyncio.sleep(0.005)
        raise AssertionError(f"no coordinator for {group}")

    async def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """The group's offset, -1 without any."""
        await self.find_coordinator(group)
        code, offset = await self.try_committed(group, topic, partition)
        _check(code, None)
        return offset

    async def try_committed(self, group: str, topic: str, partition: int = 0) -> tuple[int, int]:
        """(error code, committed offset)."""
        wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])]
        )
        (answer,) = (await self.call(request)).groups
        if answer.error_code:
            return answer.error_code, -1
        found = answer.topics[0].partitions[0]
        return found.error_code, found.committed_offset


def produce_request(
    topic: str,
    partition: int,
    batch: bytes | bytearray,
    *,
    acks: int = -1,
    timeout_ms: int = 10_000,
) -> ProduceRequest:
    """Produce of one batch."""
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def read_of(response: Any) -> Read:
    """The one partition of a Fetch answer."""
    if response.error_code:
        return Read(ErrorCode(response.error_code), [], -1, -1, 0)
    partition = response.responses[0].partitions[0]
    data = memoryview(partition.records or b"")
    records = [
        record
        for position, _ in iterate_batches(data, allow_partial=True)
        for record in iterate_records(data[position:], max_size=RECORDS_MAX)
    ]
    return Read(
        ErrorCode(partition.error_code),
        records,
        partition.high_watermark,
        partition.log_start_offset,
        len(data),
        partition.preferred_read_replica,
    )


class RefusedError(Exception):
    """The broker answered with an error."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code


def _check(code: int, message: str | None) -> None:
    if code:
        raise RefusedError(ErrorCode(code), message)


async def http_get(address: str, path: str) -> tuple[int, str]:
    """Status and body of a page of the admin port."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), ANSWER_TIMEOUT_S)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), body.decode()
