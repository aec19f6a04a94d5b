"""Whether clients find at this broker what it is to serve: the 200 or 503 of `/readyz`.

    let in ──> its leaders elected, their roles taken ──> coordinators loaded ──> SETTLED: ready
                 └──not within `LEADERS_MS`: they wait for others──^
    SETTLED ──a coordinator is loaded──> not ready meanwhile
    no longer let in ──> from the beginning

Let in, a broker leads nothing yet: the controller elects it in a later image. Until then nothing is
being loaded, either, and a broker that is alone would be ready, then not, then ready again.

What waits for other brokers keeps nobody unready: where brokers are started one after the other,
each once the one before it is ready, as Kubernetes does it, it would wait for ever.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.controller.images.partition_image import NO_LEADER
from storage.environment.clock import Clock

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.controller.images.partition_image import PartitionImage
    from broker.lifecycle.coordinators import Coordinators
    from broker.replicas.replica_manager import ReplicaManager

LEADERS_MS: Final = 5_000.0
"""Since it was let in: what has no leader by then may have none before another broker is there."""


class Readiness:
    """See the module. On the loop's thread; `look` with every image, too."""

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        replicas: "ReplicaManager",
        *,
        image: "Callable[[], ClusterImage]",
        is_let_in: Callable[[], bool],
        coordinators: "Callable[[], Coordinators | None]",
    ) -> None:
        """Look at nothing yet.

        Args:
            node_id: Of this broker.
            clock: For how long leaders have been waited for.
            replicas: The partitions that are open here.
            image: The newest; there is one once the broker is let in.
            is_let_in: Whether every log is open and the cluster lets this broker take part.
            coordinators: None: not made yet.
        """
        self._node_id = node_id
        self._clock = clock
        self._replicas = replicas
        self._image = image
        self._is_let_in = is_let_in
        self._coordinators = coordinators
        self._let_in_ms: float | None = None
        self._is_settled = False

    def look(self) -> bool:
        """Note what has become so; whether this broker is let in."""
        if not self._is_let_in():
            self._let_in_ms = None
            self._is_settled = False
            return False
        if self._let_in_ms is None:
            self._let_in_ms = self._clock.monotonic_ms()
        return True

    def is_ready(self) -> bool:
        """Whether it is; it stays so while it is let in and loads no further coordinator."""
        return self.look() and not self.waiting_for()

    def waiting_for(self) -> str:
        """What is missing of a broker that is let in; empty: nothing, or it is not let in."""
        if not self.look():
            return ""
        if not self._is_settled and self._awaits_leaders():
            return "waiting for the leaders of partitions to be elected"
        coordinators = self._coordinators()
        if coordinators is None or coordinators.is_reading:
            return "loading the state of coordinators"
        self._is_settled = True
        return ""

    def _awaits_leaders(self) -> bool:
        assert self._let_in_ms is not None, "it is let in"
        if self._clock.monotonic_ms() - self._let_in_ms >= LEADERS_MS:
            return False
        if self._replicas.roles_due():
            return True
        image = self._image()
        for partition in self._replicas.partitions():
            found = image.partition(*partition.topic_partition)
            if found is not None and found.leader == NO_LEADER and self._may_lead(found):
                return True
        return False

    def _may_lead(self, partition: "PartitionImage") -> bool:
        return self._node_id in (*partition.isr, *partition.elr, *partition.last_known_elr)
