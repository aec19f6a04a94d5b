"""Version orders: which value stands at which offset of a key, as far as anybody has seen.

Offsets of markers and of records that nobody read are gaps; positions are counted without them, so
that the reader who goes from one position to the next has skipped nothing that anybody knows of.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.checker.history import Op


@dataclass(slots=True)
class VersionOrder:
    """One key's order.

    Attributes:
        seen: Every value ever acknowledged or read at an offset, whoever did.
        values: In order; of offsets with several values the smallest name counts.
        position: Of each value in `values`.
        offsets: Of each value in `values`.
    """

    seen: dict[int, set[str]] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)
    position: dict[str, int] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Versions:
    """What all analyses need of a history.

    Attributes:
        ops: The history.
        orders: By key.
        writer: (key, value) to the operation that sent it.
        final: By key, what the reader after the end saw; a key it did not read is absent.
        read: By key, what anybody read.
    """

    ops: list[Op]
    orders: dict[str, VersionOrder] = field(default_factory=dict)
    writer: dict[tuple[str, str], Op] = field(default_factory=dict)
    final: dict[str, set[str]] = field(default_factory=dict)
    read: dict[str, dict[str, int]] = field(default_factory=dict)


def versions_of(ops: Iterable[Op]) -> Versions:
    """Build them.

    The order has every value that was read, and those of sends that are `ok`: what was
    acknowledged in a transaction that failed stands in the log, but not for readers.
    """
    versions = Versions(list(ops))
    placed: dict[str, dict[int, set[str]]] = {}
    for op in versions.ops:
        for key, value, offset in op.sends:
            versions.writer[key, value] = op
            if offset is not None:
                _order(versions, key).seen.setdefault(offset, set()).add(value)
                if op.outcome == "ok":
                    placed.setdefault(key, {}).setdefault(offset, set()).add(value)
        for key, read in op.polls.items():
            everybody = versions.read.setdefault(key, {})
            here = placed.setdefault(key, {})
            seen = _order(versions, key).seen
            for offset, value in read:
                everybody[value] = offset
                here.setdefault(offset, set()).add(value)
                seen.setdefault(offset, set()).add(value)
            if op.value.get("final"):
                versions.final.setdefault(key, set()).update(value for _, value in read)
        for key, delivered in op.value.get("deliveries", {}).items():
            everybody = versions.read.setdefault(key, {})
            for offset, value, _count in delivered:
                everybody[value] = offset
                placed.setdefault(key, {}).setdefault(offset, set()).add(value)
                _order(versions, key).seen.setdefault(offset, set()).add(value)
        if op.f == "ends":
            for key in op.value["keys"]:
                versions.final.setdefault(key, set())
    for key, by_offset in placed.items():
        order = _order(versions, key)
        for offset in sorted(by_offset):
            value = min(by_offset[offset])
            if value not in order.position:
                order.position[value] = len(order.values)
                order.values.append(value)
                order.offsets.append(offset)
    return versions


def _order(versions: Versions, key: str) -> VersionOrder:
    order = versions.orders.get(key)
    if order is None:
        order = versions.orders[key] = VersionOrder()
    return order
