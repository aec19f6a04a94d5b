"""The page `/metrics`, built from all parts of a broker.

Imported by the first scrape: a start should not wait for what may never be asked for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.coordinator.partitioner import remembered_hash
from broker.membership.leased_membership import LeasedMembership
from broker.metrics.alerts import AlertMetrics
from broker.metrics.cleaning import CleaningMetrics
from broker.metrics.code_path import CodePathMetrics
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
from native.library import RECORD_RULES, load_wanted
from native.loader import code_path

if TYPE_CHECKING:
    from broker.assembly.cluster_side import ClusterSide
    from broker.assembly.hosted_partitions import HostedPartitions
    from broker.assembly.local_parts import LocalParts
    from broker.controller.store.metadata_store import MetadataStore
    from broker.network.server import NetworkServer
    from broker.requests.kafka_apis import KafkaApis
    from broker.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredParts:
    """Parts of a broker that have figures, beside its `Services`."""

    local: "LocalParts"
    side: "ClusterSide"
    hosted: "HostedPartitions"
    store: "MetadataStore"
    apis: "KafkaApis"
    network: "NetworkServer"


def build_metrics_page(services: "Services", parts: MeasuredParts) -> MetricsPage:
    """The page with the metrics of every part."""
    controller, replicas = services.controller, services.replica_manager
    network, manager = parts.network, services.log_manager
    local, side = parts.local, parts.side
    sources: list[Source] = [
        NetworkMetrics(
            apis=parts.apis,
            channel=network.channel,
            processors=lambda: network.processors,
            limits=network.limits,
            buffers=network.buffers,
            admission=network.admission,
            lag=local.lag,
        ),
        PartitionMetrics(replicas, controller, local.sessions, manager),
        InSyncMetrics(
            replicas,
            services.follower_fetches,
            side.isr_changes,
            services.clock,
            parts.hosted.quotas,
        ),
        ControllerMetrics(controller, services.active_controller, services.channel, replicas),
        GroupMetrics(services.groups, replicas),
        TransactionMetrics(services.transactions, replicas, services.clock),
        ShareMetrics(services.share, services.share_coordinator, services.groups.stats),
        WriterMetrics(local.writers),
        CleaningMetrics(local.cleaners),
        AlertMetrics(local.alerts),
        DescriptorMetrics(local.descriptors, local.filesystem),
        CodePathMetrics(code_path(), load_wanted(RECORD_RULES)),
        _kept(services, parts),
    ]
    if isinstance(side.membership, LeasedMembership):
        sources.append(MembershipMetrics(side.membership, controller, services.clock, parts.store))
    if side.fetchers is not None and side.peers is not None:
        sources.append(FetcherMetrics(side.fetchers, side.peers))
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
            "producers of refused batches": lambda: len(services.refused_batches or ()),
            "timers": lambda: parts.local.timer.armed,
            "deleted directories": lambda: manager.deletion.deleted_count,
            "abandoned compactions": lambda: manager.cleaning.abandoned_count,
        }
    )
