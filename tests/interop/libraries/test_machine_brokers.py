"""Unmodified clients on two brokers of one machine: any port is a bootstrap server."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.harness.machine_brokers import Brokers
from tests.interop.clients import DEADLINE_S, LIBRARIES, ClientAdapter, Kcat
from tests.interop.records import Sent

COUNT = 50

PATIENT = tuple(client for client in LIBRARIES if client.name != "aiokafka")
"""aiokafka goes on, too, but connects hundreds of times a second to a broker that is away: asyncio
reports some of its refused connections as errors of callbacks, which a test run takes for failures.
"""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    brokers = Brokers(tmp_path_factory.mktemp("machine"))
    brokers.start_and_wait()
    yield brokers
    brokers.close()


def create_topic(brokers: Brokers, topic: str, through: int) -> None:
    """Two partitions, one on each broker."""
    admin = AdminClient({"bootstrap.servers": brokers.address(through)})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(DEADLINE_S)


def produce(client: ClientAdapter, address: str, topic: str, kind: bytes) -> list[Sent]:
    """Records on both partitions."""
    sent = []
    for partition in range(2):
        records = [Sent(b"%d-%d" % (partition, n), kind) for n in range(COUNT)]
        client.produce(address, topic, records, codec="none", partition=partition)
        sent += records
    return sent


@pytest.mark.parametrize("client", LIBRARIES, ids=lambda client: client.name)
def test_a_library_needs_one_port_of_any_broker(
    brokers: Brokers, client: ClientAdapter, ran: Callable[[str], None]
) -> None:
    """It produces by one and consumes by the other; each leads one of the partitions."""
    topic = f"any-port-{client.name}"
    create_topic(brokers, topic, through=1)
    sent = produce(client, brokers.address(1), topic, b"v")
    found = client.consume(brokers.address(0), topic, 2 * COUNT, group=topic)
    assert sorted(record for _, record in found) == sorted(sent)
    ran(f"{client.name} {client.version}")


@pytest.mark.parametrize("client", PATIENT, ids=lambda client: client.name)
def test_a_library_goes_on_over_a_broker_that_is_killed(
    brokers: Brokers, client: ClientAdapter
) -> None:
    """Its partitions have no other replica: what was acknowledged is there when it is back."""
    topic = f"killed-{client.name}"
    create_topic(brokers, topic, through=0)
    sent = produce(client, brokers.address(0), topic, b"before")
    brokers.kill(2)
    sent += produce(client, brokers.address(0), topic, b"after")
    found = client.consume(brokers.address(0), topic, 4 * COUNT, group=topic)
    assert {record for _, record in found} == set(sent)


def test_kcat_lists_both(brokers: Brokers, kcat: Kcat) -> None:
    """By either port."""
    create_topic(brokers, "listed", through=0)
    for asked in range(2):
        text = kcat.run(brokers.address(asked), "-L", "-t", "listed").decode()
        assert all(f"at {brokers.address(index)}" in text for index in range(2))
        assert 'topic "listed" with 2 partitions' in text
