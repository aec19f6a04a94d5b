import pytest

from pipeline.read.broker.cluster import CONNECTIONS_MAX, BrokerCluster, parse_addresses
from pipeline.read.broker.errors import BrokerError
from storage.environment.clock import sleep_ms
from tests.fakes.clock import ManualClock
from tests.fakes.kafka.memory_cluster import KafkaCluster


def test_addresses_are_taken_apart() -> None:
    text = "one:1, two:2,PLAINTEXT://three:3,[::1]:4"
    assert parse_addresses(text) == [("one", 1), ("two", 2), ("three", 3), ("::1", 4)]
    with pytest.raises(BrokerError, match="'two' is not host:port"):
        parse_addresses("one:1,two")


def test_connections_are_kept_and_bounded() -> None:
    fake = KafkaCluster(CONNECTIONS_MAX + 5)
    cluster = BrokerCluster(fake.options, ManualClock(), sleep_ms, fake.dial)
    first = cluster.connection(("node1", 9092))
    assert cluster.connection(("node1", 9092)) is first
    for host in fake.nodes.values():
        cluster.connection((host, 9092))
    assert fake.open == CONNECTIONS_MAX
    cluster.close()
    assert fake.open == 0


def test_a_broken_connection_is_made_anew() -> None:
    fake = KafkaCluster()
    cluster = BrokerCluster(fake.options, ManualClock(), sleep_ms, fake.dial)
    first = cluster.connection(("node1", 9092))
    first.close()
    assert cluster.connection(("node1", 9092)) is not first
    cluster.close()
