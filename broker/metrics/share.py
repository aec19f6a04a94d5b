"""Metrics of share groups (KIP-932): sessions, their state in memory, and waiting requests."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.coordinator_loads import load_metrics
from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.groups.state.stats import GroupStats
    from broker.share.delivery.share_partitions import SharePartitions
    from broker.share.state.share_coordinator import ShareCoordinator


class ShareMetrics:
    """See `collect`."""

    def __init__(
        self, share: "SharePartitions", coordinator: "ShareCoordinator", stats: "GroupStats"
    ) -> None:
        self._share = share
        self._coordinator = coordinator
        self._stats = stats

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        for name, text, value in (
            (
                "kafka_server_sharesessioncache_sharesessionscount",
                "Members of share groups that have a session.",
                len(self._share.sessions),
            ),
            (
                "varve_share_partitions",
                "Share-partitions of which records may be in flight.",
                len(self._share),
            ),
            (
                "varve_share_fetches_waiting",
                "ShareFetch requests that wait for records.",
                self._share.purgatory.parked,
            ),
            (
                "varve_share_coordinator_states",
                "Share-partitions whose state is kept here.",
                self._coordinator.state_count,
            ),
            (
                "varve_share_coordinator_unavailable_partitions",
                "Partitions of __share_group_state that cannot be read; their share groups have "
                "no state.",
                len(self._coordinator.unavailable),
            ),
            (
                "varve_share_coordinator_loading",
                "1 while partitions of __share_group_state are being read back.",
                int(self._coordinator.is_loading),
            ),
        ):
            yield gauge(name, text, (), [((), value)])
        loads = self._coordinator.stats
        for family in load_metrics("varve_share_coordinator", "__share_group_state", loads):
            yield family
        yield counter(
            "varve_share_polls_held_back",
            "ShareFetch requests answered early because the purgatory is full.",
            (),
            [((), self._share.purgatory.held_back_total)],
        )
        yield counter(
            "kafka_server_group_coordinator_metrics_share_group_rebalance",
            "New group epochs of share groups.",
            (),
            [((), self._stats.share_group_rebalances)],
        )
