"""Brokers that have just been fenced: Metadata goes on naming them for a while.

librdkafka ends its handle of a broker that an answer names no longer, and with it what it had set
out to do with the partitions of that broker: it moves them to their new leader a second later, at
its next look (seen with 2.x: "Decommissioning this broker", then "Reverting from preferred replica
to leader -1"). The answer that names the new leader is mostly the first without the old one, so
every failover took its clients a second longer. A broker that is dead and named costs a client that
tries it a refused connection, as one does that has died a moment ago.

One that starts again is fenced until it is let in, which clients of a restarted broker saw as its
absence a second time: its next life lingers from its registration on.

DescribeCluster tells the fenced from the others at once, and partitions name no broker that is
fenced.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.controller.images.broker_records import BrokerImage
    from broker.controller.images.cluster_image import ClusterImage
    from storage.environment.clock import Clock

LINGER_MS: Final = 10_000.0


class LingeringBrokers:
    """See the module; follows the image from `image_changed` on."""

    __slots__ = ("_clock", "_fenced")

    def __init__(self, clock: "Clock | None" = None) -> None:
        """Without a clock no broker lingers: there is only one."""
        self._clock = clock
        # Node id to when it lingers no longer.
        self._fenced: dict[int, float] = {}

    def image_changed(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Take what has been fenced since."""
        if self._clock is None or old.brokers is new.brokers:
            return
        now_ms = self._clock.monotonic_ms()
        for node_id, broker in new.brokers.items():
            before = old.brokers.get(node_id)
            if not broker.is_fenced:
                self._fenced.pop(node_id, None)
            elif before is not None and (
                not before.is_fenced
                or (before.epoch != broker.epoch and self._fenced.get(node_id, 0.0) > now_ms)
            ):
                self._fenced[node_id] = now_ms + LINGER_MS

    def of(self, image: "ClusterImage") -> "Sequence[BrokerImage]":
        """Those that are fenced in `image`, and are still to be named."""
        if not self._fenced:
            return ()
        assert self._clock is not None
        now_ms = self._clock.monotonic_ms()
        found = []
        for node_id, until_ms in list(self._fenced.items()):
            broker = image.brokers.get(node_id)
            if broker is None or now_ms >= until_ms:
                # Unregistered, or gone for long.
                del self._fenced[node_id]
            elif broker.is_fenced:
                found.append(broker)
        return found
