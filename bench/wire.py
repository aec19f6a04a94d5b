"""The few requests the measurements send, framed by hand.

Independent of `protocol` on purpose: a mistake of ours in the codec must not measure itself. Only
what the rows need is here, at versions that both brokers serve; Produce and Fetch use flexible
versions, as today's clients do.

A request is `>i` size, then the header (`>hhi` key, version, correlation id, client id, and from
header v2 on a tag count), then the body. A response is `>i` size, `>i` correlation id, a tag count
in flexible versions, and the body.

Source: Kafka's protocol guide; KIP-482 (flexible versions), KIP-98 (record batch v2).
"""

import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fastcrc.crc32 import iscsi as crc32c

CLIENT_ID = b"varve-bench"

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 10, 11, 12, 13, 14
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID = 18, 19, 20, 22
CREATE_PARTITIONS = 37

PRODUCE_VERSION = 9
FETCH_VERSION = 12

BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")


class WireError(RuntimeError):
    """A broker answered with an error code, or not in the shape that was asked for."""


def string(value: str | None) -> bytes:
    """A string with a 2-byte length; None is -1."""
    if value is None:
        return b"\xff\xff"
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def blob(value: bytes) -> bytes:
    """Bytes with a 4-byte length."""
    return struct.pack(">i", len(value)) + value


def array(items: Iterable[bytes]) -> bytes:
    """An array with a 4-byte count, of items already encoded."""
    pieces = list(items)
    return struct.pack(">i", len(pieces)) + b"".join(pieces)


def uvarint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """A zigzag varint."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def compact_string(value: str) -> bytes:
    """A string of a flexible version: length + 1 as a varint."""
    encoded = value.encode()
    return uvarint(len(encoded) + 1) + encoded


def frame(
    api_key: int, version: int, correlation_id: int, body: bytes, *, flexible: bool = False
) -> bytes:
    """A whole request, size included."""
    tags = b"\x00" if flexible else b""
    head = struct.pack(">hhih", api_key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID + tags
    return struct.pack(">i", len(head) + len(body)) + head + body


def receive_exactly(connection: socket.socket, size: int) -> bytearray:
    """`size` bytes from the connection; WireError when it ends before."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise WireError("the broker closed the connection")
        view = view[count:]
    return data


def receive(connection: socket.socket) -> bytearray:
    """One whole response, without its size."""
    (size,) = struct.unpack(">i", receive_exactly(connection, 4))
    return receive_exactly(connection, size)


def call(connection: socket.socket, api_key: int, version: int, body: bytes) -> "Reader":
    """Send one request of a non-flexible version and read its answer."""
    connection.sendall(frame(api_key, version, 7, body))
    reader = Reader(receive(connection))
    if reader.int32() != 7:
        raise WireError("answer to another request")
    return reader


class Reader:
    """Reads the fields of a non-flexible response in order."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        begin, self._position = self._position, self._position + size
        if self._position > len(self._data):
            raise WireError("response is too short")
        return bytes(self._data[begin : self._position])

    def int8(self) -> int:
        """A signed byte, or a bool."""
        return int.from_bytes(self.take(1), "big", signed=True)

    def int16(self) -> int:
        """Two bytes, signed."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """Four bytes, signed."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        """Eight bytes, signed."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def string(self) -> str | None:
        """A string with a 2-byte length."""
        size = self.int16()
        return None if size < 0 else self.take(size).decode()

    def blob(self) -> bytes:
        """Bytes with a 4-byte length."""
        return self.take(max(self.int32(), 0))

    def times(self) -> range:
        """How often the items of the next array are to be read."""
        return range(self.int32())

    def times_then_skip(self, item_size: int) -> range:
        """Step over an array of items of one size; its range says how many there were."""
        times = self.times()
        self.take(len(times) * item_size)
        return times


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition as Metadata shows it."""

    error_code: int
    index: int
    leader: int


def cluster_brokers(connection: socket.socket) -> dict[int, tuple[str, int]]:
    """Node id to host and port, asking for no topic (Metadata v4)."""
    reader = call(connection, METADATA, 4, array([]) + b"\x00")
    reader.int32()
    return {reader.int32(): _host_and_port(reader) for _ in reader.times()}


def _host_and_port(reader: Reader) -> tuple[str, int]:
    host, port = reader.string() or "", reader.int32()
    reader.string()  # rack
    return host, port


def topic_partitions(
    connection: socket.socket, topics: Sequence[str]
) -> dict[str, list[PartitionInfo]]:
    """Partitions of the topics named; a topic with an error is absent (Metadata v4)."""
    reader = call(connection, METADATA, 4, array(string(topic) for topic in topics) + b"\x00")
    reader.int32()
    for _ in reader.times():
        reader.int32()
        _host_and_port(reader)
    reader.string()
    reader.int32()
    found: dict[str, list[PartitionInfo]] = {}
    for _ in reader.times():
        error = reader.int16()
        name = reader.string() or ""
        reader.int8()
        partitions = []
        for _ in reader.times():
            partitions.append(PartitionInfo(reader.int16(), reader.int32(), reader.int32()))
            for _ in range(2):  # replicas, in-sync replicas
                for _ in reader.times():
                    reader.int32()
        if error == 0:
            found[name] = partitions
    return found


def create_topic(
    connection: socket.socket,
    name: str,
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic with one replica and wait until it has leaders (CreateTopics v4)."""
    create_topics(connection, [name], partitions, configs)
    wait_until_led(connection, name, partitions)


def create_topics(
    connection: socket.socket,
    names: Sequence[str],
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create topics with one replica in one request, and do not wait for their leaders."""
    reader = call(connection, CREATE_TOPICS, 4, create_topics_body(names, partitions, configs))
    reader.int32()
    for _ in reader.times():
        name, code, message = reader.string(), reader.int16(), reader.string()
        if code:
            raise WireError(f"CreateTopics {name}: error {code} {message or ''}")


def create_topics_body(
    names: Sequence[str], partitions: int = 1, configs: Mapping[str, str] | None = None
) -> bytes:
    """CreateTopics v4, without its header."""
    settings = array(string(key) + string(value) for key, value in (configs or {}).items())
    shape = struct.pack(">ih", partitions, 1) + array([]) + settings
    return array(string(name) + shape for name in names) + struct.pack(">ib", 60_000, 0)


def create_partitions_body(name: str, count: int) -> bytes:
    """CreatePartitions v1, without its header."""
    topic = string(name) + struct.pack(">i", count) + b"\xff\xff\xff\xff"
    return array([topic]) + struct.pack(">ib", 60_000, 0)


def wait_until_led(
    connection: socket.socket, name: str, partitions: int, timeout_s: float = 120.0
) -> None:
    """Wait until the broker answers for every partition.

    Metadata names a leader a moment before that leader knows of it: only an answer for the
    partition itself proves that it can be written to.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        offsets = list_offsets(connection, name, range(partitions))
        wrong = sorted({code for code, _ in offsets.values() if code})
        if not wrong:
            return
        if time.monotonic() > deadline:
            raise WireError(f"{name} is not served after {timeout_s} s: errors {wrong}")
        # Asking for thousands of partitions is work too: leave the broker to what it is doing.
        time.sleep(max(0.005, partitions / 5000))


def delete_topics(connection: socket.socket, names: Sequence[str]) -> None:
    """Delete topics (DeleteTopics v3)."""
    body = array(string(name) for name in names) + struct.pack(">i", 60_000)
    reader = call(connection, DELETE_TOPICS, 3, body)
    reader.int32()
    for _ in reader.times():
        name, code = reader.string(), reader.int16()
        if code:
            raise WireError(f"DeleteTopics {name}: error {code}")


def list_offsets(
    connection: socket.socket, topic: str, partitions: Iterable[int], timestamp: int = -1
) -> dict[int, tuple[int, int]]:
    """Error code and offset of each partition (ListOffsets v3)."""
    item = string(topic) + array(struct.pack(">iq", index, timestamp) for index in partitions)
    reader = call(connection, LIST_OFFSETS, 3, struct.pack(">ib", -1, 0) + array([item]))
    reader.int32()
    found = {}
    for _ in reader.times():
        reader.string()
        for _ in reader.times():
            index, code, _timestamp = reader.int32(), reader.int16(), reader.int64()
            found[index] = (code, reader.int64())
    return found


def list_offset(connection: socket.socket, topic: str, partition: int, timestamp: int = -1) -> int:
    """An offset by time; -1 asks for the log end offset, -2 for the log start."""
    code, offset = list_offsets(connection, topic, [partition], timestamp)[partition]
    if code:
        raise WireError(f"ListOffsets {topic}-{partition}: error {code}")
    return offset


def init_producer_id(connection: socket.socket) -> tuple[int, int]:
    """A producer id and epoch for an idempotent producer (InitProducerId v1)."""
    reader = call(connection, INIT_PRODUCER_ID, 1, string(None) + struct.pack(">i", 60_000))
    reader.int32()
    code, producer_id, epoch = reader.int16(), reader.int64(), reader.int16()
    if code:
        raise WireError(f"InitProducerId: error {code}")
    return producer_id, epoch


def record_batch(
    values: Sequence[bytes],
    *,
    timestamp_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
) -> bytes:
    """An uncompressed v2 batch of records without keys, as a client would send it.

    Its records are from now unless said otherwise: retention deletes by the records' time.
    """
    if timestamp_ms is None:
        timestamp_ms = int(time.time() * 1000)
    records = bytearray()
    for delta, value in enumerate(values):
        body = b"\x00\x00" + varint(delta) + b"\x01" + varint(len(value)) + value + b"\x00"
        records += varint(len(body)) + body
    last, count = len(values) - 1, len(values)
    producer = (producer_id, producer_epoch, base_sequence)
    tail = struct.pack(">hiqqqhii", attributes, last, timestamp_ms, timestamp_ms, *producer, count)
    checked = tail + bytes(records)
    # base offset, length after it, leader epoch, magic, checksum
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c(checked)) + checked


def produce_frame(
    topic: str, partition: int, batch: bytes, *, correlation_id: int = 0, acks: int = -1
) -> bytes:
    """A Produce request with one batch (v9)."""
    body = (
        b"\x00"  # no transactional id
        + struct.pack(">hi", acks, 30_000)
        + b"\x02"
        + compact_string(topic)
        + b"\x02"
        + struct.pack(">i", partition)
        + uvarint(len(batch) + 1)
        + batch
        + b"\x00\x00\x00"
    )
    return frame(PRODUCE, PRODUCE_VERSION, correlation_id, body, flexible=True)


# size, correlation id, tags, topics, name length: what lies before the name in a Produce v9 answer
_PRODUCE_RESPONSE_HEAD = 4 + 4 + 1 + 1 + 1


@dataclass(frozen=True, slots=True)
class ProduceResponseLayout:
    """Where the fields lie in the answer to `produce_frame`, when it carries no error message.

    size 4 | correlation id 4 | tags 1 | topics 1 | name 1+n | partitions 1 | index 4
    | error code 2 | base offset 8 | append time 8 | log start 8 | record errors 1
    | error message 1 | tags 1 | tags 1 | throttle 4 | tags 1
    """

    size: int
    error_code: int
    base_offset: int

    @classmethod
    def of(cls, topic: str) -> "ProduceResponseLayout":
        """Layout for a topic whose name is below 127 bytes."""
        error_code = _PRODUCE_RESPONSE_HEAD + len(topic.encode()) + 1 + 4
        base_offset = error_code + 2
        return cls(base_offset + 24 + 9, error_code, base_offset)


def produce(
    connection: socket.socket, topic: str, partition: int, batch: bytes, *, acks: int = -1
) -> int:
    """Produce one batch; the base offset it got."""
    connection.sendall(produce_frame(topic, partition, batch, acks=acks))
    answer = receive(connection)
    # The layout counts from the size field, which `receive` has taken off.
    position = ProduceResponseLayout.of(topic).error_code - 4
    error_code, base_offset = struct.unpack_from(">hq", answer, position)
    if error_code:
        raise WireError(f"Produce {topic}-{partition}: error {error_code}")
    return int(base_offset)


def fetch_frame(
    topic: str,
    partition: int,
    offset: int,
    *,
    max_bytes: int,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    correlation_id: int = 0,
    isolation_level: int = 0,
) -> bytes:
    """A Fetch request for one partition outside any session (v12)."""
    body = (
        struct.pack(">iiiibii", -1, max_wait_ms, min_bytes, 50 << 20, isolation_level, 0, -1)
        + b"\x02"
        + compact_string(topic)
        + b"\x02"
        + struct.pack(">iiqiqi", partition, -1, offset, -1, -1, max_bytes)
        + b"\x00\x00\x01\x01\x00"
    )
    return frame(FETCH, FETCH_VERSION, correlation_id, body, flexible=True)


def _read_uvarint(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The one partition of a Fetch v12 answer; `records` is a slice of the response."""

    error_code: int
    high_watermark: int
    records: memoryview


def parse_fetch(data: bytes | bytearray | memoryview) -> FetchAnswer:
    """Read the answer to `fetch_frame`, given without its size."""
    error_code, high_watermark, position, size = _fetched(data)
    return FetchAnswer(error_code, high_watermark, memoryview(data)[position : position + size])


def fetched_bytes(data: bytes | bytearray | memoryview) -> int:
    """Bytes of records that the answer to `fetch_frame` says it has; they may be missing in it."""
    error_code, _, _, size = _fetched(data)
    if error_code:
        raise WireError(f"Fetch: error {error_code}")
    return size


def _fetched(data: bytes | bytearray | memoryview) -> tuple[int, int, int, int]:
    """Error, high watermark, where the records begin, their size."""
    error_code: int
    (error_code,) = struct.unpack_from(">h", data, 9)
    if error_code:
        raise WireError(f"Fetch: error {error_code}")
    topics, position = _read_uvarint(data, 15)
    if topics != 2:
        raise WireError(f"Fetch answered {topics - 1} topics")
    name_size, position = _read_uvarint(data, position)
    partitions, position = _read_uvarint(data, position + name_size - 1)
    if partitions != 2:
        raise WireError(f"Fetch answered {partitions - 1} partitions")
    error_code, high_watermark = struct.unpack_from(">hq", data, position + 4)
    position += 4 + 2 + 8 + 8 + 8
    aborted, position = _read_uvarint(data, position)
    if aborted > 1:
        raise WireError("aborted transactions in a log that has none")
    size, position = _read_uvarint(data, position + 4)
    return error_code, high_watermark, position, max(size - 1, 0)


def whole_batches(records: memoryview) -> Iterable[tuple[int, int, memoryview]]:
    """Base offset, record count and bytes of every batch that is there to its end."""
    position, end = 0, len(records)
    while end - position >= BATCH_HEADER.size:
        base_offset, length = struct.unpack_from(">qi", records, position)
        if position + 12 + length > end:
            return
        (count,) = struct.unpack_from(">i", records, position + 57)
        yield base_offset, count, records[position : position + 12 + length]
        position += 12 + length


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    value, position = _read_uvarint(data, position)
    return value >> 1 ^ -(value & 1), position


def plain_values(batch: memoryview) -> Iterable[bytes]:
    """Values of the records of an uncompressed batch; None becomes empty."""
    (count,) = struct.unpack_from(">i", batch, 57)
    position = BATCH_HEADER.size
    for _ in range(count):
        length, position = _read_varint(batch, position)
        end = position + length
        _, position = _read_varint(batch, position + 1)  # attributes, timestamp delta
        _, position = _read_varint(batch, position)  # offset delta
        key_size, position = _read_varint(batch, position)
        value_size, position = _read_varint(batch, position + max(key_size, 0))
        yield bytes(batch[position : position + max(value_size, 0)])
        position = end
