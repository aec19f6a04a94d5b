"""Controlled shutdown: leaderships are handed over before a broker stops serving.

    draining/<id> put ──> the controller elects other leaders, takes the broker out of ISRs
         ──> the image says that nothing is left to give away (30 s at most)
         ──> 200 ms more, in which clients are named their new leaders ──> the broker stops

What no other broker could lead stays to the end. Without another broker, without a lease, or with
`controlled.shutdown.enable` off, there is nothing to wait for.
"""

import logging
from typing import Final

from broker.controller.controller import Controller
from broker.controller.images.broker_records import draining_key, encode_draining
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import MetadataStore, Put, StoreError
from broker.controller.topics.placement import takes_part
from broker.membership.membership import Membership
from broker.runtime.pauses import pause
from broker.runtime.timer import Timer
from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

TIMEOUT_MS: Final = 30_000.0
"""Longest wait for the controller."""

HINTS_MS: Final = 200.0
"""How long the new leaders are named to clients that still ask here."""

LOOK_MS: Final = 10.0


def partitions_to_hand_over(image: ClusterImage, node_id: int) -> int:
    """Partitions in whose ISR a broker is although another of it could lead."""
    able = {node for node, broker in image.brokers.items() if takes_part(broker)} - {node_id}
    return sum(
        node_id in partition.isr and not able.isdisjoint(partition.isr)
        for topic in image.topics.values()
        for partition in topic.partitions
    )


async def hand_over(
    controller: Controller,
    store: MetadataStore,
    membership: Membership,
    *,
    timer: Timer,
    clock: Clock,
) -> None:
    """Ask the controller to take everything from this broker that others can have; see there."""
    node_id = controller.settings.node_id
    lease = membership.lease
    if not lease or not membership.is_let_in(controller.image):
        return
    others = [b for b in controller.image.brokers.values() if b.node_id != node_id]
    if not any(takes_part(broker) and broker.is_live for broker in others):
        return
    began_ms = clock.monotonic_ms()
    before = partitions_to_hand_over(controller.image, node_id)
    try:
        put = Put(draining_key(node_id), encode_draining(membership.broker_epoch), lease)
        await store.txn(then=[put])
    except StoreError as error:
        LOGGER.warning("controlled shutdown: not asked for error=%s", error)
        return
    while left := partitions_to_hand_over(controller.image, node_id):
        if clock.monotonic_ms() - began_ms >= TIMEOUT_MS:
            LOGGER.warning("controlled shutdown: not all handed over partitions=%d", left)
            return
        await pause(timer, LOOK_MS)
    took_ms = clock.monotonic_ms() - began_ms
    LOGGER.info("controlled shutdown: handed over partitions=%d ms=%.0f", before, took_ms)
    if before:
        await pause(timer, HINTS_MS)
