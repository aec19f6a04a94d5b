"""A single node is a member of itself."""

import math
from collections.abc import Mapping

from broker.controller.images.cluster_image import BrokerEndpoint, BrokerImage, ClusterImage
from broker.membership.membership import SoleMembership


async def test_a_single_node_places_itself_and_is_let_in_for_ever() -> None:
    placed: list[Mapping[str, BrokerEndpoint]] = []
    membership = SoleMembership(1, placed.append)
    endpoints = {"PLAINTEXT": BrokerEndpoint("h", 1)}
    membership.advertise(endpoints)
    await membership.join(sync)
    assert placed == [endpoints]
    image = ClusterImage.empty().with_brokers([BrokerImage(1, endpoints)])
    assert membership.is_let_in(image)
    assert membership.broker_epoch == image.brokers[1].epoch
    assert membership.validity.until_ms == math.inf
    membership.disk_failed()
    await membership.halt()
    await membership.leave()


async def sync() -> bool:
    raise AssertionError("a single node's recovery is all it needs")
