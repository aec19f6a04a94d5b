"""What unfinished requests hold, by the names of Kafka's memory pool."""

from types import SimpleNamespace
from typing import Any

from broker.metrics.network import NetworkMetrics
from broker.network.connection_info import ConnectionInfo
from broker.network.connection_limits import ConnectionLimits
from broker.runtime.loop_lag import BOUNDS_S
from tests.fakes.network.sockets import FakeStream
from tests.unit.broker.network.harness import Harness


async def test_a_pool_that_is_used_up_shows() -> None:
    h = Harness(limit=1000)
    h.receive((10_000).to_bytes(4, "big") + b"x" * 3000, b"x")
    other = FakeStream(fd=101)
    other.incoming += [(10_000).to_bytes(4, "big") + b"x" * 500, b"x"]
    h.processor.add(other, ConnectionInfo("PLAINTEXT", "127.0.0.1"))
    h.poller.readable(other.fd)
    h.clock.advance(250)
    apis: Any = SimpleNamespace(apis=(), malformed=0, unsupported=0)
    lag: Any = SimpleNamespace(counts=[0] * (len(BOUNDS_S) + 1), total_s=0.0)
    metrics = NetworkMetrics(
        apis=apis,
        channel=h.channel,
        processors=lambda: [h.processor],
        limits=ConnectionLimits(max_connections=1, max_per_address=1, overrides={}, rate_max=1),
        buffers=h.buffers,
        admission=h.resources.admission,
        lag=lag,
    )
    found = {
        sample.name: sample.value
        async for family in metrics.collect()
        for sample in family.samples
        if not sample.labels
    }
    assert found["kafka_network_socketserver_memorypoolused"] == 3501
    assert found["kafka_network_socketserver_memorypoolavailable"] == -2501
    assert found["kafka_server_socketservermetrics_memorypooldepletedtime_total"] == 250
    assert found["varve_receive_buffers_waiting_connections"] == 1
