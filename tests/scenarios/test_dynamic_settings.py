"""Settings of a running broker that count at once."""

import asyncio

from tests.scenarios.conftest import StartNode
from tests.scenarios.test_remote_storage import alter_brokers


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
    assert (remote.settings.fetch_max_wait_ms, remote.settings.fetch_paused) == (77, True)
    await client.create_topic("t", 1, remote_storage_enable="true")
    await alter_brokers(client, remote_log_manager_copier_thread_pool_size="20")
    assert remote.manager is not None
    assert remote.manager.settings.copier_tasks == 20


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
