"""Crash points: a broker dies at one change of its disk, or right behind one of its commits.

A run is repeated with the same seed and plan; up to the point it is the same run. So all points of
a scripted failover can be tried one after the other, or some of them (`tests.simulation.walks`).

    count       the run without a crash: how many points each broker has
    try one     the broker dies there (kill -9, or its machine with what was not synced), and is
                started again a second later; the run must end as every other
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.simulation.world import World

DISK: Final = "disk"
STORE: Final = "store"
DOWN_S: Final = 1.0


class CrashPoint(NamedTuple):
    """Where a broker dies.

    Attributes:
        node_id: The broker.
        kind: DISK, a change of its disk; STORE, a transaction of it that was just carried out.
        number: The how manieth, from the start of the faults on; the first is 1.
        forgets: The machine loses what was not synced, if others have it.
    """

    node_id: int
    kind: str
    number: int
    forgets: bool = False


class CrashPoints:
    """Counts points, and lets a broker die at one.

    Attributes:
        counts: By broker and kind.
        has_struck: The point was reached.
    """

    def __init__(
        self,
        world: World,
        point: CrashPoint | None,
        choose: Callable[[int, str, int], CrashPoint | None] | None = None,
    ) -> None:
        """`choose`: asked at each point, instead of `point`; what it returns happens there."""
        self._world = world
        self._point = point
        self._choose = choose or self._is_point
        self._is_counting = False
        self.counts: Counter[tuple[int, str]] = Counter()
        self.has_struck = False
        for place in world.brokers.values():
            place.on_change = lambda node_id: self._passed(node_id, DISK)
            place.on_commit = lambda node_id: self._passed(node_id, STORE)

    def begin(self) -> None:
        """Count from now on."""
        self._is_counting = True

    def end(self) -> None:
        """Count no more."""
        self._is_counting = False

    def _passed(self, node_id: int, kind: str) -> None:
        place = self._world.brokers[node_id]
        if not self._is_counting or not place.is_running:
            return
        self.counts[node_id, kind] += 1
        point = self._choose(node_id, kind, self.counts[node_id, kind])
        if point is None:
            return
        self.has_struck = True
        if point.forgets and self._is_safe_without(node_id):
            place.crash(None)
        else:
            place.kill()
        loop = self._world.loop
        loop.call_in_later(DOWN_S, loop.outside, self._world.start, node_id)

    def _is_point(self, node_id: int, kind: str, number: int) -> CrashPoint | None:
        point = self._point
        return point if point is not None and (node_id, kind, number) == point[:3] else None

    def _is_safe_without(self, node_id: int) -> bool:
        return all(
            set(partition.isr) - {node_id}
            for topic in self._world.image.topics.values()
            for partition in topic.partitions
        )
