"""Anomalies of single values: what stands twice, is gone, was aborted, or came in part.

inconsistent-offsets  two values seen at one offset
duplicate             one value at two offsets
lost-write            acknowledged (or read before) and not there, below what was read
unseen                acknowledged and not there, at the end of the log
G1a                   a value was read whose sender was told that it failed or was aborted
phantom               a value was read that nobody ever sent there
precommitted-read     a transaction reads what it has not yet committed
torn                  part of a transaction is there, another part is not
"""

from collections.abc import Iterator

from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.anomalies.versions import Versions
from tests.checker.history import Op


def inconsistent_offsets(versions: Versions) -> Iterator[Anomaly]:
    """Look at every acknowledgement, also those of aborted transactions, and every read."""
    for key, order in versions.orders.items():
        for offset, values in sorted(order.seen.items()):
            if len(values) > 1:
                yield Anomaly("inconsistent-offsets", f"{key}@{offset}: {sorted(values)}")


def duplicates(versions: Versions) -> Iterator[Anomaly]:
    """A value is sent once, so it has one offset."""
    for key, order in versions.orders.items():
        first: dict[str, int] = {}
        for offset, values in sorted(order.seen.items()):
            for value in values:
                if value in first:
                    yield Anomaly("duplicate", f"{key}: {value} at {first[value]} and {offset}")
                else:
                    first[value] = offset


def lost_writes(versions: Versions) -> Iterator[Anomaly]:
    """What must be there, and is not: `lost-write`, or `unseen` at the end of the log.

    With a final read of the key that counts; else what anybody has read. Values that a reader once
    had must be in the final read, too.
    """
    highest = {
        key: max((o for o, values in order.seen.items() if values & read.keys()), default=-1)
        for key, order in versions.orders.items()
        if (read := versions.read.get(key, {})) is not None
    }
    for (key, value), op in versions.writer.items():
        there = versions.final.get(key, versions.read.get(key, {}).keys())
        if value in there:
            continue
        once_read = key in versions.final and value in versions.read.get(key, {})
        if once_read and op.outcome != "fail":
            yield Anomaly("lost-write", f"{key}: {value} of {op.name} was read, later not there")
        elif op.outcome == "ok":
            offset = _offset(op, key, value)
            below = offset is not None and offset <= highest.get(key, -1)
            what = f"{key}@{offset}: {value} of {op.name} was acknowledged"
            if below:
                yield Anomaly("lost-write", what)
            elif key in versions.final:
                yield Anomaly("unseen", what)


def _offset(op: Op, key: str, value: str) -> int | None:
    return next((o for k, v, o in op.sends if k == key and v == value), None)


def aborted_reads(versions: Versions) -> Iterator[Anomaly]:
    """`G1a` and `phantom`; once per value."""
    for key, read in versions.read.items():
        for value, offset in read.items():
            writer = versions.writer.get((key, value))
            if writer is None:
                yield Anomaly("phantom", f"{key}@{offset}: nobody sent {value}")
            elif writer.outcome == "fail":
                yield Anomaly("G1a", f"{key}@{offset}: {value} of {writer.name}, which failed")


def precommitted_reads(versions: Versions) -> Iterator[Anomaly]:
    """Jepsen's name for a transaction that sees itself."""
    for op in versions.ops:
        if op.f == "txn" and op.sends:
            own = {(key, value) for key, value, _ in op.sends}
            for key, read in op.polls.items():
                for offset, value in read:
                    if (key, value) in own:
                        yield Anomaly("precommitted-read", f"{op.name}: {key}@{offset} {value}")


def torn_transactions(versions: Versions) -> Iterator[Anomaly]:
    """Only with final reads of all its keys: before, a part may merely not have been read yet."""
    for op in versions.ops:
        if op.f != "txn" or op.outcome == "fail" or len(op.sends) < 2:
            continue
        if not all(key in versions.final for key, _, _ in op.sends):
            continue
        missing = [f"{k}: {v}" for k, v, _ in op.sends if v not in versions.final[k]]
        if missing and len(missing) < len(op.sends):
            yield Anomaly("torn", f"{op.name} ({op.outcome}): not there {missing}")
