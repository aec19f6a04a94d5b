"""Metrics of what this broker fetches from leaders, and of its connections to other brokers."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.peers.peers import Peers
    from broker.replication.fetcher.fetchers import Fetchers


class FetcherMetrics:
    """See `collect`. A node that is alone has none of them."""

    def __init__(self, fetchers: "Fetchers", peers: "Peers") -> None:
        self._fetchers = fetchers
        self._peers = peers

    async def collect(self) -> AsyncIterator[Metric]:
        """ReplicaFetcherManager's by Kafka's names, and ours."""
        fetchers, stats = self._fetchers, self._fetchers.stats
        for name, text, value in (
            (
                "maxlag",
                "Most records that a replica here lacks up to its leader's high watermark.",
                fetchers.max_lag,
            ),
            (
                "failedpartitionscount",
                "Partitions that are not fetched because their log directory has failed.",
                fetchers.failed_partitions,
            ),
            ("deadthreadcount", "Fetchers that have ended: always 0, they are no threads.", 0),
        ):
            yield gauge(f"kafka_server_replicafetchermanager_{name}", text, (), [((), value)])
        yield counter(
            "kafka_server_replicafetchermanager_minfetch",
            "Fetches answered by the leader that has answered fewest; MinFetchRate is its rate.",
            (),
            [((), fetchers.min_requests)],
        )
        for name, text, value in (
            ("requests", "Fetches sent to leaders.", stats.requests),
            (
                "failed_requests",
                "Fetches without an answer, or with an error for the whole request.",
                stats.failed_requests,
            ),
            ("partition_errors", "Errors of single partitions in answers.", stats.partition_errors),
            (
                "refused_batches",
                "Answers with batches that are damaged, or do not follow on the log end.",
                stats.corrupt_batches,
            ),
            (
                "late_records",
                "Records that came again, as another fetch had left before they were appended.",
                stats.late_records,
            ),
            (
                "truncations",
                "Logs truncated because they had diverged from their leader's.",
                stats.truncations,
            ),
            (
                "truncations_below_high_watermark",
                "Logs truncated below their high watermark: committed records are lost.",
                stats.truncations_below_high_watermark,
            ),
            (
                "moved_to_remote",
                "Fetches of offsets that the leader has in remote storage only.",
                stats.moved_to_remote,
            ),
            (
                "rebuilt_from_remote",
                "Followers' logs that were begun behind what the leader has in remote storage.",
                stats.rebuilt_from_remote,
            ),
        ):
            yield counter(f"varve_replica_fetch_{name}", text, (), [((), value)])
        peers = self._peers
        yield gauge(
            "varve_peer_connections",
            "Open connections to other brokers.",
            (),
            [((), peers.open_connections)],
        )
        yield gauge(
            "varve_peer_requests",
            "Requests to other brokers that wait or are not answered yet.",
            (),
            [((), peers.requests)],
        )
