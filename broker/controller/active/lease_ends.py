"""Leases of brokers that have ended, and whether to believe it yet.

    live/<id> gone ──50 ms──> the broker is dead: it is fenced
         │
         ├─ this broker's own, while this process lives    ┐ the store has ended leases before
         └─ at least two, and half of all, within 500 ms   ┴ their time: nothing moves for 1 s

A store whose leader was paused deletes live leases when it wakes. Their brokers put them again
within milliseconds, with the same epoch, so a moment of patience costs no leader.
"""

from collections import deque
from typing import Final

from broker.controller.images.cluster_image import ClusterImage
from storage.environment.clock import Clock

BELIEVED_AFTER_MS: Final = 50.0
"""From the end of one lease until its broker is taken for dead."""

TOGETHER_MS: Final = 500.0
"""Ends of leases that are closer than this are counted together."""

PATIENCE_MS: Final = 1000.0
"""How long nothing moves when leases have ended before their time."""


class LeaseEnds:
    """See the module; fed with every image, by every broker: any may be the next controller."""

    def __init__(self, node_id: int, clock: Clock) -> None:
        self._node_id = node_id
        self._clock = clock
        self._ended: deque[tuple[float, int]] = deque()
        self._patient_until = 0.0
        self._since: dict[int, float] = {}
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
            self._ended.append((now, node))
        while self._ended and self._ended[0][0] < now - TOGETHER_MS:
            self._ended.popleft()
        together = len({node for _, node in self._ended})
        members = sum(not broker.is_fenced for broker in old.brokers.values())
        if gone and (self._node_id in gone or (together >= 2 and 2 * together >= members)):
            self.early_ends += 1
            self._patient_until = now + PATIENCE_MS

    def believed_at_ms(self, node_id: int) -> float:
        """From when a broker without a lease is dead (monotonic)."""
        return max(self._since.get(node_id, 0.0) + BELIEVED_AFTER_MS, self._patient_until)
