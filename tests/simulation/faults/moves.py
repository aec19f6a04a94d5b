"""Replicas that change their log directory (AlterReplicaLogDirs), and a broker that dies meanwhile.

    a copy is begun ──> so and so many changes of the disk later ──> kill -9, or power that is lost

What must hold is asked of the end of a run: each replica lies once, where the store says (J).
"""

from collections.abc import Callable, Iterable
from random import Random

from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.fakes.filesystem import Event
from tests.simulation.brokers import COPY, SimBroker
from tests.simulation.world import Place


def replicas_at(broker: SimBroker) -> list[Place]:
    """What a broker serves, in order."""
    if not broker.is_ready or broker.broker is None:
        return []
    return sorted(Place(*one.topic_partition) for one in broker.broker.replicas.partitions())


def moves_of(places: Iterable[Place], directory: str) -> AlterReplicaLogDirsRequest:
    """A request that moves replicas to a directory."""
    topics = [
        AlterReplicaLogDirTopic(name=topic, partitions=[partition]) for topic, partition in places
    ]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=directory, topics=topics)])


def elsewhere(broker: SimBroker, place: Place, random: Random) -> str:
    """A directory in which a broker does not have a replica; any, if it has none."""
    folder = broker.folder(*place) or ""
    others = [one for one in broker.directories if not folder.startswith(f"{one}/")]
    return random.choice(others or list(broker.directories))


class Striker:
    """Strikes once, so many changes of a disk after a copy was begun there.

    Attributes:
        has_struck: It has.
    """

    def __init__(self, broker: SimBroker, changes: int, strike: Callable[[], object]) -> None:
        """Wait for the copy."""
        self._broker = broker
        self._left = changes
        self._strike = strike
        self._has_begun = False
        self.has_struck = False
        broker.on_event = self._saw

    def _saw(self, event: Event) -> None:
        self._has_begun = self._has_begun or COPY in event.path
        if not self._has_begun:
            return
        self._left -= 1
        if self._left <= 0:
            self.has_struck = True
            self.end()
            self._strike()

    def end(self) -> None:
        """Wait no more."""
        self._broker.on_event = lambda _event: None
