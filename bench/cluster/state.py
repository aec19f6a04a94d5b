"""A cluster's state as one of its brokers shows it: Metadata v7, read by hand as in `bench.wire`.

Source: Kafka's protocol guide; DescribeQuorum (KIP-595).
"""

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from bench import wire

METADATA_VERSION = 7
DESCRIBE_QUORUM = 55
METADATA_TOPIC = "__cluster_metadata"

NO_ERROR = 0
NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition: who leads it, and which replicas are in sync."""

    topic: str
    index: int
    error_code: int
    leader: int
    """Node id, `NO_LEADER` for none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_in_sync(self) -> bool:
        """Whether it is led and every replica is in the ISR."""
        return (
            self.error_code == NO_ERROR
            and self.leader != NO_LEADER
            and set(self.isr) == set(self.replicas)
        )


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What Metadata says, of one moment and one broker."""

    brokers: dict[int, tuple[str, int]]
    """Host and port of the brokers that are not fenced."""
    controller_id: int
    partitions: tuple[PartitionState, ...]

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """One partition, None when the answer has it not."""
        return next((p for p in self.partitions if (p.topic, p.index) == (topic, index)), None)


def cluster_state(connection: socket.socket, topics: Sequence[str] | None = None) -> ClusterState:
    """Ask for some topics, by default for all; one with an error is absent."""
    names = None if topics is None else [wire.string(topic) for topic in topics]
    asked = struct.pack(">i", -1) if names is None else wire.array(names)
    reader = wire.call(connection, wire.METADATA, METADATA_VERSION, asked + b"\x00")
    reader.int32()
    brokers = {}
    for _ in reader.times():
        node_id, host, port = reader.int32(), reader.string() or "", reader.int32()
        reader.string()  # rack
        brokers[node_id] = (host, port)
    reader.string()  # cluster id
    controller_id = reader.int32()
    partitions: list[PartitionState] = []
    for _ in reader.times():
        error_code, topic = reader.int16(), reader.string() or ""
        reader.int8()  # is internal
        found = [_partition(reader, topic) for _ in reader.times()]
        if error_code == NO_ERROR:
            partitions += found
    return ClusterState(brokers, controller_id, tuple(partitions))


def _partition(reader: wire.Reader, topic: str) -> PartitionState:
    error_code, index, leader, leader_epoch = (
        reader.int16(),
        reader.int32(),
        reader.int32(),
        reader.int32(),
    )
    replicas, isr, _offline = (_ids(reader) for _ in range(3))
    return PartitionState(topic, index, error_code, leader, leader_epoch, replicas, isr)


def _ids(reader: wire.Reader) -> tuple[int, ...]:
    return tuple(reader.int32() for _ in reader.times())


def create_assigned_topic(
    connection: socket.socket,
    name: str,
    assignment: Sequence[Sequence[int]],
    configs: dict[str, str] | None = None,
) -> None:
    """Create a topic whose replicas are given, for each partition its first leader first."""
    replicas = wire.array(
        struct.pack(">i", index) + wire.array(struct.pack(">i", node_id) for node_id in nodes)
        for index, nodes in enumerate(assignment)
    )
    settings = wire.array(wire.string(k) + wire.string(v) for k, v in (configs or {}).items())
    topic = wire.string(name) + struct.pack(">ih", -1, -1) + replicas + settings
    body = wire.array([topic]) + struct.pack(">ib", 60_000, 0)
    reader = wire.call(connection, wire.CREATE_TOPICS, 4, body)
    reader.int32()
    for _ in reader.times():
        _, code, message = reader.string(), reader.int16(), reader.string()
        if code:
            raise wire.WireError(f"CreateTopics {name}: error {code} {message or ''}")


def quorum_leader(connection: socket.socket) -> int:
    """The node that leads Kafka's own metadata: its controller, which Metadata does not name."""
    topic = wire.compact_string(METADATA_TOPIC) + b"\x02" + struct.pack(">i", 0) + b"\x00\x00"
    body = b"\x02" + topic + b"\x00"
    connection.sendall(wire.frame(DESCRIBE_QUORUM, 0, 7, body, flexible=True))
    # correlation id, tags, error code, topics, name, partitions, index, error code, leader
    at = 4 + 1 + 2 + 1 + 1 + len(METADATA_TOPIC) + 1 + 4
    answer = wire.receive(connection)
    (top_error,) = struct.unpack_from(">h", answer, 5)
    if top_error:
        raise wire.WireError(f"DescribeQuorum: error {top_error}")
    error_code, leader = struct.unpack_from(">hi", answer, at)
    if error_code:
        raise wire.WireError(f"DescribeQuorum: error {error_code}")
    return int(leader)
