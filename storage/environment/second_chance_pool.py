"""A bounded pool of resources that can be dropped and made again: open files, loaded indexes.

Least recently used, approximately: a thing that was used since the hand last passed gets a second
chance. Marking a use is then one attribute write (`holder.used = True`), which a Produce or Fetch
can afford; moving it in a list would cost more.

    admit ──> queue ──> front ──used?──yes──> used = False, back of the queue
                                   └──no───> release()
"""

import threading
from collections import OrderedDict
from typing import Protocol


class Holder(Protocol):
    """What the pool keeps: an object that can release its resource."""

    used: bool

    def release(self) -> None:
        """Drop the thing; it will be made again, and admitted again, when next needed."""
        ...


class SecondChancePool:
    """At most `capacity` (in whatever the weights count) of admitted holders.

    Attributes:
        name: For metrics and messages.
        capacity: Bound on the sum of weights; one holder above it is still let in.
        weight: Sum of weights now.
        admitted: Holders let in since start: misses.
        evicted: Holders evicted since start.
    """

    __slots__ = ("_holders", "_lock", "admitted", "capacity", "evicted", "name", "weight")

    def __init__(self, name: str, capacity: int) -> None:
        assert capacity > 0, capacity
        self.name = name
        self.capacity = capacity
        self.weight = 0
        self.admitted = 0
        self.evicted = 0
        self._holders: OrderedDict[Holder, int] = OrderedDict()
        # Recovery and flushes open files in threads; the hot path never comes here.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._holders)

    def admit(self, holder: Holder, weight: int = 1) -> None:
        """Count a holder that has just opened or loaded its thing, and make room for it."""
        holder.used = True
        with self._lock:
            self.weight += weight - self._holders.pop(holder, 0)
            self._holders[holder] = weight
            self.admitted += 1
            while self.weight > self.capacity and len(self._holders) > 1:
                candidate, its_weight = self._holders.popitem(last=False)
                if candidate is holder or candidate.used:
                    candidate.used = False
                    self._holders[candidate] = its_weight
                    continue
                self.weight -= its_weight
                self.evicted += 1
                candidate.release()

    def evict(self, count: int) -> int:
        """Have up to `count` holders let go, those admitted longest ago first; returns how many.

        For when what the pool holds is needed elsewhere, whatever its capacity says.
        """
        with self._lock:
            gone = min(count, len(self._holders))
            for _ in range(gone):
                holder, weight = self._holders.popitem(last=False)
                self.weight -= weight
                self.evicted += 1
                holder.release()
        return gone

    def discard(self, holder: Holder) -> None:
        """Forget a holder that let go by itself."""
        with self._lock:
            self.weight -= self._holders.pop(holder, 0)
