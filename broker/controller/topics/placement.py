"""Placement of new partitions: leaders and followers striped over brokers, racks alternating.

    racks A, B, C with brokers A0 A1, B0 B1, C0 C1:

    partition 0   A0 B0 C0
    partition 1   B1 C1 A1
    partition 2   C0 A0 B0   ...

Each partition begins with the next rack, and takes one broker of each rack before a second one of
any; within a rack brokers take turns. Where both begin is random. Brokers that are fenced or want
to stop come after all others of their rack, and never first; brokers without a rack are a rack of
their own. After as many partitions as there are brokers to lead the order is drawn again, so that
the same brokers do not follow each other in every partition.

Source: Kafka 4.2, StripedReplicaPlacer.java.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from broker.controller.images.broker_records import BrokerImage
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from storage.environment.randomness import Randomness

_T = TypeVar("_T")


@dataclass(slots=True)
class _Turns:
    """Brokers that take turns; `next` gives each once per partition, then None."""

    nodes: list[int] = field(default_factory=list)
    offset: int = 0
    taken: int = 0
    partition: int = 0

    def next(self, partition: int) -> int | None:
        if not self.nodes:
            return None
        if partition != self.partition:
            self.partition = partition
            self.taken = 0
            self.offset = (self.offset + 1) % len(self.nodes)
        if self.taken == len(self.nodes):
            return None
        node = self.nodes[(self.offset + self.taken) % len(self.nodes)]
        self.taken += 1
        return node


@dataclass(slots=True)
class _Rack:
    """Brokers of one rack."""

    unfenced: _Turns = field(default_factory=_Turns)
    fenced: _Turns = field(default_factory=_Turns)

    def next(self, partition: int) -> int | None:
        node = self.unfenced.next(partition)
        return self.fenced.next(partition) if node is None else node


class Placer:
    """Gives the replicas of one partition after the other; made for one plan.

    Args:
        brokers: All that are registered.
        randomness: For where to begin.
    """

    def __init__(self, brokers: Mapping[int, BrokerImage], randomness: Randomness) -> None:
        self._randomness = randomness
        self._total = len(brokers)
        self._unfenced = sum(map(takes_part, brokers.values()))
        racks: dict[str | None, _Rack] = {}
        for node, broker in sorted(brokers.items()):
            rack = racks.setdefault(broker.rack, _Rack())
            (rack.unfenced if takes_part(broker) else rack.fenced).nodes.append(node)
        self._racks = [racks[name] for name in sorted(racks, key=_rack_order)]
        for rack in self._racks:
            for turns in (rack.unfenced, rack.fenced):
                turns.offset = randomness.below(max(len(turns.nodes), 1))
        self._first = randomness.below(max(len(self._racks), 1))
        self._partition = 0
        self._leaders_rack = 0

    def place(self, factor: int) -> tuple[int, ...]:
        """The replicas of the next partition, the preferred leader first.

        Raises:
            ApiError: INVALID_REPLICATION_FACTOR when there are too few brokers, or all are fenced.
        """
        if factor > self._total:
            raise _refusal(
                factor,
                f"The target replication factor of {factor} cannot be reached because only "
                f"{self._total} broker(s) are registered.",
            )
        if not self._unfenced:
            raise _refusal(factor, "All brokers are currently fenced.")
        if self._partition == self._unfenced and self._unfenced > 1:
            self._shuffle()
        replicas = [self._leader()]
        at = self._first
        leaders_rack = self._leaders_rack
        while len(replicas) < factor:
            # The leader's rack has had its turn in the first round.
            if at == leaders_rack:
                leaders_rack = -1
            else:
                node = self._racks[at].next(self._partition)
                if node is not None:
                    replicas.append(node)
            at = (at + 1) % len(self._racks)
        self._partition += 1
        self._first = (self._first + 1) % len(self._racks)
        return tuple(replicas)

    def _leader(self) -> int:
        at = self._first
        while True:
            node = self._racks[at].unfenced.next(self._partition)
            if node is not None:
                self._leaders_rack = at
                return node
            at = (at + 1) % len(self._racks)

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._randomness)
        for rack in self._racks:
            _shuffle(rack.unfenced.nodes, self._randomness)
            _shuffle(rack.fenced.nodes, self._randomness)
        self._partition = 0


def takes_part(broker: BrokerImage) -> bool:
    """Whether a broker is let in and does not want to stop."""
    return not broker.is_fenced and not broker.is_draining


def _refusal(factor: int, why: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {factor} time(s): {why}",
    )


def _rack_order(rack: str | None) -> tuple[bool, str]:
    return rack is not None, rack or ""


def _shuffle(items: list[_T], randomness: Randomness) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = randomness.below(last + 1)
        items[last], items[other] = items[other], items[last]
