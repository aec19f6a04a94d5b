import os
import socket

import pytest

from pipeline.read.broker.connection import UNDER_WAY_MAX, BrokerConnection, Wire, dial
from pipeline.read.broker.errors import BrokerError, BrokerUnreachableError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.fakes.kafka.memory_cluster import Drop, KafkaCluster


def connected(cluster: KafkaCluster) -> BrokerConnection:
    return BrokerConnection(
        "node1",
        9092,
        client_id="test",
        connect_timeout_ms=1000,
        request_timeout_ms=2000,
        dial=cluster.dial,
    )


def named(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


@pytest.fixture
def cluster() -> KafkaCluster:
    cluster = KafkaCluster()
    cluster.add_topic("a")
    cluster.add_topic("b")
    return cluster


def test_requests_go_out_in_the_newest_version_that_both_speak(cluster: KafkaCluster) -> None:
    cluster.versions[ApiKey.METADATA] = (0, 9)
    connection = connected(cluster)
    assert [one.name for one in connection.call(named("a", "b")).topics] == ["a", "b"]
    assert cluster.log[-1][:3] == (1, ApiKey.METADATA, 9)
    connection.call(named("a"), 8)
    assert cluster.log[-1][2] == 8


def test_an_api_of_which_no_version_is_known_is_refused(cluster: KafkaCluster) -> None:
    cluster.versions[ApiKey.METADATA] = (40, 41)
    connection = connected(cluster)
    with pytest.raises(BrokerError, match="speaks versions 40 to 41 of METADATA"):
        connection.call(named("a"))
    del cluster.versions[ApiKey.METADATA]
    with pytest.raises(BrokerError, match="speaks versions 0 to -1"):
        connected(cluster).call(named("a"))


class CutWire:
    """Gives out at most `count` bytes at a time, and `first` before all others."""

    def __init__(self, wire: Wire, count: int) -> None:
        self._wire = wire
        self._count = count
        self.first = b""
        self.sendall, self.settimeout, self.close = wire.sendall, wire.settimeout, wire.close

    def recv_into(self, buffer: memoryview) -> int:
        buffer = buffer[: self._count]
        if not self.first:
            return self._wire.recv_into(buffer)
        count = min(len(buffer), len(self.first))
        buffer[:count], self.first = self.first[:count], self.first[count:]
        return count


def cut_connection(cluster: KafkaCluster, count: int) -> tuple[BrokerConnection, CutWire]:
    wires: list[CutWire] = []

    def cut_dial(host: str, port: int, timeout_s: float) -> Wire:
        wires.append(CutWire(cluster.dial(host, port, timeout_s), count))
        return wires[0]

    connection = BrokerConnection(
        "node1", 9092, client_id="", connect_timeout_ms=1, request_timeout_ms=1, dial=cut_dial
    )
    return connection, wires[0]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 1000])
def test_answers_come_out_however_they_are_cut(cluster: KafkaCluster, count: int) -> None:
    """Two of them in one piece, or one in many."""
    connection, _ = cut_connection(cluster, count)
    pending = [connection.send(named(name)) for name in "abba"]
    assert [one.wait().topics[0].name for one in pending] == list("abba")


def test_a_large_answer_that_is_only_announced_takes_no_memory(cluster: KafkaCluster) -> None:
    """2 GiB are reserved; used is what has come."""
    connection, wire = cut_connection(cluster, 1000)
    wire.first = ((1 << 31) - 1).to_bytes(4, "big") + bytes(100)
    before = resident_bytes()
    pending = connection.send(named("a"))
    with pytest.raises(BrokerUnreachableError, match="has not answered"):
        pending.wait()
    assert resident_bytes() - before < 16 << 20


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("size", [-1, 3])
def test_a_size_that_no_answer_has_ends_the_connection(cluster: KafkaCluster, size: int) -> None:
    connection, wire = cut_connection(cluster, 1000)
    wire.first = size.to_bytes(4, "big", signed=True)
    pending = connection.send(named("a"))
    with pytest.raises(BrokerUnreachableError, match=f"frame of {size} bytes announced"):
        pending.wait()
    assert connection.is_broken


def test_answers_are_given_to_who_asked(cluster: KafkaCluster) -> None:
    connection = connected(cluster)
    first, second = connection.send(named("a")), connection.send(named("b"))
    assert second.wait().topics[0].name == "b"
    assert first.wait().topics[0].name == "a"


def test_only_so_many_requests_are_under_way(cluster: KafkaCluster) -> None:
    connection = connected(cluster)
    for _ in range(UNDER_WAY_MAX):
        connection.send(named("a"))
    with pytest.raises(BrokerError, match="under way"):
        connection.send(named("a"))


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Drop.CONNECTION, "the connection to node1:9092 has ended: it was closed by the broker"),
        (Drop.HALF, "the connection to node1:9092 has ended"),
        (Drop.SILENCE, "node1:9092 has not answered within 2000 ms"),
        (Drop.GARBAGE, "node1:9092 has not answered|node1:9092 answers out of order|Kafka's"),
    ],
)
def test_a_connection_that_fails_is_broken_for_good(
    cluster: KafkaCluster, fault: Drop, text: str
) -> None:
    connection = connected(cluster)
    cluster.fail(ApiKey.METADATA, fault)
    first = connection.send(named("a"))
    with pytest.raises(BrokerUnreachableError, match=text):
        first.wait()
    assert connection.is_broken
    with pytest.raises(BrokerUnreachableError, match="has ended"):
        connection.send(named("b"))
    assert cluster.open == 0


def test_who_does_not_speak_kafkas_protocol_is_told_as_such(cluster: KafkaCluster) -> None:
    cluster.fail(ApiKey.API_VERSIONS, Drop.GARBAGE)
    with pytest.raises(BrokerUnreachableError, match="node1:9092"):
        connected(cluster)
    assert cluster.open == 0


def test_a_broker_that_refuses_api_versions_is_told_as_such(cluster: KafkaCluster) -> None:
    cluster.fail(ApiKey.API_VERSIONS, ErrorCode.UNSUPPORTED_VERSION)
    with pytest.raises(BrokerError, match="answers ApiVersions with error 35"):
        connected(cluster)


def test_nobody_there_is_told_with_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(BrokerUnreachableError, match=rf"no connection to 127\.0\.0\.1:{port}"):
        BrokerConnection(
            "127.0.0.1", port, client_id="x", connect_timeout_ms=500, request_timeout_ms=500
        )


def test_the_machines_own_connection_has_a_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        wire = dial("127.0.0.1", deaf.getsockname()[1], 1.0)
        wire.settimeout(0.01)
        with pytest.raises(TimeoutError):
            wire.recv_into(memoryview(bytearray(1)))
        wire.close()


def test_a_connection_that_takes_too_long_is_told_as_such() -> None:
    def slow(host: str, port: int, timeout_s: float) -> socket.socket:
        raise TimeoutError("timed out")

    with pytest.raises(BrokerUnreachableError, match="within 700 ms"):
        BrokerConnection(
            "h", 1, client_id="x", connect_timeout_ms=700, request_timeout_ms=1, dial=slow
        )


def test_the_first_answer_has_a_deadline_of_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        with pytest.raises(BrokerUnreachableError, match="not answered within 20 ms"):
            BrokerConnection(
                "127.0.0.1",
                port,
                client_id="x",
                connect_timeout_ms=500,
                request_timeout_ms=60_000,
                versions_timeout_ms=20,
            )
