"""Metrics of a broker's membership: its lease, what it has lost, whom it has found dead."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge
from broker.metrics.image_hash import ImageHash

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.store.metadata_store import MetadataStore
    from broker.membership.leased_membership import LeasedMembership
    from storage.environment.clock import Clock


class MembershipMetrics:
    """See `collect`. A node that is alone has none of them."""

    def __init__(
        self,
        membership: "LeasedMembership",
        controller: "Controller",
        clock: "Clock",
        store: "MetadataStore",
    ) -> None:
        self._store = store
        self._membership = membership
        self._controller = controller
        self._clock = clock
        self._hash = ImageHash()

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        membership, image = self._membership, self._controller.image
        keeper, fencing = membership.keeper, membership.fencing
        now_ms = self._clock.monotonic_ms()
        is_member = membership.lease != 0
        for name, text, value in (
            (
                "varve_broker_epoch",
                "Revision of this broker's registration; -1 before it.",
                membership.broker_epoch,
            ),
            (
                "varve_broker_is_let_in",
                "1 while the controller lets this life of the broker take roles.",
                membership.is_let_in(image),
            ),
            (
                "varve_lease_age_seconds",
                "Seconds since the newest answered renewal of the lease was sent; -1 without one.",
                (now_ms - keeper.renewed_ms) / 1000 if is_member else -1,
            ),
            (
                "varve_lease_valid_seconds",
                "Seconds for which the image of the cluster may be acted on; -1: not any more.",
                max(membership.validity.until_ms - now_ms, -1000.0) / 1000,
            ),
            (
                "varve_metadata_image_revision",
                "Revision of the metadata store that this broker's image shows.",
                image.revision,
            ),
            (
                "varve_metadata_image_hash",
                "Hash of this broker's image: brokers that show one revision have the same.",
                await self._hash.of(image),
            ),
        ):
            yield gauge(name, text, (), [((), float(value))])
        for family in self._store_families():
            yield family
        for name, text, value in (
            (
                "varve_lease_renewals_failed",
                "Renewals of the lease without an answer.",
                keeper.failures,
            ),
            (
                "varve_lease_renewals_withheld",
                "Renewals of the lease not sent, since the event loop stood still for too long.",
                keeper.stalls,
            ),
            (
                "varve_lease_losses",
                "Leases or live keys lost, after each of which the broker came back.",
                membership.losses,
            ),
            (
                "varve_broker_suspicions",
                "Brokers that were said to be dead by this one.",
                0 if fencing is None else fencing.suspicions,
            ),
            (
                "varve_broker_fences_by_evidence",
                "Leases of dead brokers that were revoked by this one.",
                0 if fencing is None else fencing.revocations,
            ),
        ):
            yield counter(name, text, (), [((), value)])

    def _store_families(self) -> list[Metric]:
        """Of a store that is asked over the network."""
        latency = getattr(self._store, "latency", None)
        if latency is None:
            return []
        return [
            gauge(
                "varve_metadata_store_last_answer_seconds",
                "How long the last answer of the metadata store took.",
                (),
                [((), latency.last_s)],
            ),
            counter(
                "varve_metadata_store_answers",
                "Answers of the metadata store.",
                (),
                [((), latency.count)],
            ),
            counter(
                "varve_metadata_store_answer_seconds",
                "How long all answers of the metadata store took together.",
                (),
                [((), latency.total_s)],
            ),
            counter(
                "varve_metadata_store_failovers",
                "Times that a server of the metadata store was left for the next one.",
                (),
                [((), getattr(self._store, "failovers", 0))],
            ),
        ]
