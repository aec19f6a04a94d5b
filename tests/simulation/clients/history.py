"""What clients of a simulated cluster were told, and what that promises about the logs."""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from operator import itemgetter
from typing import Final

from tests.simulation.world import Place, Violation


class History:
    """See the module.

    Attributes:
        acked: By partition, offset and value of each record acknowledged with acks=all.
        acked_end: By partition, the offset behind the last of them.
        seen: By partition, offset and value of each record that a consumer was given.
        sent: By producer, values in the order in which they were sent first.
        on_ack: Called with the partition and the offset behind what was acknowledged.
        lone_acks: Records acknowledged with acks=1: they may be lost, and are counted.
        trimmed: By partition, the highest offset below which records were to be deleted.
        deleted: The highest of these offsets of which it was said that it is done, and the names of
            the processes that have done it.
        written_ms: By value, the timestamp of a record, of acks=all.
    """

    def __init__(self) -> None:
        self.acked: Final[defaultdict[Place, dict[int, bytes]]] = defaultdict(dict)
        self.acked_end: Final[defaultdict[Place, int]] = defaultdict(int)
        self.seen: Final[defaultdict[Place, dict[int, bytes]]] = defaultdict(dict)
        self.sent: Final[defaultdict[str, list[bytes]]] = defaultdict(list)
        self.acked_values: Final[defaultdict[Place, set[bytes]]] = defaultdict(set)
        self.lone_acks = 0
        self.trimmed: Final[defaultdict[Place, int]] = defaultdict(int)
        self.deleted: Final[defaultdict[Place, tuple[int, frozenset[str]]]] = defaultdict(
            lambda: (0, frozenset())
        )
        self.written_ms: Final[dict[bytes, int]] = {}
        self.on_ack: Callable[[Place, int], None] = lambda _place, _end: None

    def ack(self, place: Place, offset: int, values: list[bytes]) -> None:
        """A batch was acknowledged; -1: as written before, at an offset not named."""
        self.acked_values[place].update(values)
        if offset < 0:
            return
        for at, value in enumerate(values, offset):
            other = self.acked[place].setdefault(at, value)
            if other != value:
                raise Violation(f"{place} offset {at} was acknowledged as {other!r} and {value!r}")
            self._compare(place, at, value)
        self.ack_up_to(place, offset + len(values))

    def ack_up_to(self, place: Place, end: int) -> None:
        """Records before an offset are acknowledged; by `ack` or by who keeps them otherwise."""
        self.acked_end[place] = max(self.acked_end[place], end)
        self.on_ack(place, end)

    def delete(
        self, place: Place, offset: int, low_watermark: int, processes: frozenset[str]
    ) -> None:
        """Records below an offset are said to be deleted, by processes that were in sync then.

        What is killed may forget it: as in Kafka, log starts are written down now and then.

        Raises:
            Violation: The low watermark that goes with it is below.
        """
        if low_watermark < offset:
            raise Violation(f"D {place}: deleted before {offset}, and begins at {low_watermark}")
        self.deleted[place] = max(self.deleted[place], (offset, processes), key=itemgetter(0))

    def saw(self, place: Place, offset: int, value: bytes) -> None:
        """A consumer was given a record."""
        other = self.seen[place].setdefault(offset, value)
        if other != value:
            raise Violation(f"{place} offset {offset} was read as {other!r} and {value!r}")
        self._compare(place, offset, value)

    def _compare(self, place: Place, offset: int, value: bytes) -> None:
        for kind, records in (("acknowledged", self.acked), ("read", self.seen)):
            other = records[place].get(offset)
            if other is not None and other != value:
                raise Violation(f"{place} offset {offset} is {value!r}, was {kind} as {other!r}")

    @property
    def count(self) -> int:
        """Records acknowledged with acks=all."""
        return sum(map(len, self.acked_values.values()))

    def judge(self, place: Place, log: dict[int, bytes], start: int = 0) -> None:
        """Compare with the whole log at the end; `start` is where it begins by then.

        Raises:
            Violation: A record that was acknowledged or read is lost, doubled or out of order.
        """
        for kind, records in (("acknowledged", self.acked), ("read", self.seen)):
            for offset, value in records[place].items():
                if offset >= start and log.get(offset) != value:
                    raise Violation(
                        f"{place} offset {offset}: {kind} as {value!r}, is {log.get(offset)!r}"
                    )
        found = list(log.values())
        expired = {value for at, value in self.acked[place].items() if at < start}
        if start:
            # Acknowledged as written before, at an offset not named: it may lie below the start.
            expired |= self.acked_values[place].difference(self.acked[place].values())
        lost = self.acked_values[place].difference(found, expired)
        if lost:
            raise Violation(f"{place} has lost {len(lost)} acknowledged records: {min(lost)!r}")
        by_producer: defaultdict[bytes, list[int]] = defaultdict(list)
        for value in found:
            name, _, number = value.rpartition(b"-")
            by_producer[name].append(int(number))
        for name, numbers in by_producer.items():
            if b"idempotent" in name and numbers != sorted(set(numbers)):
                wrong = next(b for a, b in pairwise(numbers) if b <= a)
                raise Violation(f"{place} has {name!r}-{wrong} doubled or out of order")
