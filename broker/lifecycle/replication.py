"""The fetching half of replication, put together: connections to peers, and fetchers over them.

image ──brokers──> Peers ──connections──> Fetchers ──batches──> partitions that follow
^
RoleReconciler: follow, unfollow
"""

import asyncio
from collections.abc import Callable
from typing import Final

from broker.node.dynamic_settings import DynamicSettings
from broker.peers.peers import Peers
from broker.replication.fetcher.fetchers import Fetchers
from broker.replication.fetcher.log_repair import LogRepair
from broker.replication.fetcher.replica_fetcher import FetcherResources
from broker.replication.fetcher.settings import FetcherSettings
from broker.replication.fetcher.stats import FetcherStats
from broker.runtime.timer import Timer
from config.broker import BrokerConfig
from storage.environment.clock import Clock
from storage.manager.log_manager import LogManager

SYSTEM_BUFFER: Final = -1
KAFKA_RECEIVE_BUFFER_BYTES: Final = 65_536
"""Kafka's default of `replica.socket.receive.buffer.bytes`, chosen before systems fitted buffers to
their connections: a follower would wake ten times for what it can take at once."""


def receive_buffer_bytes(configured: int) -> int:
    """SO_RCVBUF of connections to peers; the default leaves it to the system (-1)."""
    return SYSTEM_BUFFER if configured == KAFKA_RECEIVE_BUFFER_BYTES else configured


def build_fetchers(
    peers: Peers,
    log_manager: LogManager,
    dynamic: DynamicSettings,
    *,
    broker_epoch: Callable[[], int],
    loop: asyncio.AbstractEventLoop,
    timer: Timer,
    clock: Clock,
) -> Fetchers:
    """Fetchers over the connections to peers, which follow nothing yet."""
    settings = _FetcherSettingsNow(dynamic)
    stats = FetcherStats()
    node_id = dynamic.current.node_id
    repair = LogRepair(
        node_id,
        peers,
        log_manager.truncation,
        stats,
        timeout_ms=lambda: float(settings().socket_timeout_ms),
    )
    return Fetchers(
        peers,
        FetcherResources(
            node_id=node_id,
            broker_epoch=broker_epoch,
            settings=settings,
            poller=loop,
            timer=timer,
            clock=clock,
            repair=repair,
            stats=stats,
        ),
    )


class _FetcherSettingsNow:
    """The settings of fetchers, which follow those of the broker."""

    __slots__ = ("_dynamic", "_made", "_seen")

    def __init__(self, dynamic: DynamicSettings) -> None:
        self._dynamic = dynamic
        self._seen = dynamic.current
        self._made = fetcher_settings(self._seen)

    def __call__(self) -> FetcherSettings:
        current = self._dynamic.current
        if current is not self._seen:
            self._seen = current
            self._made = fetcher_settings(current)
        return self._made


def fetcher_settings(settings: BrokerConfig) -> FetcherSettings:
    """What fetchers need of a broker's settings."""
    return FetcherSettings(
        wait_max_ms=settings.replica_fetch_wait_max_ms,
        min_bytes=settings.replica_fetch_min_bytes,
        max_bytes=settings.replica_fetch_max_bytes,
        response_max_bytes=settings.replica_fetch_response_max_bytes,
        backoff_ms=settings.replica_fetch_backoff_ms,
        socket_timeout_ms=settings.replica_socket_timeout_ms,
        fetchers=settings.num_replica_fetchers,
    )
