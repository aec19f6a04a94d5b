"""One connection on which a script asks; what was answered is kept as text that can be compared.

Every answer is noted whole, field by field, as one line. What no two brokers have in common gets a
name by order of appearance: producer ids, member ids that the broker made up, the ids of topics.
Lists are sorted, since their order is a hash table's in one of the brokers. Not compared: times,
addresses, throttling, and the sentences beside error codes, which are for people.

Answers that only say "not yet" (the coordinator is loading, a transaction's markers are still being
written) are asked again, as every client library does, and not noted.
"""

import re
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from bench.node import Node
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.headers import decode_response_header, encode_request_header
from protocol.message import Message
from protocol.messages import module_of
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.primitives import NIL_UUID
from protocol.records.batch import iterate_batches
from protocol.records.control import parse_control_type
from protocol.records.record import iterate_records

CLIENT_ID = "dialogue"
ANSWER_TIMEOUT_S = 60.0

NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}

LEFT_OUT = {
    "throttle_time_ms",
    "error_message",
    "batch_index_error_message",
    "acknowledge_error_message",
    "client_host",
    "host",
    "port",
    "node_id",
    "last_timestamp",
    "transaction_start_time_ms",
    "log_append_time_ms",
    "timestamp",
    "session_id",
    "current_leader",
    "node_endpoints",
}
"""Fields that differ between brokers, or between two runs of one."""

PRODUCER_ID_FIELDS = {"producer_id", "ongoing_txn_producer_id"}
ERROR_FIELDS = {"error_code", "partition_error_code"}
_MADE_UP = re.compile(r"(?:.*-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KAFKA_UUID = re.compile(r"[A-Za-z0-9_-]{22}")


def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFF_FFFF
    return value


GROUP_OF_EACH_PARTITION = [
    next(name for name in (f"probe{n}" for n in range(1000)) if _java_hash(name) % 4 == partition)
    for partition in range(4)
]
"""A group for each of four partitions of `__consumer_offsets`."""


class Dialogue:
    """A script's connection to one broker.

    Attributes:
        name: The script's, for names of topics, groups and transactional ids; the same on every
            broker.
        transcript: A line per answer.
    """

    def __init__(self, node: Node, name: str) -> None:
        self.name = name
        self.transcript: list[str] = []
        self._node = node
        self._connections: list[socket.socket] = []
        self._connection = self._connect()
        self._correlation_id = 0
        self._producer_ids: dict[int, str] = {}
        self._member_ids: dict[str, str] = {}
        self._topic_names: dict[UUID, str] = {}

    def _connect(self) -> socket.socket:
        connection = self._node.connect(ANSWER_TIMEOUT_S)
        self._connections.append(connection)
        return connection

    @property
    def port(self) -> int:
        """Where the broker listens."""
        return self._node.port

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.close()

    # -- asking ------------------------------------------------------------------------------------

    def send(self, request: Any, version: int, connection: socket.socket | None = None) -> None:
        """Send without waiting for the answer, for requests that are parked."""
        codec = sys.modules[type(request).__module__]
        self._correlation_id += 1
        head = encode_request_header(codec.API_KEY, version, self._correlation_id, CLIENT_ID)
        data = head + codec.encode_request(request, version)
        (connection or self._connection).sendall(len(data).to_bytes(4, "big") + data)

    def receive(self, api: ApiKey, version: int, connection: socket.socket | None = None) -> Any:
        """The next answer; None when the broker closed the connection instead."""
        source = connection or self._connection
        try:
            frame = _receive_exactly(source, int.from_bytes(_receive_exactly(source, 4), "big"))
        except ConnectionError:
            return None
        _, position = decode_response_header(frame, api, version)
        return module_of(api).decode_response(memoryview(frame)[position:], version)

    def another_connection(self) -> socket.socket:
        """One more, for a second member whose requests wait."""
        return self._connect()

    def ask_quietly(self, request: Any, version: int | None = None) -> Any:
        """Ask and note nothing."""
        codec = sys.modules[type(request).__module__]
        if version is None:
            version = codec.MAX_VERSION
        assert version is not None
        self.send(request, version)
        answer = self.receive(ApiKey(codec.API_KEY), version)
        if answer is None:
            self._connection = self._connect()
        return answer

    def ask(
        self, what: str, request: Any, version: int | None = None, *, as_is: bool = False
    ) -> Any:
        """Ask, note the whole answer, return it.

        Args:
            what: Says in the transcript which step this was.
            request: The message.
            version: Newest by default.
            as_is: Note also an answer that says "not yet".
        """
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            answer = self.ask_quietly(request, version)
            if as_is or not NOT_YET & set(codes_of(answer)) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        self.note(what, answer)
        return answer

    def ask_until(
        self,
        what: str,
        request: Any,
        until: Callable[[Any], bool],
        version: int | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> Any:
        """Ask until the answer is as wanted, then note it; for what happens in its own time."""
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self.ask_quietly(request, version)
            if (answer is not None and until(answer)) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.note(what, answer)
        return answer

    def note(self, what: str, answer: Any) -> None:
        """Put a line into the transcript."""
        text = "connection closed" if answer is None else str(self.plain(answer))
        self.transcript.append(f"{what}: {text}")

    # -- what every script needs -------------------------------------------------------------------

    def create_topic(
        self, suffix: str = "", partitions: int = 1, configs: Mapping[str, object] | None = None
    ) -> str:
        """A topic of the script's own, that partition leaders and group coordinators know."""
        name = f"{self.name}{suffix}"
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=key, value=str(value))
                for key, value in (configs or {}).items()
            ],
        )
        (result,) = self.ask_quietly(CreateTopicsRequest(topics=[topic]), 7).topics
        assert result.error_code == 0, ErrorCode(result.error_code)
        self._topic_names[result.topic_id] = f"<id of {name}>"
        ends = ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=-1)
                        for index in range(partitions)
                    ],
                )
            ]
        )
        led = DescribeProducersRequest(
            topics=[TopicRequest(name=name, partition_indexes=list(range(partitions)))]
        )
        self.wait(lambda: not any(codes_of(self.ask_quietly(ends, 7))), f"leaders of {name}")
        # Kafka answers ListOffsets a little before it accepts records.
        self.wait(
            lambda: ErrorCode.NOT_LEADER_OR_FOLLOWER not in codes_of(self.ask_quietly(led)),
            f"leaders of {name}",
        )
        for group in GROUP_OF_EACH_PARTITION:
            self.wait(partial(self._is_assigned, group, name), f"assignment of {name}")
        return name

    def wait(self, is_there: Callable[[], object], what: str) -> None:
        """Until something is as it should be; fails after a while."""
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while not is_there():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.01)

    def _is_assigned(self, group: str, topic: str) -> bool:
        """Whether a group coordinator gives out the topic's partitions; it learns of them late."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=f"{group}-{topic}",
            member_epoch=0,
            rebalance_timeout_ms=5_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        answer = self.ask_quietly(request)
        if answer is None or ErrorCode(answer.error_code) not in NOT_YET | {ErrorCode.NONE}:
            return True  # It has no such groups.
        request.member_epoch = -1
        self.ask_quietly(request)
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    def topic_id(self, name: str) -> UUID:
        """The id of a topic this script created."""
        wanted = f"<id of {name}>"
        return next(uuid for uuid, text in self._topic_names.items() if text == wanted)

    def wait_for_coordinators(self) -> None:
        """Ask for both kinds until they are there."""
        for key_type in (0, 1):
            deadline = time.monotonic() + ANSWER_TIMEOUT_S
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[self.name])
            while True:
                answer = self.ask_quietly(request, 4)
                if answer is not None and answer.coordinators[0].error_code == 0:
                    break
                assert time.monotonic() < deadline, f"no coordinator of type {key_type}"
                time.sleep(0.05)

    # -- comparable text ---------------------------------------------------------------------------

    def plain(self, value: Any, field: str = "") -> Any:
        """A message as dicts and lists, without what may differ."""
        match value:
            case Message():
                names = [name for name in _fields(value) if name not in LEFT_OUT]
                return {name: self.plain(getattr(value, name), name) for name in names}
            case list():
                return sorted((self.plain(item, field) for item in value), key=repr)
            case bool() | None:
                return value
            case UUID():
                return self._topic_names.get(value, "nil" if value == NIL_UUID else str(value))
            case int() if field in ERROR_FIELDS:
                return ErrorCode(value).name
            case int() if field in PRODUCER_ID_FIELDS and value >= 0:
                return self._producer_ids.setdefault(value, f"<pid {len(self._producer_ids)}>")
            case str() if field in ("member_id", "leader") and self._is_made_up(value):
                return self._member_ids.setdefault(value, f"<member {len(self._member_ids)}>")
            case bytes() | bytearray() | memoryview():
                return records_text(value) if field == "records" else bytes(value).hex()
            case _:
                return value

    @staticmethod
    def _is_made_up(member_id: str) -> bool:
        return bool(_MADE_UP.fullmatch(member_id) or _KAFKA_UUID.fullmatch(member_id))


def records_text(data: bytes | bytearray | memoryview) -> list[str]:
    """Batches of a Fetch answer: what kind, which offsets, which values."""
    lines = []
    view = memoryview(data)
    for position, header in iterate_batches(view, allow_partial=True):
        batch = view[position : position + header.size]
        records = list(iterate_records(batch, max_size=1 << 20))
        if header.is_control:
            kinds = [parse_control_type(record.key).name for record in records]
            lines.append(f"{header.base_offset} {kinds} epoch {header.producer_epoch}")
        else:
            kind = "transactional" if header.is_transactional else "plain"
            values = [bytes(record.value or b"") for record in records]
            lines.append(
                f"{header.base_offset} {kind} {values} epoch {header.producer_epoch}"
                f" sequence {header.base_sequence}"
            )
    return lines


def codes_of(value: Any) -> Iterable[int]:
    """All error codes anywhere in an answer; none in no answer."""
    if isinstance(value, Message):
        for name in _fields(value):
            inner = getattr(value, name)
            if name in ERROR_FIELDS:
                yield inner
            elif isinstance(inner, Message | list):
                yield from codes_of(inner)
    elif isinstance(value, list):
        for item in value:
            yield from codes_of(item)


def _fields(message: Message) -> tuple[str, ...]:
    slots: tuple[str, ...] = type(message).__slots__
    return tuple(name for name in slots if not name.startswith("_"))


def _receive_exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("the broker closed the connection")
        data += piece
    return bytes(data)
