"""The admin port's `/cluster`: what this broker has of the cluster, and of its own membership.

Kafka's protocol has brokers, controller and partitions (`varve cluster describe` asks for those);
epochs, fences and their reasons, and the end of a lease are for operators alone.
"""

import json
import math
from typing import TYPE_CHECKING, Any

from broker.network.admin_http import Page, Query

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.controller.images.broker_records import BrokerFacts, BrokerImage
    from broker.controller.images.cluster_image import ClusterImage
    from broker.membership.membership import Membership
    from storage.environment.clock import Clock

JSON = "application/json"


class ClusterPage:
    """See the module; 503 until the broker has an image."""

    def __init__(
        self,
        node_id: int,
        image: "Callable[[], ClusterImage | None]",
        membership: "Callable[[], Membership | None]",
        clock: "Clock",
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._membership = membership
        self._clock = clock

    async def cluster(self, _query: Query) -> Page:
        """One JSON document; times are milliseconds, a null lease is one that does not end."""
        image, membership = self._image(), self._membership()
        if image is None or membership is None:
            return Page(503, b'{"error": "the broker is starting"}\n', JSON)
        left_ms = membership.validity.until_ms - self._clock.monotonic_ms()
        document = {
            "node_id": self._node_id,
            "broker_epoch": membership.broker_epoch,
            "lease_left_ms": None if left_ms == math.inf else int(max(0.0, left_ms)),
            "cluster_id": image.cluster_id,
            "image_revision": image.revision,
            "controller_id": image.controller_id,
            "controller_epoch": image.controller_epoch,
            "brokers": [
                _broker(broker, image.facts.get(broker.node_id))
                for broker in image.brokers.values()
            ],
        }
        return Page(200, json.dumps(document).encode() + b"\n", JSON)


def _broker(broker: "BrokerImage", facts: "BrokerFacts | None") -> dict[str, Any]:
    fence = None if facts is None else facts.fence
    registration = broker.registration
    return {
        "broker": broker.node_id,
        "epoch": broker.epoch,
        "fenced": broker.is_fenced,
        "why": "" if fence is None or not broker.is_fenced else fence.why,
        "live": broker.is_live,
        "draining": broker.is_draining,
        "suspected_by": _others_that_suspect(broker.node_id, facts),
        "last_run": broker.ended,
        "release": None if registration is None else registration.release,
        "rack": broker.rack,
    }


def _others_that_suspect(node_id: int, facts: "BrokerFacts | None") -> list[int]:
    """Its own word among them would be that it lives."""
    return [] if facts is None else [by for by, _ in facts.suspected_by if by != node_id]
