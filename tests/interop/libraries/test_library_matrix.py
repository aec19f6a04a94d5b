"""What one client library writes, every library reads unchanged, in all codecs it has."""

from collections.abc import Callable

import pytest

from bench import wire
from bench.node import OwnedNode
from tests.interop.clients import LIBRARIES, ClientAdapter, Kcat
from tests.interop.records import CODECS, Sent, sample

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("producer", LIBRARIES, ids=lambda client: client.name)
def test_records_come_back_unchanged(
    broker: OwnedNode,
    topic: str,
    producer: ClientAdapter,
    codec: str,
    ran: Callable[[str], None],
) -> None:
    """Keys, values, headers and nulls survive, at the offsets that were acknowledged."""
    if codec not in producer.codecs:
        # Not a skip: this pair does not exist in the installed library.
        assert producer.name == "kafka-python"
        assert codec in ("snappy", "zstd")
        return
    with broker.connect() as connection:
        wire.create_topic(connection, topic)
    records = sample(null_headers=producer.null_headers)
    offsets = producer.produce(broker.address, topic, records, codec=codec)
    assert offsets == list(range(len(records)))
    ran(f"{producer.name} {producer.version}")
    for consumer in LIBRARIES:
        if codec not in consumer.codecs:
            continue
        group = f"{topic}-{consumer.name}"
        found = consumer.consume(broker.address, topic, len(records), group=group)
        assert found == list(enumerate(records)), consumer.name
        ran(f"{consumer.name} {consumer.version}")


def test_committed_offsets_are_where_the_next_member_begins(
    broker: OwnedNode, topic: str, library: ClientAdapter
) -> None:
    """A second member of a group gets what the first has not committed, and nothing else."""
    with broker.connect() as connection:
        wire.create_topic(connection, topic)
    first = [Sent(b"%d" % n, b"first") for n in range(10)]
    second = [Sent(b"%d" % n, b"second") for n in range(10)]
    library.produce(broker.address, topic, first, codec="none")
    assert len(library.consume(broker.address, topic, 10, group=topic)) == 10
    library.produce(broker.address, topic, second, codec="none")
    found = library.consume(broker.address, topic, 10, group=topic)
    assert found == [(10 + n, record) for n, record in enumerate(second)]


@pytest.mark.parametrize("codec", CODECS)
def test_kcat_writes_and_reads(broker: OwnedNode, topic: str, kcat: Kcat, codec: str) -> None:
    """Kcat produces lines with keys and reads them back through a group."""
    with broker.connect() as connection:
        wire.create_topic(connection, topic)
    records = [Sent(b"k%d" % n, b"line %d" % n) for n in range(50)]
    kcat.produce(broker.address, topic, records, codec=codec)
    assert kcat.consume(broker.address, topic, 50, group=topic) == list(enumerate(records))


def test_kcat_lists_the_cluster(broker: OwnedNode, topic: str, kcat: Kcat) -> None:
    """Metadata names the broker, the topic and a leader for each partition."""
    with broker.connect() as connection:
        wire.create_topic(connection, topic, partitions=3)
    text = kcat.run(broker.address, "-L", "-t", topic).decode()
    assert f"at 127.0.0.1:{broker.port}" in text
    assert f'topic "{topic}" with 3 partitions' in text


def test_topic_is_created_by_its_first_record(
    broker: OwnedNode, topic: str, library: ClientAdapter
) -> None:
    """`auto.create.topics.enable` is on by default, as in Kafka."""
    assert library.produce(broker.address, topic, [Sent(None, b"x")], codec="none") == [0]
    assert library.consume(broker.address, topic, 1, group=topic) == [(0, Sent(None, b"x"))]
