"""Metrics of replication come from the fetchers' state."""

from broker.metrics.fetchers import FetcherMetrics
from protocol.error_codes import ErrorCode
from tests.unit.broker.replication.fetcher.fetcher_world import (
    FakeFollower,
    FetcherWorld,
    data,
    records_at,
)


async def test_every_figure_is_what_the_fetchers_did() -> None:
    """Kafka's names where it has them."""
    world = FetcherWorld()
    waiting = world.following(FakeFollower(0), FakeFollower(1))
    world.answer(
        waiting,
        data(0, records_at(0, b"a"), high_watermark=4),
        data(1, error=ErrorCode.CORRUPT_MESSAGE),
    )
    metrics = FetcherMetrics(world.fetchers, world.peers)
    found = {
        sample.name: sample.value async for family in metrics.collect() for sample in family.samples
    }
    assert found["kafka_server_replicafetchermanager_maxlag"] == 3
    assert found["kafka_server_replicafetchermanager_failedpartitionscount"] == 0
    assert found["kafka_server_replicafetchermanager_deadthreadcount"] == 0
    assert found["kafka_server_replicafetchermanager_minfetch_total"] == 2
    assert found["varve_replica_fetch_requests_total"] == 3
    assert found["varve_replica_fetch_partition_errors_total"] == 1
    assert found["varve_replica_fetch_truncations_total"] == 0
    assert found["varve_peer_connections"] == 1
    assert found["varve_peer_requests"] == 1
