"""A Kafka cluster in memory, for clients that dial: leaders, logs, and faults that a test scripts.

    cluster = KafkaCluster(nodes=2)
    cluster.add_topic("orders", partitions=2)
    cluster.append("orders", 0, batch)
    cluster.fail(ApiKey.FETCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    cluster.fail(ApiKey.FETCH, Drop.CONNECTION)
    client = BrokerClient(cluster.options, dial=cluster.dial, ...)

Frames are made and read by `protocol`, in whatever version the client chooses of those that the
cluster speaks; what it answers is what Kafka answers.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple
from uuid import UUID

from pipeline.read.broker.options import BrokerOptions
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages import module_of
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from protocol.records.batch import read_header
from tests.harness.broker_headers import decode_request_header, encode_response_header

VERSIONS = {
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
}


class Drop(Enum):
    """Faults that are no answer."""

    CONNECTION = auto()
    """Closed when the request has come."""
    HALF = auto()
    """Closed in the middle of the answer."""
    SILENCE = auto()
    """No answer, ever."""
    GARBAGE = auto()
    """An answer that is none."""
    EMPTY = auto()
    """Of a Fetch: no records, no error."""


@dataclass
class FakePartition:
    """A log; `aborted` are (producer id, first offset, last offset).

    What is below `local_start` is in remote storage alone; None: nothing is.
    """

    leader: int = 1
    epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    start: int = 0
    local_start: int | None = None
    end: int = 0
    stable_end: int | None = None
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class FakeTopic:
    """One incarnation."""

    topic_id: UUID
    partitions: list[FakePartition]
    is_internal: bool = False


class _Scripted(NamedTuple):
    api: ApiKey
    fault: ErrorCode | Drop
    node: int | None


class KafkaCluster:
    """See the module.

    Attributes:
        topics: By name.
        requests: (node, api) of each, counted; `log` has them in order with version and request.
        down: Nodes that refuse connections.
        versions: By API.
        dialled: Addresses in order.
    """

    def __init__(self, nodes: int = 1) -> None:
        self.nodes = {number: f"node{number}" for number in range(1, nodes + 1)}
        self.topics: dict[str, FakeTopic] = {}
        self.requests: Counter[tuple[int, ApiKey]] = Counter()
        self.log: list[tuple[int, ApiKey, int, Any]] = []
        self.down: set[int] = set()
        self.versions = dict(VERSIONS)
        self.dialled: list[str] = []
        self.open = 0
        self._faults: list[_Scripted] = []
        self._ids = iter(range(1, 1 << 20))

    @property
    def options(self) -> BrokerOptions:
        """All of its nodes."""
        return BrokerOptions(",".join(f"{host}:9092" for host in self.nodes.values()))

    # -- for tests -----------------------------------------------------------------------------

    def add_topic(self, name: str, partitions: int = 1, *, is_internal: bool = False) -> FakeTopic:
        nodes = [*self.nodes]
        made = [FakePartition(leader=nodes[at % len(nodes)]) for at in range(partitions)]
        topic = FakeTopic(UUID(int=next(self._ids)), made, is_internal)
        self.topics[name] = topic
        return topic

    def partition(self, topic: str, number: int = 0) -> FakePartition:
        return self.topics[topic].partitions[number]

    def append(self, topic: str, number: int, *batches: bytes | bytearray) -> None:
        """Batches with their offsets."""
        log = self.partition(topic, number)
        for batch in batches:
            log.batches.append(bytes(batch))
            log.end = read_header(batch).next_offset

    def fail(
        self, api: ApiKey, fault: ErrorCode | Drop, *, times: int = 1, node: int | None = None
    ) -> None:
        """The next requests of an API."""
        self._faults += [_Scripted(api, fault, node)] * times

    def count(self, api: ApiKey) -> int:
        """Requests of an API."""
        return sum(number for (_, key), number in self.requests.items() if key is api)

    # -- the wire ------------------------------------------------------------------------------

    def dial(self, host: str, port: int, timeout_s: float) -> "KafkaWire":
        self.dialled.append(f"{host}:{port}")
        node = next((number for number, name in self.nodes.items() if name == host), None)
        if node is None or node in self.down:
            raise ConnectionRefusedError(f"nobody at {host}:{port}")
        return KafkaWire(self, node)

    def handle(self, node: int, frame: bytes) -> bytes | Drop:
        """The answer to a frame, without its size."""
        header, position = decode_request_header(frame)
        api, version = ApiKey(header.api_key), header.api_version
        least, most = self.versions[api]
        assert least <= version <= most
        codec: Any = module_of(api)
        request = codec.decode_request(memoryview(frame)[position:], version)
        self.requests[node, api] += 1
        self.log.append((node, api, version, request))
        fault = self._next_fault(node, api)
        if isinstance(fault, Drop) and fault is not Drop.EMPTY:
            return fault
        answer = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._epochs,
            ApiKey.FETCH: self._fetch,
        }[api](node, version, request, fault)
        head = encode_response_header(api, version, header.correlation_id)
        return head + bytes(codec.encode_response(answer, version))

    def _next_fault(self, node: int, api: ApiKey) -> ErrorCode | Drop | None:
        for scripted in self._faults:
            if scripted.api is api and scripted.node in (None, node):
                self._faults.remove(scripted)
                return scripted.fault
        return None

    def _api_versions(self, node: int, version: int, request: Any, fault: Any) -> Any:
        return ApiVersionsResponse(
            error_code=fault or 0,
            api_keys=[
                ApiVersion(api_key=api, min_version=least, max_version=most)
                for api, (least, most) in self.versions.items()
            ],
        )

    def _metadata(self, node: int, version: int, request: Any, fault: Any) -> Any:
        names = [*self.topics] if request.topics is None else [t.name for t in request.topics]
        topics = []
        for name in names:
            topic = self.topics.get(name)
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                topics.append(MetadataResponseTopic(error_code=code, name=name))
                continue
            partitions = [
                MetadataResponsePartition(
                    partition_index=number, leader_id=part.leader, leader_epoch=part.epoch
                )
                for number, part in enumerate(topic.partitions)
            ]
            topics.append(
                MetadataResponseTopic(
                    error_code=fault or 0,
                    name=name,
                    topic_id=topic.topic_id,
                    is_internal=topic.is_internal,
                    partitions=partitions,
                )
            )
        brokers = [
            MetadataResponseBroker(node_id=number, host=host, port=9092)
            for number, host in self.nodes.items()
        ]
        return MetadataResponse(brokers=brokers, topics=topics)

    def _led(self, node: int, name: str, number: int, epoch: int) -> tuple[Any, ErrorCode]:
        topic = self.topics.get(name)
        if topic is None or number >= len(topic.partitions):
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        log = topic.partitions[number]
        if log.leader != node:
            return None, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if epoch >= 0 and epoch != log.epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
            return None, code if epoch < log.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        return log, ErrorCode.NONE

    def _list_offsets(self, node: int, version: int, request: Any, fault: Any) -> Any:
        topics = []
        for topic in request.topics:
            partitions = []
            for wanted in topic.partitions:
                log, code = self._led(
                    node, topic.name, wanted.partition_index, wanted.current_leader_epoch
                )
                told = ListOffsetsPartitionResponse(
                    partition_index=wanted.partition_index, error_code=fault or code
                )
                if log is not None and not fault:
                    told.offset, told.timestamp = _offset_of(
                        log, wanted.timestamp, committed=request.isolation_level == 1
                    )
                    told.leader_epoch = log.epoch
                partitions.append(told)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def _epochs(self, node: int, version: int, request: Any, fault: Any) -> Any:
        topics = []
        for topic in request.topics:
            partitions = []
            for wanted in topic.partitions:
                log, code = self._led(
                    node, topic.topic, wanted.partition, wanted.current_leader_epoch
                )
                told = EpochEndOffset(partition=wanted.partition, error_code=fault or code)
                if log is not None and not fault:
                    ends = [*(start for _, start in log.epochs[1:]), log.end]
                    fitting = [
                        (epoch, end)
                        for (epoch, _), end in zip(log.epochs, ends, strict=True)
                        if epoch <= wanted.leader_epoch
                    ]
                    if fitting:
                        told.leader_epoch, told.end_offset = fitting[-1]
                partitions.append(told)
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        return OffsetForLeaderEpochResponse(topics=topics)

    def _fetch(self, node: int, version: int, request: Any, fault: Any) -> Any:
        responses = []
        for topic in request.topics:
            name = topic.topic
            if version >= 13:
                ids = {one.topic_id: known for known, one in self.topics.items()}
                name = ids.get(topic.topic_id, "")
            partitions = []
            for wanted in topic.partitions:
                told = PartitionData(partition_index=wanted.partition, records=b"")
                if version >= 13 and not name:
                    told.error_code = ErrorCode.UNKNOWN_TOPIC_ID
                elif isinstance(fault, ErrorCode):
                    told.error_code = fault
                else:
                    self._fetch_one(told, node, name, wanted, request, empty=fault is Drop.EMPTY)
                partitions.append(told)
            told_topic = FetchableTopicResponse(partitions=partitions)
            if version >= 13:
                told_topic.topic_id = topic.topic_id
            else:
                told_topic.topic = topic.topic
            responses.append(told_topic)
        return FetchResponse(responses=responses)

    def _fetch_one(
        self, told: Any, node: int, name: str, wanted: Any, request: Any, *, empty: bool
    ) -> None:
        log, code = self._led(node, name, wanted.partition, wanted.current_leader_epoch)
        told.error_code = code
        if log is None:
            return
        told.log_start_offset, told.high_watermark = log.start, log.end
        stable = log.end if log.stable_end is None else log.stable_end
        told.last_stable_offset = stable
        if not log.start <= wanted.fetch_offset <= log.end:
            told.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            return
        if empty:
            return
        limit = stable if request.isolation_level else log.end
        chosen: list[bytes] = [
            batch
            for batch in log.batches
            if wanted.fetch_offset < read_header(batch).next_offset <= limit
        ]
        records = b"".join(chosen)
        size = max(wanted.partition_max_bytes, len(chosen[0]) if chosen else 0)
        told.records = records[:size]
        if request.isolation_level:
            last = read_header(chosen[-1]).last_offset if chosen else -1
            told.aborted_transactions = [
                AbortedTransaction(producer_id=producer_id, first_offset=first)
                for producer_id, first, end in log.aborted
                if end >= wanted.fetch_offset and first <= last
            ]


def _offset_of(log: FakePartition, timestamp: int, *, committed: bool) -> tuple[int, int]:
    if timestamp == -2:
        return log.start, -1
    if timestamp == -4:
        return log.start if log.local_start is None else log.local_start, -1
    if timestamp == -1:
        end = log.end if log.stable_end is None or not committed else log.stable_end
        return end, -1
    for batch in log.batches:
        header = read_header(batch)
        if header.max_timestamp >= timestamp:
            return header.base_offset, header.max_timestamp
    return -1, -1


class KafkaWire:
    """One connection."""

    def __init__(self, cluster: KafkaCluster, node: int) -> None:
        self._cluster = cluster
        self._node = node
        self._out = bytearray()
        self._in = bytearray()
        self._is_closed = False
        self._is_silent = False
        cluster.open += 1

    def sendall(self, data: bytes) -> None:
        if self._is_closed:
            raise BrokenPipeError("closed")
        self._in += data
        while len(self._in) >= 4:
            size = int.from_bytes(self._in[:4], "big")
            if len(self._in) < 4 + size:
                return
            frame = bytes(self._in[4 : 4 + size])
            del self._in[: 4 + size]
            self._answer(frame)

    def _answer(self, frame: bytes) -> None:
        if self._node in self._cluster.down:
            self._is_closed = True
            return
        answer = self._cluster.handle(self._node, frame)
        match answer:
            case Drop.CONNECTION:
                self._is_closed = True
            case Drop.HALF:
                self._out += b"\0\0\1\0half of it"
                self._is_closed = True
            case Drop.SILENCE:
                self._is_silent = True
            case Drop.GARBAGE:
                self._out += b"HTTP/1.1 400 Bad Request\r\n\r\n"
            case bytes():
                self._out += len(answer).to_bytes(4, "big") + answer

    def recv_into(self, buffer: memoryview) -> int:
        count = min(len(buffer), len(self._out), 1000)
        if count == 0:
            if self._is_closed:
                return 0
            raise TimeoutError("timed out")
        buffer[:count] = self._out[:count]
        del self._out[:count]
        return count

    def settimeout(self, value: float | None) -> None:
        assert value is not None

    def close(self) -> None:
        if self._cluster.open:
            self._cluster.open -= 1
        self._is_closed = True
