"""Brokers on a real etcd: they join, wait for it, keep their lease, and refuse another store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bench.etcd_server import EtcdServer
from broker.broker import Broker
from broker.membership.leased_membership import LeasedMembership
from broker.runtime.startup_errors import StartupError
from config.broker import BrokerConfig
from config.listeners import Endpoint, Listener, parse_endpoint
from config.store_address import StoreAddress
from tests.fakes.network.client import http_get
from tests.harness.etcd import etcd_or_skip
from tests.system.conftest import Metrics, until

Start = Callable[..., Broker]

SESSION_S = 10.0
"""Where a lease is to be kept: longer than a busy machine keeps a renewal waiting."""


@pytest.fixture
def etcd(tmp_path: Path) -> "EtcdServer":
    return EtcdServer(etcd_or_skip(), tmp_path)


@pytest.fixture
async def make(etcd: EtcdServer, tmp_path: Path) -> AsyncIterator[Start]:
    """Make brokers that are stopped at the end, and the etcd behind them."""
    made: list[Broker] = []

    def make_one(node_id: int, **settings: object) -> Broker:
        store = StoreAddress((parse_endpoint(etcd.endpoint),))
        values: dict[str, object] = {
            "node_id": node_id,
            "log_dirs": (str(tmp_path / f"broker-{node_id}"),),
            "listeners": (Listener("PLAINTEXT", "127.0.0.1", 0),),
            "admin_listener": Endpoint("127.0.0.1", 0),
            "metadata_store": store,
        }
        broker = Broker(BrokerConfig().replace(**{**values, **settings}))
        made.append(broker)
        return broker

    yield make_one
    for broker in made:
        if not broker.health.is_stopping:
            await broker.stop()
    etcd.kill()


def membership_of(broker: Broker) -> LeasedMembership:
    assert isinstance(broker.membership, LeasedMembership)
    return broker.membership


def members(broker: Broker) -> set[int]:
    assert broker.controller is not None
    brokers = broker.controller.image.brokers.values()
    return {one.node_id for one in brokers if one.is_live and not one.is_fenced}


async def test_a_broker_waits_for_etcd_and_says_so(etcd: EtcdServer, make: Start) -> None:
    broker = make(1, broker_session_timeout_ms=int(SESSION_S * 1000))
    starting = asyncio.ensure_future(broker.start())
    await until(lambda: broker.is_waiting)
    assert broker.admin_address is not None
    status, page = await http_get(broker.admin_address, "/readyz")
    assert (status, etcd.endpoint in page) == (503, True)
    assert (await http_get(broker.admin_address, "/healthz"))[0] == 200
    assert (await http_get(broker.admin_address, "/metrics"))[0] == 503
    etcd.start()
    await asyncio.wait_for(starting, 60)
    await until(lambda: broker.ready)
    assert (await http_get(broker.admin_address, "/readyz"))[0] == 200
    metrics = Metrics()

    async def is_let_in() -> bool:
        assert broker.admin_address is not None
        status, text = await http_get(broker.admin_address, "/metrics")
        assert status == 200
        metrics.update(Metrics.parse(text))
        return metrics.of("varve_broker_is_let_in") == 1

    await until(is_let_in)
    assert metrics.of("varve_broker_epoch") == membership_of(broker).broker_epoch > 0
    assert 0 < metrics.of("varve_lease_valid_seconds") < SESSION_S
    assert metrics.of("varve_lease_losses_total") == 0


async def test_three_brokers_join_and_a_lease_is_kept_beyond_its_time(
    etcd: EtcdServer, make: Start
) -> None:
    etcd.start()
    brokers = [
        make(node_id, broker_session_timeout_ms=int(SESSION_S * 1000)) for node_id in (1, 2, 3)
    ]
    await asyncio.gather(*(broker.start() for broker in brokers))
    await until(lambda: all(members(broker) == {1, 2, 3} for broker in brokers))
    first = membership_of(brokers[0])
    renewed_ms = first.keeper.renewed_ms
    await until(lambda: first.keeper.renewed_ms > renewed_ms + 1_100 * SESSION_S)
    assert all(members(broker) == {1, 2, 3} for broker in brokers)
    assert first.losses == 0
    assert brokers[0].local.clock.monotonic_ms() < first.validity.until_ms


async def test_a_broker_is_back_after_etcd_was_away_beyond_its_session(
    etcd: EtcdServer, make: Start
) -> None:
    """Killed and started again: whatever became of the lease, the epoch is the same."""
    etcd.start()
    broker = make(1, broker_session_timeout_ms=2_000)
    await broker.start()
    await until(lambda: broker.ready)
    member = membership_of(broker)
    epoch = member.broker_epoch
    etcd.kill()
    await until(lambda: broker.local.clock.monotonic_ms() > member.validity.until_ms)
    etcd.start()
    await until(lambda: broker.local.clock.monotonic_ms() < member.validity.until_ms)
    await until(lambda: members(broker) == {1})
    assert member.broker_epoch == epoch
    assert not broker.failed.done()


async def test_an_emptied_store_is_refused_and_left_empty(
    etcd: EtcdServer, make: Start, tmp_path: Path
) -> None:
    """Leader epochs would begin again, and two records have one name."""
    etcd.start()
    broker = make(1)
    await broker.start()
    await until(lambda: broker.ready)
    await broker.stop()
    etcd.kill()
    etcd.data.rename(tmp_path / "lost")
    etcd.start()
    again = make(1)
    with pytest.raises(StartupError, match="It was emptied or restored"):
        await asyncio.wait_for(again.start(), 60)
    await again.stop()
    third = make(2)
    await third.start()
    assert third.cluster_id != broker.cluster_id
