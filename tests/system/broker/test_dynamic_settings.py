"""Settings of a running broker that count at once."""

import asyncio
import socket

import pytest

from bench.node import free_ports
from config.broker import BROKER_KEYS
from config.topic import TOPIC_KEYS
from tests.system.conftest import Connect, StartNode
from tests.system.remote.test_remote_storage import alter_brokers


async def test_connection_limits_and_the_cleaners_rate_change(start_node: StartNode) -> None:
    """And are in force again after a restart."""
    node = await start_node()
    client = await node.client()
    await alter_brokers(client, max_connections="1", log_cleaner_io_max_bytes_per_second="5")
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    await alter_brokers(client, max_connections="2")
    await (await node.client()).metadata()
    await node.stop()
    node = await start_node()
    assert node.broker.network is not None
    assert node.broker.network.limits.max_connections == 2
    assert node.broker.dynamic is not None
    assert node.broker.dynamic.current.log_cleaner_io_max_bytes_per_second == 5.0


async def test_remote_settings_change(start_node: StartNode) -> None:
    """The remote log is told, whether or not a topic has needed it."""
    node = await start_node(remote_log_storage_system_enable=True, tier_worker="inline")
    client = await node.client()
    remote = node.broker.remote
    assert remote is not None
    await alter_brokers(client, remote_fetch_max_wait_ms="77", tier_fetch_paused="true")
    assert (remote.settings.remote_fetch_max_wait_ms, remote.settings.tier_fetch_paused) == (
        77,
        True,
    )
    await client.create_topic("t", 1, remote_storage_enable="true")
    await alter_brokers(client, remote_log_manager_copier_thread_pool_size="20")
    assert remote.manager is not None
    assert remote.manager.copier_pool.size == 20


async def test_verification_of_old_transactions_changes(start_node: StartNode) -> None:
    """For the logs there are, and those that come."""
    node = await start_node()
    client = await node.client()
    await client.create_topic("before")

    def required(topic: str) -> bool:
        log = node.broker.replicas.log_of(topic, 0)
        assert log is not None
        return log.producer_state.requires_verification

    assert required("before")
    await alter_brokers(client, transaction_partition_verification_enable="false")
    await client.create_topic("after")
    assert (required("before"), required("after")) == (False, False)
    await node.stop()
    node = await start_node()
    await (await node.client()).metadata("before")
    assert not required("before")


async def test_listeners_come_and_go(start_node: StartNode, connect: Connect) -> None:
    """At once, told to clients that come by them, and in force again after a restart."""
    node = await start_node()
    client = await node.client()
    (told,) = (await client.metadata()).brokers
    (first,) = free_ports(1)
    listeners = f"PLAINTEXT://127.0.0.1:{node.port}"
    await alter_brokers(
        client,
        broker="1",
        listeners=f"{listeners},NEW://127.0.0.1:{first}",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,NEW:PLAINTEXT",
    )
    guest = await connect("127.0.0.1", first)
    (broker,) = (await guest.metadata()).brokers
    assert (broker.host, broker.port) == ("127.0.0.1", first)
    (broker,) = (await client.metadata()).brokers
    assert broker.port == told.port
    await node.stop()
    node = await start_node()
    guest = await connect("127.0.0.1", first)
    await guest.metadata()
    client = await node.client()
    await alter_brokers(client, broker="1", listeners=listeners)
    await guest.closed_by_broker()
    with pytest.raises(ConnectionError):
        await connect("127.0.0.1", first)


async def test_a_listener_that_cannot_be_bound_is_said(start_node: StartNode) -> None:
    """The others serve, also at the next start."""
    node = await start_node()
    client = await node.client()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listeners = f"PLAINTEXT://127.0.0.1:{node.port}"
        await alter_brokers(
            client,
            broker="1",
            listeners=f"{listeners},NEW://127.0.0.1:{port}",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,NEW:PLAINTEXT",
        )
        assert (
            f"listener-not-bound: NEW: cannot listen on NEW://127.0.0.1:{port}"
            in (await node.page("/readyz"))[1]
        )
        await node.stop()
        node = await start_node()
        client = await node.client()
        assert "listener-not-bound: NEW" in (await node.page("/readyz"))[1]
    await alter_brokers(client, broker="1", listeners=f"PLAINTEXT://127.0.0.1:{node.port}")
    assert (await node.page("/readyz"))[1] == "ready\n"


async def test_numbers_of_workers_and_threads_change(start_node: StartNode) -> None:
    node = await start_node(num_network_threads=2, num_io_threads=4)
    client = await node.client()
    network = node.broker.network
    assert network is not None
    await alter_brokers(
        client,
        num_network_threads="4",
        num_io_threads="8",
        background_threads="20",
        log_cleaner_backoff_ms="77",
        log_cleaner_io_buffer_size="1048576",
        producer_id_expiration_ms="1234",
    )
    assert len(list(network.processors)) == 4
    assert network.channel.worker_count == 8
    await client.create_topic("t")
    await client.produce("t", b"v")
    log = node.broker.replicas.log_of("t", 0)
    assert log is not None
    assert log.producer_state.expiration_ms == 1234
    await alter_brokers(client, num_network_threads="2")
    assert len(list(network.processors)) >= 2
    await (await node.client()).metadata()


async def test_every_setting_that_may_change_is_applied(start_node: StartNode) -> None:
    """One that is accepted, shown and not used is a lie: it is applied, or read-only."""
    node = await start_node(remote_log_storage_system_enable=True, tier_worker="inline")
    assert node.broker.dynamic is not None
    applied = {synonym.key for row in TOPIC_KEYS.values() for synonym in row.synonyms}
    applied.update(*(keys for keys, _ in node.broker.dynamic._subscribers))
    assert {name for name, row in BROKER_KEYS.items() if row.dynamic} <= applied
