"""Metrics of connections, requests and the loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge, histogram
from broker.requests.api_stats import BUCKETS_MS
from broker.runtime.loop_lag import BOUNDS_S

if TYPE_CHECKING:
    from broker.network.connection_limits import ConnectionLimits
    from broker.network.frame_admission import FrameAdmission
    from broker.network.processor import Processor
    from broker.network.receive_buffers import ReceiveBuffers
    from broker.network.request_channel import RequestChannel
    from broker.requests.kafka_apis import KafkaApis
    from broker.runtime.loop_lag import LoopLag

PROCESSOR = ("listener", "networkProcessor")


def api_label(name: str) -> str:
    """`LIST_OFFSETS` as Kafka writes it in metrics: `ListOffsets`."""
    return "".join(word.capitalize() for word in name.split("_"))


class NetworkMetrics:
    """See `collect`."""

    def __init__(
        self,
        *,
        apis: "KafkaApis",
        channel: "RequestChannel",
        processors: Callable[[], Iterable["Processor"]],
        limits: "ConnectionLimits",
        buffers: "ReceiveBuffers",
        admission: "FrameAdmission",
        lag: "LoopLag",
    ) -> None:
        self._apis = apis
        self._channel = channel
        self._processors = processors
        self._limits = limits
        self._buffers = buffers
        self._admission = admission
        self._lag = lag

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        used = [(api_label(api.name), api.stats) for api in self._apis.apis if api.stats.requests]
        yield counter(
            "kafka_network_requestmetrics_requests",
            "Requests received.",
            ("request",),
            [((name,), stats.requests) for name, stats in used],
        )
        yield counter(
            "kafka_network_requestmetrics_errors",
            "Requests that ended in an error of the broker or of the whole request.",
            ("request",),
            [((name,), stats.errors) for name, stats in used],
        )
        yield counter(
            "kafka_network_requestmetrics_requestbytes",
            "Bytes of requests, without their size field.",
            ("request",),
            [((name,), stats.request_bytes) for name, stats in used],
        )
        yield histogram(
            "kafka_network_requestmetrics_totaltimems",
            "Milliseconds from a request's arrival to its answer, waiting in a purgatory included.",
            ("request",),
            BUCKETS_MS,
            [((name,), stats.buckets, stats.total_ms) for name, stats in used],
        )
        await asyncio.sleep(0)
        channel = self._channel
        yield gauge(
            "kafka_network_requestchannel_requestqueuesize",
            "Requests that wait for a handler.",
            (),
            [((), channel.queued)],
        )
        yield gauge(
            "varve_request_channel_busy_workers",
            "Handlers that are waiting for a disk; num.io.threads is the bound.",
            (),
            [((), channel.busy_workers)],
        )
        yield counter(
            "varve_request_channel_full",
            "Times a connection had to stop reading because the channel was full.",
            (),
            [((), channel.refused)],
        )
        labelled = [((p.listener_name, str(p.index)), p) for p in self._processors()]
        yield gauge(
            "kafka_server_socketservermetrics_connection_count",
            "Open connections.",
            PROCESSOR,
            [(labels, len(p.connections)) for labels, p in labelled],
        )
        yield counter(
            "kafka_server_socketservermetrics_incoming_byte",
            "Bytes received.",
            PROCESSOR,
            [(labels, p.traffic.received) for labels, p in labelled],
        )
        yield counter(
            "kafka_server_socketservermetrics_outgoing_byte",
            "Bytes sent.",
            PROCESSOR,
            [(labels, p.traffic.sent) for labels, p in labelled],
        )
        yield counter(
            "kafka_server_socketservermetrics_connection_close",
            "Connections closed.",
            PROCESSOR,
            [(labels, p.closed_connections) for labels, p in labelled],
        )
        yield counter(
            "varve_connections_rejected",
            "Connections refused because of max.connections or max.connections.per.ip.",
            (),
            [((), self._limits.rejected)],
        )
        yield counter(
            "varve_requests_malformed",
            "Requests that could not be decoded; each ended its connection.",
            (),
            [((), self._apis.malformed)],
        )
        yield counter(
            "varve_requests_unsupported",
            "Requests of an API or version that is not served.",
            (),
            [((), self._apis.unsupported)],
        )
        yield gauge(
            "varve_receive_buffers_bytes",
            "Memory of requests that have not arrived whole: charged is what has arrived, idle is "
            "kept for reuse.",
            ("state",),
            [(("charged",), self._buffers.charged), (("idle",), self._buffers.idle_bytes)],
        )
        buffers, admission = self._buffers, self._admission
        yield gauge(
            "kafka_network_socketserver_memorypoolused",
            "Bytes of requests that have arrived and are not handled yet.",
            (),
            [((), buffers.charged)],
        )
        yield gauge(
            "kafka_network_socketserver_memorypoolavailable",
            "What queued.max.request.bytes, or its default, leaves; below 0 where one request "
            "alone is read beyond it.",
            (),
            [((), buffers.limit - buffers.charged)],
        )
        yield counter(
            "kafka_server_socketservermetrics_memorypooldepletedtime",
            "Milliseconds in which connections waited for memory of requests; Kafka's "
            "MemoryPoolAvgDepletedPercent is its rate, divided by ten.",
            (),
            [((), admission.depleted_ms)],
        )
        yield gauge(
            "varve_receive_buffers_waiting_connections",
            "Connections that wait for memory of requests with an unfinished one.",
            (),
            [((), admission.waiting)],
        )
        yield histogram(
            "varve_event_loop_lag_seconds",
            "Delay of the event loop behind what is due, in seconds.",
            (),
            BOUNDS_S,
            [((), self._lag.counts, self._lag.total_s)],
        )
