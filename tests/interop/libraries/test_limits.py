"""Batches up to the limit and one byte over it, empty ones, and idempotent retries."""

import struct
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Producer
from fastcrc.crc32 import iscsi as crc32c

from bench import wire
from bench.node import OwnedNode
from bench.verify import verify_partition

LIMIT = 100_000
INVALID_RECORD, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, OUT_OF_ORDER_SEQUENCE = 87, 10, 2, 45
INVALID_PRODUCER_EPOCH = 47


def value_for_batch(size: int) -> bytes:
    """A value whose batch of one record without key is `size` bytes long."""
    value = b"v" * (size - len(wire.record_batch([b""])))
    while len(wire.record_batch([value])) > size:
        value = value[:-1]
    assert len(wire.record_batch([value])) == size
    return value


def produce(broker: OwnedNode, topic: str, batch: bytes) -> tuple[int, int]:
    """Error code and base offset of one produced batch."""
    layout = wire.ProduceResponseLayout.of(topic)
    with broker.connect() as connection:
        connection.sendall(wire.produce_frame(topic, 0, batch))
        # The layout counts from the size field, which `receive` has taken off.
        answer = wire.receive(connection)
    error_code, base_offset = struct.unpack_from(">hq", answer, layout.error_code - 4)
    return error_code, base_offset


def create(broker: OwnedNode, topic: str, **configs: str) -> None:
    with broker.connect() as connection:
        wire.create_topic(
            connection, topic, configs={k.replace("_", "."): v for k, v in configs.items()}
        )


@pytest.mark.quick
def test_batch_at_the_limit_and_one_byte_over(broker: OwnedNode, topic: str) -> None:
    """`max.message.bytes` is the largest batch, headers included."""
    create(broker, topic, max_message_bytes=str(LIMIT))
    at_limit = wire.record_batch([value_for_batch(LIMIT)])
    over = wire.record_batch([value_for_batch(LIMIT + 1)])
    assert produce(broker, topic, at_limit) == (0, 0)
    assert produce(broker, topic, over) == (MESSAGE_TOO_LARGE, -1)
    assert produce(broker, topic, at_limit) == (0, 1)
    with broker.connect() as connection:
        verify_partition(connection, topic, 0, expected_records=2)


def test_librdkafka_at_the_limit_and_one_byte_over(
    broker: OwnedNode, topic: str, ran: Callable[[str], None]
) -> None:
    """The default limit, 1 MiB and 12 bytes, with a client that would send more."""
    create(broker, topic)
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "message.max.bytes": 4_000_000,
            "enable.idempotence": True,
        }
    )
    outcomes: list[object] = []
    for size in (1_048_588, 1_048_589):
        producer.produce(
            topic, value_for_batch(size), on_delivery=lambda error, _: outcomes.append(error)
        )
        assert producer.flush(30) == 0
    assert outcomes[0] is None
    assert isinstance(outcomes[1], KafkaError)
    assert outcomes[1].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_empty_batch_is_refused(broker: OwnedNode, topic: str) -> None:
    """A batch that says it holds no record, and a request without a batch: INVALID_RECORD."""
    create(broker, topic)
    tail = struct.pack(">hiqqqhii", 0, -1, -1, -1, -1, -1, -1, 0)
    empty = struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail
    assert produce(broker, topic, empty)[0] == INVALID_RECORD
    assert produce(broker, topic, b"")[0] == INVALID_RECORD
    with broker.connect() as connection:
        assert wire.list_offset(connection, topic, 0) == 0


def test_damaged_batch_is_refused(broker: OwnedNode, topic: str) -> None:
    """One flipped bit below the checksum: CORRUPT_MESSAGE, and the log stays as it was."""
    create(broker, topic)
    batch = bytearray(wire.record_batch([b"value"]))
    batch[-3] ^= 1
    assert produce(broker, topic, bytes(batch))[0] == CORRUPT_MESSAGE
    assert produce(broker, topic, wire.record_batch([b"value"])) == (0, 0)


def test_idempotent_retry_gets_its_first_offset(broker: OwnedNode, topic: str) -> None:
    """KIP-98: a repeated sequence is answered, not appended; a gap and an old epoch are refused."""
    create(broker, topic)
    with broker.connect() as connection:
        producer_id, epoch = wire.init_producer_id(connection)

    def send(sequence: int, *, epoch: int = epoch) -> tuple[int, int]:
        batch = wire.record_batch(
            [b"a", b"b"], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        return produce(broker, topic, batch)

    assert [send(sequence) for sequence in (0, 2, 4)] == [(0, 0), (0, 2), (0, 4)]
    assert send(0) == (0, 0)
    assert send(4) == (0, 4)
    assert send(8)[0] == OUT_OF_ORDER_SEQUENCE
    assert send(6) == (0, 6)
    assert send(0, epoch=epoch + 1) == (0, 8)
    assert send(8)[0] == INVALID_PRODUCER_EPOCH
    with broker.connect() as connection:
        verify_partition(connection, topic, 0, expected_records=10)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_all_acks(broker: OwnedNode, topic: str, acks: int) -> None:
    """acks=0 gets no answer at all; the next request on the connection is answered in its place."""
    create(broker, topic)
    batch = wire.record_batch([b"x"])
    with broker.connect() as connection:
        connection.sendall(wire.produce_frame(topic, 0, batch, correlation_id=1, acks=acks))
        if acks:
            assert struct.unpack(">i", wire.receive(connection)[:4]) == (1,)
        connection.sendall(wire.produce_frame(topic, 0, batch, correlation_id=2))
        answer = wire.receive(connection)
        assert struct.unpack(">i", answer[:4]) == (2,)
        layout = wire.ProduceResponseLayout.of(topic)
        assert struct.unpack_from(">hq", answer, layout.error_code - 4) == (0, 1)
