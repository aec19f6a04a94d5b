"""Anomalies of order: gaps and steps back in what one process reads or writes of a key.

    int-poll-skip, int-nonmonotonic-poll    between two values of one poll or transaction
    poll-skip, nonmonotonic-poll            between polls of one process
    int-nonmonotonic-send, int-send-skip    between two values one transaction sent
    nonmonotonic-send                       between sends of one process
    realtime-send                           between sends of all: one that was acknowledged before
                                            another was begun stands before it

A reader that is assigned keys starts at their beginning; one whose position was moved, by itself or
by a rebalance, may start anywhere.
"""

from collections.abc import Iterator

from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.anomalies.versions import Versions
from tests.checker.history import Op

BEGINNING = -1
"""Position before the first value."""


def poll_orders(versions: Versions) -> Iterator[Anomaly]:
    """All four kinds of polls."""
    positions: dict[tuple[str, str], int] = {}
    for op in versions.ops:
        if op.f == "assign":
            for known in [one for one in positions if one[0] == op.proc]:
                del positions[known]
            for key in op.value["keys"]:
                positions[op.proc, key] = BEGINNING
        elif op.f == "seek":
            for key in op.value["keys"]:
                positions.pop((op.proc, key), None)
        for key, read in op.polls.items():
            order = versions.orders[key]
            last = positions.get((op.proc, key))
            internal = ""
            for offset, value in read:
                position = order.position.get(value)
                if position is None or order.offsets[position] != offset:
                    # A duplicate or an inconsistent offset, which is reported as such.
                    last, internal = None, "int-"
                    continue
                if last is not None and position > last + 1:
                    skipped = order.values[last + 1 : position]
                    yield Anomaly(
                        f"{internal}poll-skip",
                        f"{op.name}: {key}@{offset} {value} after skipping "
                        f"{len(skipped)}, first {skipped[0]}@{order.offsets[last + 1]}",
                    )
                elif last is not None and position <= last:
                    yield Anomaly(
                        f"{internal}nonmonotonic-poll",
                        f"{op.name}: {key}@{offset} {value} after {order.values[last]}",
                    )
                last, internal = position, "int-"
            if last is None:
                positions.pop((op.proc, key), None)
            else:
                positions[op.proc, key] = last


def send_orders(versions: Versions) -> Iterator[Anomaly]:
    """All three kinds of sends; those whose place nobody knows are passed over."""
    last_sent: dict[tuple[str, str], tuple[int, Op]] = {}
    for op in versions.ops:
        if op.outcome == "fail":
            continue
        for key, value, _ in op.sends:
            position = versions.orders[key].position.get(value) if key in versions.orders else None
            if position is None:
                continue
            before = last_sent.get((op.proc, key))
            if before is not None:
                internal = "int-" if before[1] is op else ""
                if position <= before[0]:
                    yield Anomaly(
                        f"{internal}nonmonotonic-send",
                        f"{op.name}: {key} {value} stands before the one of {before[1].name}",
                    )
                elif internal and position > before[0] + 1:
                    yield Anomaly("int-send-skip", f"{op.name}: {key} others before {value}")
            last_sent[op.proc, key] = (position, op)


def realtime_orders(versions: Versions) -> Iterator[Anomaly]:
    """`realtime-send`: an offset is given while its send lasts, so times and offsets agree."""
    for key, order in versions.orders.items():
        latest: Op | None = None
        for value in order.values:
            writer = versions.writer.get((key, value))
            if writer is None:
                continue
            ended = writer.completed_ns if writer.outcome == "ok" else None
            if latest is not None and ended is not None and ended < latest.invoked_ns:
                yield Anomaly(
                    "realtime-send",
                    f"{key}: {value} of {writer.name} stands after {latest.name}, "
                    "which was begun later",
                )
            if latest is None or writer.invoked_ns > latest.invoked_ns:
                latest = writer
