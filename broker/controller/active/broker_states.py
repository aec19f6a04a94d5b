"""What the controller may count on: which brokers take part, may lead, wait to be let in."""

from dataclasses import dataclass

from broker.controller.active.lease_ends import LeaseEnds
from broker.controller.images.broker_records import LastRun
from broker.controller.images.cluster_image import BrokerImage, ClusterImage


@dataclass(frozen=True, slots=True)
class BrokerStates:
    """Brokers by state, at one moment.

    Attributes:
        active: Let in, and alive or not known to be dead.
        may_lead: Of those, all that do not want to stop.
        without_lease: Of the active, all whose lease has ended a moment ago: they go on leading
            what they lead until it is believed, and are elected for nothing.
        dead: Let in, and without a lease for long enough: to be fenced.
        waiting: Registered and alive in an epoch that has not been let in.
        lost: Of those waiting, all whose logs may lack what they had.
        eligible: All that are registered, but for the lost: who of them is in an ELR stays there.
        next_ms: When a broker without a lease will be dead (monotonic); None: there is none.
    """

    active: frozenset[int]
    may_lead: frozenset[int]
    dead: tuple[int, ...]
    waiting: tuple[int, ...]
    lost: frozenset[int]
    eligible: frozenset[int]
    next_ms: float | None = None
    without_lease: frozenset[int] = frozenset()

    @property
    def draining(self) -> frozenset[int]:
        """Those that take part and want to stop."""
        return self.active - self.may_lead

    @classmethod
    def of(cls, image: ClusterImage, ends: LeaseEnds, now_ms: float) -> "BrokerStates":
        """The states of an image's brokers."""
        active: list[int] = []
        may_lead: list[int] = []
        dead: list[int] = []
        waiting: list[int] = []
        lost: list[int] = []
        without_lease: list[int] = []
        later: list[float] = []
        for node, broker in sorted(image.brokers.items()):
            if broker.is_fenced:
                if broker.is_live:
                    waiting.append(node)
                    if _has_lost(image, broker):
                        lost.append(node)
                continue
            if not broker.is_live:
                believed_ms = ends.believed_at_ms(node)
                if believed_ms <= now_ms:
                    dead.append(node)
                    continue
                later.append(believed_ms)
                without_lease.append(node)
            active.append(node)
            if not broker.is_draining:
                may_lead.append(node)
        return cls(
            frozenset(active),
            frozenset(may_lead),
            tuple(dead),
            tuple(waiting),
            frozenset(lost),
            frozenset(image.brokers) - frozenset(lost),
            min(later, default=None),
            frozenset(without_lease),
        )


def _has_lost(image: ClusterImage, broker: BrokerImage) -> bool:
    """Whether this life of a broker began with logs that may lack what they had.

    Not so for one that was let in before, in the same epoch: it has only lost its lease.
    """
    if broker.ended != LastRun.UNKNOWN.value:
        return False
    fence = image.facts[broker.node_id].fence
    return fence is None or fence.epoch != broker.epoch
