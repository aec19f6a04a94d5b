"""Where librdkafka hangs, not the broker: with Kafka as with Varve.

- After a broker's restart `send_offsets_to_transaction` waits for ever: librdkafka still waits for
  the broker object that it has given up itself. The jobs of the workload do without
  re-bootstrapping; see `LASTING`.
- A member whose question for committed offsets meets a broker that is no longer the coordinator
  reads no more, and gives nothing back. The members of the workload join again; see
  `has_given_up`.
"""

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer

from bench.node import REPOSITORY
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    encode_response,
)
from tests.checker.brokers import create_topic, new_broker
from tests.checker.clients.client_process import CLASSIC, CONSUMER, LASTING, has_given_up

pytestmark = pytest.mark.interop

# A call that knows no timeout is best made by a process that can be ended.
PROGRAM = """
import sys
from confluent_kafka import Consumer, Producer, TopicPartition
address, strategy = sys.argv[1:]
settings = {
    "bootstrap.servers": address,
    "metadata.recovery.strategy": strategy,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,
    "error_cb": lambda _: None,
}
consumer = Consumer({"group.id": "group", **settings})
consumer.subscribe(["in"])
while not consumer.assignment():
    consumer.poll(0.1)
producer = Producer({"transactional.id": "job", "transaction.timeout.ms": 60_000, **settings})
producer.init_transactions(30)
for offset in range(2):
    producer.begin_transaction()
    producer.produce("in", b"", partition=0)
    at = [TopicPartition("in", 0, offset)]
    producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), 5)
    producer.commit_transaction(30)
    print("committed", flush=True)
    if offset == 0:
        sys.stdin.readline()
"""

KAFKA = pytest.param("kafka", marks=pytest.mark.slow)


def ends(kind: str, strategy: str, directory: Path, patience_s: float) -> bool:
    """Two transactions with offsets, a kill of the broker between them: does the second one end?"""
    node = new_broker(kind, directory)
    process = None
    try:
        node.start()
        create_topic(node, "in", 1)
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, node.address, strategy],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "committed\n"
        node.kill()
        node.start()
        try:
            rest, _ = process.communicate("\n", timeout=patience_s)
        except subprocess.TimeoutExpired:
            return False
        assert process.returncode == 0
        return rest == "committed\n"
    finally:
        if process is not None:
            process.kill()
            process.communicate()
        node.kill()


@pytest.mark.parametrize("kind", ["varve", KAFKA])
def test_offsets_are_sent_after_a_restart(tmp_path: Path, kind: str) -> None:
    """What the broker answers lets a client go on that looks for the coordinator again."""
    assert ends(kind, LASTING["metadata.recovery.strategy"], tmp_path, 40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["varve", "kafka"])
def test_a_client_that_bootstraps_again_hangs(tmp_path: Path, kind: str) -> None:
    """With both brokers alike; when this fails, librdkafka is mended and `LASTING` can go."""
    assert not ends(kind, "rebootstrap", tmp_path, 20)


class RefusingProxy:
    """In front of one broker; to the first OffsetFetch it says NOT_COORDINATOR, as brokers do.

    An election between two questions has the same effect, on a connection that lives on.

    Attributes:
        port: Where it listens.
        refused: How many OffsetFetches it has answered itself.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.refused = 0

    def start(self, broker_port: int) -> None:
        """Pass connections on."""
        self._run(lambda: self._accept(broker_port))

    def close(self) -> None:
        """End everything; its threads end by that."""
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _run(self, work: Callable[[], None]) -> None:
        def until_closed() -> None:
            with contextlib.suppress(OSError):
                work()

        threading.Thread(target=until_closed, daemon=True).start()

    def _accept(self, broker_port: int) -> None:
        while True:
            client, _ = self._listener.accept()
            broker = socket.create_connection(("127.0.0.1", broker_port))
            self._sockets += client, broker
            self._run(partial(self._requests, client, broker))
            self._run(partial(self._answers, client, broker))

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        try:
            while True:
                size = _exactly(client, 4)
                request = _exactly(client, *struct.unpack(">i", size))
                key, version, correlation_id = struct.unpack_from(">hhi", request)
                if key == ApiKey.OFFSET_FETCH and not self.refused:
                    self.refused += 1
                    client.sendall(_refusal(version, correlation_id))
                else:
                    broker.sendall(size + request)
        finally:
            broker.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _answers(client: socket.socket, broker: socket.socket) -> None:
        try:
            while piece := broker.recv(65_536):
                client.sendall(piece)
        finally:
            client.shutdown(socket.SHUT_RDWR)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            raise ConnectionError
        found += piece
    return found


def _refusal(version: int, correlation_id: int) -> bytes:
    group = OffsetFetchResponseGroup(group_id="group", error_code=ErrorCode.NOT_COORDINATOR)
    body = encode_response(OffsetFetchResponse(groups=[group]), version)
    # The header of flexible versions ends with a count of tags.
    return struct.pack(">iix", len(body) + 5, correlation_id) + body


@contextlib.contextmanager
def member(port: int, protocol: str) -> Iterator[Consumer]:
    """A member of the group that reads `in` from its beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "group",
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["in"])
    try:
        yield consumer
    finally:
        consumer.close()


def polled(consumer: Consumer, patience_s: float, until: Callable[[list[Message]], bool]) -> bool:
    """Whether what a member polls is at some time what is waited for."""
    found: list[Message] = []
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        message = consumer.poll(0.1)
        if message is not None:
            found.append(message)
            if until(found):
                return True
    return False


def has_records(messages: list[Message]) -> bool:
    """Whether there is one that is no error."""
    return any(message.error() is None for message in messages)


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
@pytest.mark.parametrize("kind", ["varve", KAFKA])
def test_a_member_that_was_sent_away_reads_no_more(
    tmp_path: Path, kind: str, protocol: str
) -> None:
    """With both brokers alike; when this fails, librdkafka is mended, `has_given_up` can go.

    Who joins in its place reads.
    """
    proxy = RefusingProxy()
    node = new_broker(kind, tmp_path, advertised_port=proxy.port)
    try:
        node.start()
        proxy.start(node.port)
        create_topic(node, "in", 1)
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{proxy.port}", "log_level": 0})
        producer.produce("in", b"")
        assert producer.flush(30) == 0
        with member(proxy.port, protocol) as first:
            assert polled(first, 30, has_given_up)
            assert proxy.refused == 1
            assert not polled(first, 3, has_records)
            assert first.assignment()
        with member(proxy.port, protocol) as second:
            assert polled(second, 30, has_records)
        assert proxy.refused == 1
    finally:
        proxy.close()
        node.kill()
