"""The page `/metrics`, built from all parts of a broker.

Imported by the first scrape: a start should not wait for what may never be asked for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.coordinator.partitioner import remembered_hash
from broker.membership.leased_membership import LeasedMembership
from broker.metrics.alerts import AlertMetrics
from broker.metrics.cleaning import CleaningMetrics
from broker.metrics.controller import ControllerMetrics
from broker.metrics.descriptors import DescriptorMetrics
from broker.metrics.fetchers import FetcherMetrics
from broker.metrics.groups import GroupMetrics
from broker.metrics.in_sync import InSyncMetrics
from broker.metrics.kept import KeptMetrics
from broker.metrics.membership import MembershipMetrics
from broker.metrics.network import NetworkMetrics
from broker.metrics.page import MetricsPage, Source
from broker.metrics.partitions import PartitionMetrics
from broker.metrics.share import ShareMetrics
from broker.metrics.transactions import TransactionMetrics
from broker.metrics.writers import WriterMetrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.cleaning.process_cleaner import ProcessCleaner
    from broker.controller.store.metadata_store import MetadataStore
    from broker.membership.membership import Membership
    from broker.network.server import NetworkServer
    from broker.peers.peers import Peers
    from broker.replicas.fetch_sessions import FetchSessionCache
    from broker.replication.fetcher.fetchers import Fetchers
    from broker.replication.isr_changes import IsrChanges
    from broker.replication.quota import ReplicationQuota
    from broker.requests.kafka_apis import KafkaApis
    from broker.runtime.directory_writer import DirectoryWriters
    from broker.runtime.loop_lag import LoopLag
    from broker.runtime.timer import TimerWheel
    from broker.services import Services
    from storage.environment.alerts import Alerts
    from storage.environment.descriptors import DescriptorShares
    from storage.environment.filesystem import Filesystem


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredParts:
    """Parts of a broker that have figures, beside its `Services`."""

    apis: "KafkaApis"
    network: "NetworkServer"
    lag: "LoopLag"
    timer: "TimerWheel"
    sessions: "FetchSessionCache"
    store: "MetadataStore"
    writers: "DirectoryWriters"
    cleaners: "ProcessCleaner | None"
    alerts: "Alerts"
    descriptors: "DescriptorShares"
    filesystem: "Filesystem"
    membership: "Membership"
    fetchers: "Fetchers | None"
    peers: "Peers | None"
    isr_changes: "IsrChanges | None"
    quotas: "Sequence[ReplicationQuota]"


def build_metrics_page(services: "Services", parts: MeasuredParts) -> MetricsPage:
    """The page with the metrics of every part."""
    controller, replicas = services.controller, services.replica_manager
    network, manager = parts.network, services.log_manager
    sources: list[Source] = [
        NetworkMetrics(
            apis=parts.apis,
            channel=network.channel,
            processors=lambda: network.processors,
            limits=network.limits,
            buffers=network.buffers,
            lag=parts.lag,
        ),
        PartitionMetrics(replicas, controller, parts.sessions, manager),
        InSyncMetrics(
            replicas,
            services.follower_fetches,
            parts.isr_changes,
            services.clock,
            parts.quotas,
        ),
        ControllerMetrics(controller, services.active_controller, services.channel, replicas),
        GroupMetrics(services.groups, replicas),
        TransactionMetrics(services.transactions, replicas, services.clock),
        ShareMetrics(services.share, services.share_coordinator, services.groups.stats),
        WriterMetrics(parts.writers),
        CleaningMetrics(parts.cleaners),
        AlertMetrics(parts.alerts),
        DescriptorMetrics(parts.descriptors, parts.filesystem),
        _kept(services, parts),
    ]
    if isinstance(parts.membership, LeasedMembership):
        sources.append(MembershipMetrics(parts.membership, controller, services.clock, parts.store))
    if parts.fetchers is not None and parts.peers is not None:
        sources.append(FetcherMetrics(parts.fetchers, parts.peers))
    if services.remote is not None:
        from broker.metrics.remote import RemoteMetrics

        sources.append(RemoteMetrics(services.remote, replicas, services.lookups))
    return MetricsPage(sources, services.disk)


def _kept(services: "Services", parts: MeasuredParts) -> KeptMetrics:
    """Metrics of state that a broker keeps in memory."""
    controller, replicas = services.controller, services.replica_manager
    store, manager = parts.store, services.log_manager
    return KeptMetrics(
        {
            "metadata history events": lambda: getattr(store, "history_events", 0),
            "metadata history bytes": lambda: getattr(store, "history_bytes", 0),
            "topic descriptions": lambda: len(controller.topic_metadata),
            "notes of deleted topics": lambda: len(controller.image.deleted_topics),
            "topic statistics": lambda: len(replicas.stats),
            "topic names by id": lambda: len(replicas.names_by_id),
            "addresses with parked polls": lambda: len(replicas.parked_by_address.counts),
            "hashes of group names": lambda: remembered_hash.cache_info().currsize,
            "timers": lambda: parts.timer.armed,
            "deleted directories": lambda: manager.deletion.deleted_count,
            "abandoned compactions": lambda: manager.cleaning.abandoned_count,
        }
    )
