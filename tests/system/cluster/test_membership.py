"""Brokers of one cluster in one process, on one store: who is there, and who is not any more."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from typing_extensions import override

from broker.broker import Broker
from broker.controller.images.broker_records import LastRun
from broker.controller.store import until_answered
from broker.controller.store.metadata_store import MetadataStore, StoreUnavailableError
from broker.membership import leased_membership
from broker.membership.fencing import OBJECTION_MS
from broker.membership.leased_membership import LeasedMembership
from broker.runtime.startup_errors import StartupError
from broker.runtime.timer import TimerWheel
from config.broker import BrokerConfig
from config.listeners import Listener
from storage.checkpoints.meta_properties import META_PROPERTIES
from storage.environment.clock import SystemClock
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.network.client import Client
from tests.harness.brokers import CutStore
from tests.system.conftest import until

SESSION_MS = 3_000


class AbsentStore(CutStore):
    """Away for two of its questions, from the one that is given on.

    Attributes:
        asked: How many there were.
    """

    def __init__(self, store: MemoryStore, away_at: int) -> None:
        super().__init__(store)
        self.asked = 0
        self._away = (away_at, away_at + 1)

    @override
    def _check(self) -> None:
        self.asked += 1
        if self.asked in self._away:
            raise StoreUnavailableError(f"away at question {self.asked}")


class Cluster:
    """Brokers that are started and stopped one by one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.timer = TimerWheel(asyncio.get_running_loop(), SystemClock())
        self.store = MemoryStore(self.timer)
        self.running: list[Broker] = []

    async def start(
        self,
        node_id: int,
        directory: str = "",
        store: MetadataStore | None = None,
        **settings: object,
    ) -> Broker:
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
        broker = Broker(config, store=store or self.store)
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


def is_ready_or_failed(broker: Broker) -> bool:
    return broker.ready or broker.failed.done()


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
    first = await cluster.start(1)
    second = await cluster.start(2, broker_session_timeout_ms=30_000)
    await until(lambda: live_in(first) == {1, 2} and second.ready)
    mine = membership_of(second)
    epoch = mine.broker_epoch
    item = await cluster.store.get("live/2")
    assert item is not None
    await cluster.store.revoke_lease(item.lease)
    await until(lambda: mine.losses == 1 and live_in(first) == {1, 2} and live_in(second) == {1, 2})
    await until(lambda: second.local.clock.monotonic_ms() < mine.validity.until_ms)
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
    peers = [b.side.peers for b in brokers if b.side is not None]
    await until(lambda: all(one is not None and one.open_connections > 1 for one in peers))
    # As after kill -9: nothing listens there, and its lease is kept by nobody.
    begin_ms = first.local.clock.monotonic_ms()
    await membership_of(third).halt()
    assert third.network is not None
    third.network.stop_accepting()
    await third.network.stop(0.0)
    await until(lambda: live_in(first) == live_in(second) == {1, 2})
    assert first.local.clock.monotonic_ms() - begin_ms < 30_000
    fences = [membership_of(broker).fencing for broker in (first, second)]
    # Counted when the store has answered, which may be after its image.
    await until(lambda: sum(one.revocations for one in fences if one is not None) == 1)


async def test_a_store_that_goes_away_during_a_start_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever question: a process that ended for it would have to be started by hand."""
    monkeypatch.setattr(until_answered, "TRY_AGAIN_MS", 5.0)
    monkeypatch.setattr(leased_membership, "TRY_AGAIN_MS", 5.0)
    away_at, is_over = 1, False
    while not is_over:
        is_over = True
        store = MemoryStore(cluster.timer)
        # A cluster that is new, then a broker that returns.
        for _ in range(2):
            way = AbsentStore(store, away_at)
            broker = await cluster.start(1, f"away-{away_at}", way)
            await until(partial(is_ready_or_failed, broker))
            assert not broker.failed.done(), broker.failed.result()
            is_over &= way.asked < away_at
            await cluster.stop(broker)
        await store.aclose()
        away_at += 1
    assert away_at > 12, "a start asks more often"


async def test_two_of_three_that_are_killed_at_once_are_gone_before_their_leases_end(
    cluster: Cluster,
) -> None:
    """There is no second witness: the one that is left waits for their objections, a second."""
    brokers = [
        await cluster.start(node_id, broker_session_timeout_ms=60_000) for node_id in (1, 2, 3)
    ]
    await until(lambda: all(live_in(broker) == {1, 2, 3} for broker in brokers))
    peers = [b.side.peers for b in brokers if b.side is not None]
    await until(lambda: all(one is not None and one.open_connections > 1 for one in peers))
    last, *killed = brokers
    begin_ms = last.local.clock.monotonic_ms()
    for broker in killed:
        await membership_of(broker).halt()
    for broker in killed:
        assert broker.network is not None
        broker.network.stop_accepting()
        await broker.network.stop(0.0)
    await until(lambda: live_in(last) == {1})
    took_ms = last.local.clock.monotonic_ms() - begin_ms
    assert OBJECTION_MS <= took_ms < 30_000
    fencing = membership_of(last).fencing
    assert fencing is not None
    await until(lambda: (fencing.suspicions, fencing.revocations) == (2, 2))


async def test_one_whose_own_network_refuses_everything_fences_nobody(cluster: Cluster) -> None:
    """It suspects both others; they live, and say so in the store."""
    brokers = [
        await cluster.start(node_id, broker_session_timeout_ms=60_000) for node_id in (1, 2, 3)
    ]
    await until(lambda: all(live_in(broker) == {1, 2, 3} for broker in brokers))
    first, *others = brokers
    fencing = membership_of(first).fencing
    assert fencing is not None
    for broker in others:
        fencing.suspect(broker.settings.node_id, membership_of(broker).broker_epoch)
    theirs = [membership_of(broker).fencing for broker in others]
    await until(lambda: all(one is not None and one.objections == 1 for one in theirs))
    until_ms = first.local.clock.monotonic_ms() + 2 * OBJECTION_MS
    await until(lambda: first.local.clock.monotonic_ms() > until_ms)
    assert all(live_in(broker) == {1, 2, 3} for broker in brokers)
    assert fencing.revocations == 0
    assert all(membership_of(broker).losses == 0 for broker in others)
