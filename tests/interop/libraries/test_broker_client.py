"""The pipeline's own client against Varve and against released Kafka, beside librdkafka."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka_release import KAFKA_VERSION
from bench.node import KafkaNode, OwnedNode, VarveNode
from pipeline.plan.piece import BrokerPiece, PartitionName
from pipeline.read.broker.client import EARLIEST, LATEST, NO_OFFSET, BrokerClient
from pipeline.read.broker.errors import TopicGoneError
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.piece.piece_rows import ReadOptions, read_piece
from pipeline.read.read_errors import LostOffsetsError
from tests.interop.conftest import PROPERTIES

Row = tuple[int, bytes | None, bytes | None, int]
"""Offset, key, value, timestamp in ms."""

TIMEOUT_S = 30
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module", params=["varve", f"kafka-{KAFKA_VERSION}"])
def node(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[OwnedNode]:
    kind = VarveNode if request.param == "varve" else KafkaNode
    made = kind(tmp_path_factory.mktemp(request.param), PROPERTIES)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(node: OwnedNode, ran: Callable[[str], None]) -> Iterator[BrokerClient]:
    ran(f"pipeline ({node.name})")
    with BrokerClient(BrokerOptions(node.address)) as client:
        yield client


@pytest.fixture
def admin(node: OwnedNode) -> AdminClient:
    return AdminClient({"bootstrap.servers": node.address})


@pytest.fixture
def orders(admin: AdminClient, client: BrokerClient, topic: str) -> PartitionName:
    """A topic of one partition."""
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    return PartitionName(topic, client.topics([topic])[topic].topic_id, 0)


def produce(
    node: OwnedNode, topic: str, count: int, *, transaction: str = "", **settings: Any
) -> None:
    """Records whose times ascend; `transaction` is "commit" or "abort"."""
    producer = Producer(
        {
            "bootstrap.servers": node.address,
            "linger.ms": 5,
            **({"transactional.id": f"{topic}-{transaction}"} if transaction else {}),
            **settings,
        }
    )
    if transaction:
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
    for number in range(count):
        producer.produce(
            topic,
            b"value %d" % number + b"." * 200,
            b"key-%d" % number if number % 3 else None,
            partition=0,
            timestamp=FIRST_MS + number,
        )
    producer.flush(TIMEOUT_S)
    if transaction == "commit":
        producer.commit_transaction(TIMEOUT_S)
    elif transaction == "abort":
        producer.abort_transaction(TIMEOUT_S)


def mixed(node: OwnedNode, topic: str) -> None:
    """All codecs, and transactions of both kinds."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(node, topic, 150, **{"compression.type": codec})
    for transaction in ("commit", "abort", "commit", "abort"):
        produce(node, topic, 40, transaction=transaction, **{"compression.type": "lz4"})
        produce(node, topic, 7)


def consumed(node: OwnedNode, topic: str, isolation: str) -> list[Row]:
    """What librdkafka gives."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.address,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    rows: list[Row] = []
    while True:
        (message,) = consumer.consume(1, TIMEOUT_S)
        if message.error() is not None:
            break
        offset = message.offset()
        assert offset is not None
        rows.append((offset, message.key(), message.value(), message.timestamp()[1]))
    consumer.close()
    return rows


def rows_of(node: OwnedNode, piece: BrokerPiece, **changes: Any) -> list[Row]:
    """What `read_piece` gives."""
    options = ReadOptions(
        broker=BrokerOptions(node.address), columns=("offset", "key", "value", "timestamp")
    )._replace(**changes)
    rows: list[Row] = []
    for batch in read_piece(piece, options):
        columns = [batch.column(name) for name in ("offset", "key", "value")]
        times = [us // 1000 for us in batch.column("timestamp").cast("int64").to_pylist()]
        rows += zip(*(column.to_pylist() for column in columns), times, strict=True)
    return rows


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_are_those_of_librdkafka(
    node: OwnedNode, client: BrokerClient, orders: PartitionName, isolation: str
) -> None:
    mixed(node, orders.topic)
    committed = isolation == "read_committed"
    one = (orders.topic, 0)
    end = client.list_offsets({one: LATEST}, read_committed=committed)[one].offset
    expected = consumed(node, orders.topic, isolation)
    found = rows_of(node, BrokerPiece(orders, -1, 0, end), read_committed=committed)
    assert found == expected
    assert len(found) == 750 + 28 + (80 if committed else 160)
    middle = rows_of(node, BrokerPiece(orders, -1, 300, 820), read_committed=committed)
    assert middle == [row for row in expected if 300 <= row[0] < 820]


def test_many_small_answers_are_the_same(
    node: OwnedNode, client: BrokerClient, orders: PartitionName
) -> None:
    for _ in range(20):
        produce(node, orders.topic, 20)
    end = 400
    small = BrokerOptions(node.address, fetch_max_bytes=3000)
    piece = BrokerPiece(orders, -1, 0, end)
    assert rows_of(node, piece, broker=small) == consumed(node, orders.topic, "read_committed")


def test_offsets_by_time_and_at_the_ends(
    node: OwnedNode, client: BrokerClient, orders: PartitionName
) -> None:
    produce(node, orders.topic, 50)
    one = (orders.topic, 0)

    def asked(timestamp: int) -> int:
        return client.list_offsets({one: timestamp}, read_committed=True)[one].offset

    assert (asked(EARLIEST), asked(LATEST)) == (0, 50)
    consumer = Consumer({"bootstrap.servers": node.address, "group.id": "nobody"})
    for timestamp in (0, FIRST_MS, FIRST_MS + 17, FIRST_MS + 49):
        (told,) = consumer.offsets_for_times([TopicPartition(*one, timestamp)], TIMEOUT_S)
        assert asked(timestamp) == told.offset
    assert asked(FIRST_MS + 50) == NO_OFFSET
    consumer.close()


def test_an_open_transaction_holds_the_committed_end(
    node: OwnedNode, client: BrokerClient, orders: PartitionName
) -> None:
    produce(node, orders.topic, 5)
    producer = Producer({"bootstrap.servers": node.address, "transactional.id": orders.topic})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(orders.topic, b"open", partition=0)
    producer.flush(TIMEOUT_S)
    one = (orders.topic, 0)
    assert client.list_offsets({one: LATEST}, read_committed=True)[one].offset == 5
    assert client.list_offsets({one: LATEST}, read_committed=False)[one].offset == 6
    producer.abort_transaction(TIMEOUT_S)


def test_leader_epochs_tell_where_they_ended(
    node: OwnedNode, client: BrokerClient, orders: PartitionName
) -> None:
    produce(node, orders.topic, 5)
    one = (orders.topic, 0)
    epoch = client.topics([orders.topic])[orders.topic].partitions[0].leader_epoch
    assert client.epoch_ends({one: epoch})[one] == (epoch, 5)


def test_records_that_were_deleted_are_lost(
    node: OwnedNode, admin: AdminClient, orders: PartitionName
) -> None:
    produce(node, orders.topic, 50)
    target = TopicPartition(orders.topic, 0, 20)
    admin.delete_records([target])[target].result(TIMEOUT_S)
    piece = BrokerPiece(orders, -1, 0, 50)
    with pytest.raises(LostOffsetsError, match="offsets 0 to 19 are lost: the log starts at 20"):
        rows_of(node, piece)
    found = rows_of(node, piece, fail_on_data_loss=False)
    assert [row[0] for row in found] == [*range(20, 50)]


def test_offsets_beyond_the_end_are_lost(node: OwnedNode, orders: PartitionName) -> None:
    produce(node, orders.topic, 5)
    with pytest.raises(LostOffsetsError, match="offsets 9 to 19 are lost: the log ends at 5"):
        rows_of(node, BrokerPiece(orders, -1, 9, 20))


def test_a_topic_that_was_made_anew_is_lost(
    node: OwnedNode, admin: AdminClient, client: BrokerClient, orders: PartitionName
) -> None:
    produce(node, orders.topic, 5)
    admin.delete_topics([orders.topic])[orders.topic].result(TIMEOUT_S)
    with pytest.raises(LostOffsetsError, match="does not exist any more"):
        rows_of(node, BrokerPiece(orders, -1, 0, 5))
    admin.create_topics([NewTopic(orders.topic, 1, 1)])[orders.topic].result(TIMEOUT_S)
    produce(node, orders.topic, 5)
    with pytest.raises(LostOffsetsError, match="was deleted and recreated"):
        rows_of(node, BrokerPiece(orders, -1, 0, 5))
    with pytest.raises(TopicGoneError):
        client.check_incarnation(orders)
