"""Metrics of in-sync replicas come from what the leader has of each partition."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.metrics.in_sync import InSyncMetrics
from config.topic import TopicConfig
from tests.unit.broker.replication.followers.follower_world import FollowerWorld, record


@pytest.fixture
async def f(tmp_path: Path) -> AsyncIterator[FollowerWorld]:
    made = FollowerWorld(tmp_path)
    yield made
    made.close()


async def figures(f: FollowerWorld, changes: Any = None) -> dict[str, float]:
    metrics = InSyncMetrics(f.replicas, f.followers, changes, f.clock)
    return {
        sample.name: sample.value async for family in metrics.collect() for sample in family.samples
    }


async def test_partitions_are_counted_by_their_isr(f: FollowerWorld) -> None:
    for number, isr in enumerate([(1, 2, 3), (1, 2), (1,)]):
        partition = f.add(f"t{number}", config=TopicConfig(min_insync_replicas=2))
        partition.become_leader(record(isr), now_ms=0.0)
    f.add("alone")
    f.led("followed").become_follower(2, 6)
    found = await figures(f)
    assert found["kafka_server_replicamanager_leadercount"] == 4
    assert found["kafka_server_replicamanager_underreplicatedpartitions"] == 2
    assert found["kafka_server_replicamanager_underminisrpartitioncount"] == 1
    assert found["kafka_server_replicamanager_atminisrpartitioncount"] == 2
    assert found["varve_partitions_in_doubt"] == 0


async def test_changes_and_fetches_are_counted(f: FollowerWorld) -> None:
    partition = f.led()
    f.write(partition, b"a")
    f.fetch({"t": 0})
    f.park({"t": 1}, replica=3)
    await asyncio.sleep(0)
    changes = SimpleNamespace(expanded=3, shrunk=2, failed=1)
    found = await figures(f, changes)
    assert found["kafka_server_replicamanager_isrexpands_total"] == 3
    assert found["kafka_server_replicamanager_isrshrinks_total"] == 2
    assert found["kafka_server_replicamanager_failedisrupdates_total"] == 1
    assert found["varve_follower_fetch_bytes_total"] == partition.log.size()
    assert found["varve_follower_fetch_parked"] == 1
    assert found["varve_follower_fetch_sessions"] == 2
    assert found["varve_follower_fetch_session_partitions"] == 2


async def test_partitions_that_may_be_led_elsewhere_are_in_doubt(f: FollowerWorld) -> None:
    f.led()
    f.replicas.terms.validity = SimpleNamespace(until_ms=f.clock.monotonic_ms() - 1)
    assert (await figures(f))["varve_partitions_in_doubt"] == 1


async def test_roles_that_are_not_taken_yet_are_shown(f: FollowerWorld) -> None:
    assert (await figures(f))["varve_roles_due"] == 0
    f.replicas.roles_due = lambda: 7
    assert (await figures(f))["varve_roles_due"] == 7
