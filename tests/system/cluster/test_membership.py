"""Brokers of one cluster in one process, on one store: who is there, and who is not any more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.controller.images.broker_records import LastRun
from broker.membership.leased_membership import LeasedMembership
from broker.runtime.startup_errors import StartupError
from broker.runtime.timer import TimerWheel
from config.broker import BrokerConfig
from config.listeners import Listener
from storage.checkpoints.meta_properties import META_PROPERTIES
from storage.environment.clock import SystemClock
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.network.client import Client
from tests.system.conftest import until

SESSION_MS = 1_000


class Cluster:
    """Brokers that are started and stopped one by one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.timer = TimerWheel(asyncio.get_running_loop(), SystemClock())
        self.store = MemoryStore(self.timer)
        self.running: list[Broker] = []

    async def start(self, node_id: int, directory: str = "", **settings: object) -> Broker:
        config = BrokerConfig().replace(
            **{
                "node_id": node_id,
                "log_dirs": (str(self.directory / (directory or str(node_id))),),
                "listeners": (Listener("PLAINTEXT", "127.0.0.1", 0),),
                "admin_listener": None,
                "broker_session_timeout_ms": SESSION_MS,
                "broker_heartbeat_interval_ms": 100,
                **settings,
            }
        )
        broker = Broker(config, store=self.store)
        try:
            await broker.start()
        except BaseException:
            await broker.stop()
            raise
        self.running.append(broker)
        return broker

    async def stop(self, broker: Broker) -> None:
        self.running.remove(broker)
        await broker.stop()

    async def close(self) -> None:
        for broker in list(self.running):
            await self.stop(broker)
        await self.store.aclose()
        self.timer.close()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        await cluster.close()


def membership_of(broker: Broker) -> LeasedMembership:
    assert isinstance(broker.membership, LeasedMembership)
    return broker.membership


def live_in(broker: Broker) -> set[int]:
    """Ids of the brokers that live and are let in, as one of them sees it."""
    assert broker.controller is not None
    brokers = broker.controller.image.brokers.values()
    return {one.node_id for one in brokers if one.is_live and not one.is_fenced}


async def test_three_brokers_that_start_at_once_are_one_cluster(cluster: Cluster) -> None:
    """One gives the new cluster its id; each has an epoch of its own, and any names them all."""
    brokers = await asyncio.gather(*(cluster.start(node_id) for node_id in (1, 2, 3)))
    await until(lambda: all(broker.ready for broker in brokers))
    await until(lambda: all(live_in(broker) == {1, 2, 3} for broker in brokers))
    assert len({broker.cluster_id for broker in brokers}) == 1
    assert len({membership_of(broker).broker_epoch for broker in brokers}) == 3
    ports = {broker.settings.node_id: broker.addresses[0][2] for broker in brokers}
    for broker in brokers:
        client = await Client.connect("127.0.0.1", broker.addresses[0][2])
        try:
            found = {one.node_id: one.port for one in (await client.metadata()).brokers}
        finally:
            await client.close()
        assert found == ports


async def test_a_broker_that_stops_is_seen_to_be_gone_at_once(cluster: Cluster) -> None:
    first, second = await cluster.start(1), await cluster.start(2)
    await until(lambda: live_in(first) == {1, 2})
    await cluster.stop(second)
    await until(lambda: live_in(first) == {1})


async def test_a_broker_that_starts_again_has_a_new_epoch(cluster: Cluster) -> None:
    """Its old session is ended at once: it has the lock of the directory, so that one is dead."""
    first, second = await cluster.start(1), await cluster.start(2)
    await until(lambda: live_in(first) == {1, 2})
    epoch = membership_of(second).broker_epoch
    # As after kill -9: the lease goes on, the process does not.
    await membership_of(second).halt()
    await cluster.stop(second)
    again = await cluster.start(2, broker_session_timeout_ms=60_000)
    await until(lambda: again.ready)
    assert membership_of(again).broker_epoch > epoch


async def test_a_broker_that_stopped_cleanly_says_so_when_it_registers(cluster: Cluster) -> None:
    """By the marker, which has the epoch of the life that ended."""
    first = await cluster.start(1)
    await until(lambda: first.ready)
    assert membership_of(first).registration.ended is LastRun.UNKNOWN
    await cluster.stop(first)
    again = await cluster.start(1)
    await until(lambda: again.ready)
    assert membership_of(again).registration.ended is LastRun.CLEAN


async def test_two_brokers_of_one_id_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    """The second has other directories, which stay as they were; the first goes on."""
    first = await cluster.start(1)
    await until(lambda: first.ready)
    before = await cluster.store.range("directories/")
    refused = "DUPLICATE_BROKER_REGISTRATION: a broker 1 is registered and running, at PLAINTEXT://"
    with pytest.raises(StartupError, match=refused):
        await cluster.start(1, "other")
    assert not (tmp_path / "other" / META_PROPERTIES).exists()
    assert (await cluster.store.range("directories/")).items == before.items
    assert first.ready
    assert not first.failed.done()


async def test_a_lease_that_ends_early_stops_nobody(cluster: Cluster) -> None:
    """The broker is back with the same epoch before its session would have ended."""
    first, second = await cluster.start(1), await cluster.start(2)
    await until(lambda: live_in(first) == {1, 2} and second.ready)
    mine = membership_of(second)
    epoch = mine.broker_epoch
    item = await cluster.store.get("live/2")
    assert item is not None
    await cluster.store.revoke_lease(item.lease)
    await until(lambda: mine.losses == 1 and live_in(first) == {1, 2} and live_in(second) == {1, 2})
    await until(lambda: second.clock.monotonic_ms() < mine.validity.until_ms)
    assert mine.broker_epoch == epoch
    assert second.ready


async def test_a_directory_of_another_store_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    first = await cluster.start(1)
    await cluster.stop(first)
    cluster.store = MemoryStore(cluster.timer)
    with pytest.raises(StartupError, match="belongs to another metadata store"):
        await cluster.start(1)


async def test_a_killed_broker_is_seen_to_be_gone_long_before_its_lease_ends(
    cluster: Cluster,
) -> None:
    """Its connections end, new ones are refused: two others say so, and its lease is revoked."""
    brokers = [
        await cluster.start(node_id, broker_session_timeout_ms=60_000) for node_id in (1, 2, 3)
    ]
    await until(lambda: all(live_in(broker) == {1, 2, 3} for broker in brokers))
    first, second, third = brokers
    await until(lambda: all(b.peers is not None and b.peers.open_connections > 1 for b in brokers))
    # As after kill -9: nothing listens there, and its lease is kept by nobody.
    await membership_of(third).halt()
    assert third.network is not None
    third.network.stop_accepting()
    await third.network.stop(0.0)
    begin_ms = first.clock.monotonic_ms()
    await until(lambda: live_in(first) == live_in(second) == {1, 2})
    assert first.clock.monotonic_ms() - begin_ms < 30_000
    fences = [membership_of(broker).fencing for broker in (first, second)]
    assert sum(fencing.revocations for fencing in fences if fencing is not None) == 1
