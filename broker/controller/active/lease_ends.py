"""Leases of brokers that have ended, and whether to believe it yet.

    live/<id> gone ──50 ms──> the broker is dead: it is fenced
         │
         ├─ this broker's own, while this process lives    ┐ the store has ended leases before
         └─ at least two, and half of all, within 500 ms   ┴ their time: nothing moves for 1 s

An end that brokers had evidence for (`broker.membership.fencing`) is not counted: it went together
with what they had said of it, and no other broker's clock was in it.

A store whose leader was paused deletes live leases when it wakes. Their brokers put them again
within milliseconds, with the same epoch, so a moment of patience costs no leader.
"""

from collections import deque
from enum import Enum
from typing import Final

from broker.controller.images.cluster_image import ClusterImage
from storage.environment.clock import Clock

BELIEVED_AFTER_MS: Final = 50.0
"""From the end of one lease until its broker is taken for dead."""

TOGETHER_MS: Final = 500.0
"""Ends of leases that are closer than this are counted together."""

PATIENCE_MS: Final = 1000.0
"""How long nothing moves when leases have ended before their time."""


class End(Enum):
    """Why a broker has no lease, as far as the store shows it."""

    KILLED = "its process is dead: connections to it ended, and new ones are refused"
    STOPPED = "it was stopped"
    EXPIRED = "its lease has ended"


class LeaseEnds:
    """See the module; fed with every image, by every broker: any may be the next controller."""

    def __init__(self, node_id: int, clock: Clock) -> None:
        self._node_id = node_id
        self._clock = clock
        self._ended: deque[tuple[float, int]] = deque()
        self._patient_until = 0.0
        self._since: dict[int, float] = {}
        self._ends: dict[int, End] = {}
        self.early_ends = 0

    def see(self, old: ClusterImage, new: ClusterImage) -> None:
        """Note which leases have ended, and which are there again."""
        now = self._clock.monotonic_ms()
        lived = {node for node, broker in old.brokers.items() if broker.is_live}
        dead = [node for node, broker in new.brokers.items() if not broker.is_live]
        gone = [node for node in dead if node in lived]
        self._since = {node: self._since.get(node, now) for node in dead}
        for node in gone:
            self._since[node] = now
            self._ends[node] = _end(old, new, node)
            if self._ends[node] is not End.KILLED:
                self._ended.append((now, node))
        while self._ended and self._ended[0][0] < now - TOGETHER_MS:
            self._ended.popleft()
        together = len({node for _, node in self._ended})
        members = sum(not broker.is_fenced for broker in old.brokers.values())
        if gone and (self._node_id in gone or (together >= 2 and 2 * together >= members)):
            self.early_ends += 1
            self._patient_until = now + PATIENCE_MS

    def end_of(self, node_id: int) -> End:
        """Why a broker without a lease has none; an end that was not seen here is an expiry."""
        return self._ends.get(node_id, End.EXPIRED)

    def believed_at_ms(self, node_id: int) -> float:
        """From when a broker without a lease is dead (monotonic)."""
        return max(self._since.get(node_id, 0.0) + BELIEVED_AFTER_MS, self._patient_until)


def _end(old: ClusterImage, new: ClusterImage, node: int) -> End:
    if _by_evidence(old, new, node):
        return End.KILLED
    return End.STOPPED if old.brokers[node].is_draining else End.EXPIRED


def _by_evidence(old: ClusterImage, new: ClusterImage, node: int) -> bool:
    """Whether the end of a lease came with what brokers had said of its holder, in one revision.

    A lease that ends by itself leaves that: it lies under the leases of those who said it.
    """
    said = _said(old, node)
    return bool(said) and not _said(new, node)


def _said(image: ClusterImage, node: int) -> list[int]:
    """Who says that a broker is dead; its own word says that it lives."""
    facts = image.facts.get(node)
    return [] if facts is None else [by for by, _ in facts.suspected_by if by != node]
