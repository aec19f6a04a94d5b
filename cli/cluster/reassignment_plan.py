"""Plans of reassignments: as few replicas as possible are moved, to brokers that have fewest.

    drain        replicas of some brokers go to others
    add          some brokers get their share, from those that have most
    factor       replicas are added; or removed, those of brokers that are away first, then the last

A replica comes into the place of the one that it replaces, so the order of the others, and by that
the preferred leader, stays. Racks are kept apart as far as there are enough of them. Brokers that
are fenced get nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cli.table import counted

Name = tuple[str, int]
"""Topic and index."""


class PlanError(Exception):
    """What is asked for cannot be; with the reason."""


@dataclass(slots=True)
class Placement:
    """Replicas as they would be; changed by what is planned.

    Attributes:
        replicas: Of each partition, the preferred leader first.
        racks: Of the brokers that may get replicas; None: no rack.
    """

    replicas: dict[Name, tuple[int, ...]]
    racks: Mapping[int, str | None]

    def load(self, brokers: Iterable[int]) -> dict[int, int]:
        """How many replicas each of these brokers has."""
        counts = dict.fromkeys(brokers, 0)
        for replicas in self.replicas.values():
            for node in replicas:
                if node in counts:
                    counts[node] += 1
        return counts

    def drain(self, names: Iterable[Name], gone: Collection[int]) -> None:
        """Give what some brokers have of these partitions to others.

        Raises:
            PlanError: There are too few others.
        """
        load = self.load(node for node in self.racks if node not in gone)
        for name in names:
            for at, node in enumerate(self.replicas[name]):
                if node in gone:
                    self._replace(name, at, self._chosen(name, load, leaving=node), load)

    def add(self, names: Iterable[Name], added: Sequence[int]) -> None:
        """Give some brokers their share of these partitions.

        Raises:
            PlanError: One of them is fenced, or not known.
        """
        for node in added:
            if node not in self.racks:
                raise PlanError(f"broker {node} is not there, or fenced")
        load = self.load(self.racks)
        for name in names:
            least = min(added, key=lambda node: (load[node], node))
            replicas = self.replicas[name]
            rich = [node for node in replicas if node not in added and node in load]
            if least in replicas or not rich:
                continue
            most = max(rich, key=lambda node: (load[node], -node))
            if load[most] - load[least] > 1 and self._spreads(replicas, most, least):
                self._replace(name, replicas.index(most), least, load)

    def resize(self, names: Iterable[Name], factor: int) -> None:
        """Have so many replicas of each of these partitions.

        Raises:
            PlanError: There are too few brokers.
        """
        load = self.load(self.racks)
        for name in names:
            while len(self.replicas[name]) < factor:
                node = self._chosen(name, load, leaving=None)
                self.replicas[name] = (*self.replicas[name], node)
                load[node] += 1
            replicas = self.replicas[name]
            # One that is away would be waited for, and may be gone for good.
            kept = sorted(replicas, key=lambda node: node not in load)[:factor]
            for node in replicas:
                if node in load and node not in kept:
                    load[node] -= 1
            self.replicas[name] = tuple(node for node in replicas if node in kept)

    def _replace(self, name: Name, at: int, node: int, load: dict[int, int]) -> None:
        replicas = list(self.replicas[name])
        if replicas[at] in load:
            load[replicas[at]] -= 1
        replicas[at] = node
        load[node] += 1
        self.replicas[name] = tuple(replicas)

    def _chosen(self, name: Name, load: Mapping[int, int], *, leaving: int | None) -> int:
        replicas = self.replicas[name]
        others = [node for node in load if node not in replicas]
        if not others:
            fewer = (
                f": first `varve cluster reassign --replication-factor {len(load)} --execute`"
                if leaving is not None and load
                else ""
            )
            raise PlanError(
                f"{name[0]}-{name[1]} has {counted(len(replicas), 'replica')}, and there is no "
                f"other broker for one{fewer}"
            )
        taken = [self.racks.get(node) for node in replicas if node != leaving]
        return min(others, key=lambda node: (taken.count(self.racks[node]), load[node], node))

    def _spreads(self, replicas: Sequence[int], leaving: int, coming: int) -> bool:
        """Whether the racks are kept apart as before."""
        before = {self.racks.get(node) for node in replicas}
        after = {self.racks.get(node) for node in replicas if node != leaving}
        return len(after | {self.racks[coming]}) >= len(before)
