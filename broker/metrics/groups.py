"""Metrics of consumer groups, lag among them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric

from broker.groups.state.group import GroupType
from broker.metrics.coordinator_loads import load_metrics
from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.groups.coordinator import GroupCoordinator
    from broker.replicas.replica_manager import ReplicaManager

SLICE = 500
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
COORDINATOR = "kafka_server_group_coordinator_metrics"
GROUP = ("group", "topic", "partition")


class GroupMetrics:
    """See `collect`."""

    def __init__(self, groups: "GroupCoordinator", replicas: "ReplicaManager") -> None:
        self._groups = groups
        self._replicas = replicas

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        counts: Counter[str] = Counter()
        consumer_counts: Counter[str] = Counter()
        types: Counter[GroupType] = Counter()
        for group in self._groups.groups():
            types[group.type] += 1
            by_state = counts if group.type is GroupType.CLASSIC else consumer_counts
            by_state[group.state_name] += 1
        prefix = "kafka_coordinator_group_groupmetadatamanager"
        yield gauge(f"{prefix}_numgroups", "Groups.", (), [((), types.total())])
        for state in STATES:
            yield gauge(
                f"{prefix}_numgroups{state.lower()}",
                f"Groups in state {state}.",
                (),
                [((), counts.get(state, 0))],
            )
        yield gauge(
            f"{COORDINATOR}_group_count",
            "Groups, by the protocol of their members.",
            ("protocol",),
            [((one.value.lower(),), types[one]) for one in GroupType],
        )
        yield gauge(
            f"{COORDINATOR}_consumer_group_count",
            "Consumer groups (KIP-848), by state.",
            ("state",),
            [((state.lower(),), consumer_counts[state]) for state in CONSUMER_STATES],
        )
        yield gauge(
            f"{prefix}_numoffsets",
            "Committed offsets.",
            (),
            [((), self._groups.committed_offset_count)],
        )
        members = GaugeMetricFamily(
            "kafka_consumergroup_members", "Members of a group.", labels=("group",)
        )
        for snapshot in list(self._groups.snapshots()):
            members.add_metric((snapshot.group_id,), snapshot.members)
        yield members
        await asyncio.sleep(0)
        current = GaugeMetricFamily(
            "kafka_consumergroup_current_offset", "Committed offset.", labels=GROUP
        )
        lag = GaugeMetricFamily(
            "kafka_consumergroup_lag",
            "Records between the committed offset and the high watermark.",
            labels=GROUP,
        )
        for count, committed in enumerate(list(self._groups.committed_offsets())):
            labels = (committed.group_id, committed.topic, str(committed.partition))
            current.add_metric(labels, committed.offset)
            partition = self._replicas.replica_of(committed.topic, committed.partition)
            if partition is not None:
                lag.add_metric(labels, max(partition.log.high_watermark - committed.offset, 0))
            if count % SLICE == 0:
                await asyncio.sleep(0)
        yield current
        yield lag
        stats = self._groups.stats
        metrics = "kafka_coordinator_group_groupcoordinatormetrics"
        for name, value, text in (
            ("offset_commit", stats.offset_commits, "Offsets committed."),
            ("offset_expiration", stats.offset_expirations, "Offsets that expired."),
            ("offset_deletion", stats.offset_deletions, "Offsets deleted on request."),
            ("group_completed_rebalance", stats.completed_rebalances, "Rebalances completed."),
        ):
            yield counter(f"{metrics}_{name}", text, (), [((), value)])
        yield counter(
            f"{COORDINATOR}_consumer_group_rebalance",
            "New group epochs of consumer groups.",
            (),
            [((), stats.consumer_group_rebalances)],
        )
        for family in load_metrics("varve_group_coordinator", "__consumer_offsets", stats):
            yield family
        yield gauge(
            "varve_group_coordinator_unavailable_partitions",
            "Partitions of __consumer_offsets that cannot be read; their groups have no "
            "coordinator.",
            (),
            [((), len(self._groups.unavailable))],
        )
        yield gauge(
            "varve_group_coordinator_loading",
            "1 while partitions of __consumer_offsets are being loaded.",
            (),
            [((), int(self._groups.is_loading))],
        )
