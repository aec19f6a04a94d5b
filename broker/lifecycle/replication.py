"""Replication, put together: fetchers over the connections to peers, ISR changes, views.

image ──brokers──> Peers ──connections──> Fetchers ──batches──> partitions that follow
                                             ^
                               RoleReconciler: follow, unfollow
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.node.dynamic_settings import DynamicSettings
from broker.peers.peers import Peers
from broker.replicas.leader_hints import LeaderHints
from broker.replication.fetcher.fetchers import Fetchers
from broker.replication.fetcher.log_repair import LogRepair
from broker.replication.fetcher.replica_fetcher import FetcherResources
from broker.replication.fetcher.settings import FetcherSettings
from broker.replication.fetcher.stats import FetcherStats
from broker.replication.isr_changes import IsrChanges
from broker.replication.quota import ReplicationQuota, follower_replicas, leader_replicas
from broker.runtime.timer import Timer
from config.broker import BrokerConfig
from storage.environment.clock import Clock
from storage.manager.log_manager import LogManager

if TYPE_CHECKING:
    from broker.controller.channel import ControllerChannel
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.membership.membership import Membership
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replication.fetcher.log_repair import RemoteState
    from broker.replication.terms import ValidUntil
    from config.topic import TopicConfig

THROTTLE_KEYS: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")

SYSTEM_BUFFER: Final = -1
KAFKA_RECEIVE_BUFFER_BYTES: Final = 65_536
"""Kafka's default of `replica.socket.receive.buffer.bytes`, chosen before systems fitted buffers to
their connections: a follower would wake ten times for what it can take at once."""


def connect_replicas(
    controller: "Controller",
    replicas: "ReplicaManager",
    manager: "LogManager",
    *,
    validity: "ValidUntil",
    is_alone: bool,
) -> None:
    """Set the replica manager's and the controller's views of partitions and disks.

    Args:
        controller: With the image.
        replicas: What is open here.
        manager: Of the log directories.
        validity: Of this broker's membership.
        is_alone: There is no other broker to name.
    """
    replicas.on_disk_failure = manager.fail_log
    if is_alone:
        replicas.on_cut_segment = lambda partition, error: manager.cut_segments.report(
            partition.topic_partition, error
        )
    replicas.is_known = lambda topic, index: controller.image.partition(topic, index) is not None
    replicas.is_offline = manager.is_given_up
    replicas.known_name = lambda topic_id: controller.image.name_of(topic_id)
    if not is_alone:
        replicas.leader_hints = LeaderHints(lambda: controller.image)
    controller.topic_changes.has_room = lambda: manager.room.has_room
    terms, settings = replicas.terms, controller.settings
    terms.lag_time_max_ms = settings.replica_lag_time_max_ms
    terms.fetch_wait_max_ms = settings.replica_fetch_wait_max_ms
    terms.look_up(settings.node_id, lambda: controller.image.brokers)
    terms.validity = validity


def build_isr_changes(
    controller: "Controller",
    channel: "ControllerChannel",
    membership: "Membership",
    replicas: "ReplicaManager",
    *,
    clock: Clock,
    timer: Timer,
) -> IsrChanges:
    """What asks the controller for other ISRs; it looks again when brokers come and go."""
    silence_max_ms = controller.settings.replica_silence_max_ms
    replicas.terms.listening.silence_max_ms = silence_max_ms
    changes = IsrChanges(
        channel,
        replicas.terms,
        clock,
        timer,
        node_id=controller.settings.node_id,
        broker_epoch=lambda: membership.broker_epoch,
        led=replicas.partitions,
    )
    changes.start()

    def look(old: "ClusterImage", new: "ClusterImage") -> None:
        if old.brokers is not new.brokers:
            changes.brokers_changed()
            replicas.brokers_changed()

    controller.subscribe_now(look)
    return changes


def build_quotas(
    dynamic: DynamicSettings, clock: Clock
) -> tuple[ReplicationQuota, ReplicationQuota]:
    """The leader's and the follower's quota; their rates follow the settings."""
    settings = dynamic.current

    def build(replicas: "Callable[[TopicConfig], tuple[str, ...]]") -> ReplicationQuota:
        return ReplicationQuota(
            clock,
            settings.node_id,
            replicas,
            windows=settings.replication_quota_window_num,
            window_seconds=settings.replication_quota_window_size_seconds,
        )

    leader, follower = build(leader_replicas), build(follower_replicas)

    def set_rates(settings: BrokerConfig) -> None:
        leader.set_rate(settings.leader_replication_throttled_rate)
        follower.set_rate(settings.follower_replication_throttled_rate)

    set_rates(settings)
    dynamic.subscribe(THROTTLE_KEYS, lambda _, after: set_rates(after))
    return leader, follower


def receive_buffer_bytes(configured: int) -> int:
    """SO_RCVBUF of connections to peers; the default leaves it to the system (-1)."""
    return SYSTEM_BUFFER if configured == KAFKA_RECEIVE_BUFFER_BYTES else configured


def build_fetchers(
    peers: Peers,
    log_manager: LogManager,
    dynamic: DynamicSettings,
    *,
    remote: "RemoteState | None",
    quota: ReplicationQuota,
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
        clock=clock,
    )
    repair.remote = remote
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
            quota=quota,
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
