"""Metrics of the controller: Kafka's, which are 0 on brokers that are not the active one, and ours.

On a single node a partition is offline when its log is not served, for there it has no other.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import Metric

from broker.controller.active.failover_causes import Cause
from broker.controller.images.partition_image import NO_LEADER
from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.controller.active.active_controller import ActiveController
    from broker.controller.channel import ControllerChannel
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.replica_manager import ReplicaManager

SLICE: Final = 5000
"""Partitions read before yielding to the event loop."""

KAFKA: Final = "kafka_controller_kafkacontroller"


class ControllerMetrics:
    """See the module."""

    def __init__(
        self,
        controller: "Controller",
        active: "ActiveController",
        channel: "ControllerChannel",
        replicas: "ReplicaManager",
    ) -> None:
        self._controller = controller
        self._active = active
        self._channel = channel
        self._replicas = replicas

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        image = self._controller.image
        is_active = self._active.is_active
        offline = imbalanced = 0
        if is_active:
            offline, imbalanced = await self._count(image)
        fenced = sum(broker.is_fenced for broker in image.brokers.values())
        for name, value, text in (
            ("activecontrollercount", 1, "Whether this broker is the active controller."),
            ("globaltopiccount", len(image.topics), "Topics."),
            ("globalpartitioncount", image.partition_count, "Partitions of all topics."),
            ("offlinepartitionscount", offline, "Partitions without a leader."),
            (
                "preferredreplicaimbalancecount",
                imbalanced,
                "Partitions that are not led by their preferred replica, the first.",
            ),
            (
                "activebrokercount",
                len(image.brokers) - fenced,
                "Registered brokers that are not fenced.",
            ),
            ("fencedbrokercount", fenced, "Registered brokers that are fenced."),
        ):
            yield gauge(f"{KAFKA}_{name}", text, (), [((), value if is_active else 0)])
        active = self._active
        for name, value, text in (
            (
                "kafka_controller_controllerstats_uncleanleaderelections",
                active.unclean_elections,
                "Leaders elected although they may lack committed records.",
            ),
            (
                "kafka_controller_controllerstats_electionfromeligibleleaderreplicas",
                active.elr_elections,
                "Leaders elected from the eligible leader replicas.",
            ),
            (
                "varve_controller_failovers",
                active.failovers,
                "Times that this broker moved leaders, for brokers that died or were stopping.",
            ),
            (
                "varve_controller_early_lease_ends",
                active.early_lease_ends,
                "Times that leases ended together or before their time, and nothing was moved for "
                "a second.",
            ),
            (
                "varve_controller_forwarded_requests",
                self._channel.forwarded,
                "Requests of clients sent on to the active controller.",
            ),
        ):
            yield counter(name, text, (), [((), value)])
        yield gauge(
            "varve_controller_epoch",
            "Epoch of the active controller, as this broker sees it; 0 without one.",
            (),
            [((), image.controller_epoch)],
        )
        yield gauge(
            "varve_controller_last_failover_ms",
            "Milliseconds from the first plan to the last commit of the last failover here.",
            ("cause",),
            [
                ((cause.value,), active.failover_ms[cause])
                for cause in Cause
                if cause in active.failover_ms
            ],
        )
        yield counter(
            "varve_controller_leaders_lost",
            "Partitions whose leader was replaced, or that were left without one, here.",
            ("cause",),
            [((cause.value,), active.leaders_lost.get(cause, 0)) for cause in Cause],
        )
        yield gauge(
            "varve_image_revision",
            "Revision of the metadata store that this broker's image is of.",
            (),
            [((), image.revision)],
        )

    async def _count(self, image: "ClusterImage") -> tuple[int, int]:
        """Partitions without a leader, and those led by another than their first replica."""
        leaderless = imbalanced = seen = 0
        for topic in list(image.topics.values()):
            for partition in topic.partitions:
                seen += 1
                if partition.leader == NO_LEADER:
                    leaderless += 1
                elif partition.leader != partition.replicas[0]:
                    imbalanced += 1
                if seen % SLICE == 0:
                    await asyncio.sleep(0)
        if image.facts:
            return leaderless, imbalanced
        served = sum(1 for _ in self._replicas.partitions())
        return max(image.partition_count - served, 0), imbalanced
