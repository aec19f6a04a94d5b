"""Metrics of remote storage: Kafka's names (KIP-405, KIP-963), and what Kafka has no name for.

Before the first topic has needed remote storage only the totals are there, as zeros.

Source: Kafka, RemoteStorageMetrics.java, BrokerTopicMetrics.java; docs/ops.html, Tiered Storage
Monitoring.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter
from broker.metrics.remote_reads import of_reader
from broker.metrics.remote_tasks import of_manager
from broker.metrics.remote_topics import of_topics
from broker.metrics.tier_process import of_tier

if TYPE_CHECKING:
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.lookups import Lookups
    from broker.replicas.replica_manager import ReplicaManager


class RemoteMetrics:
    """See the module."""

    def __init__(
        self, remote: "RemoteStorage", replicas: "ReplicaManager", lookups: "Lookups"
    ) -> None:
        self._remote = remote
        self._replicas = replicas
        self._lookups = lookups

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        waiting = self._replicas.delayed_remote_fetch
        yield counter(
            "kafka_server_delayedremotefetchmetrics_expires",
            "Remote fetches that expired.",
            (),
            [((), waiting.expired)],
        )
        yield counter(
            "kafka_server_delayedremotelistoffsetsmetrics_expires",
            "Remote ListOffsets requests that expired.",
            (),
            [((), self._lookups.expired)],
        )
        remote = self._remote
        if remote.manager is None or remote.reader is None or remote.tier is None:
            return
        for family in (
            *of_topics(remote.manager, remote.reader),
            *of_reader(remote.reader),
            *of_manager(remote.manager),
            *of_tier(remote.tier.statistics()),
        ):
            yield family
        if remote.metadata is not None:
            stats = remote.metadata.stats
            for name, value, text in (
                ("events_read", stats.events_read, "Events read."),
                (
                    "events_refused",
                    stats.events_refused + stats.events_undecodable,
                    "Events passed over: not allowed in the segment's state, or not readable.",
                ),
                ("tell_failures", stats.publish_failures, "Events not written, or not read back."),
                ("gaps", stats.gaps, "Times events were lost before they were read."),
                ("read_failures", stats.read_failures, "Reads interrupted, and tried again."),
                ("snapshots_written", stats.snapshots_written, "Snapshots written."),
                ("snapshot_failures", stats.snapshot_failures, "Snapshots that failed."),
                (
                    "snapshots_ignored",
                    stats.snapshots_ignored,
                    "Snapshots passed over: damaged, of another topic, or ahead of its end.",
                ),
            ):
                yield counter(
                    f"varve_remote_metadata_{name}",
                    f"__remote_log_metadata: {text}",
                    (),
                    [((), value)],
                )
