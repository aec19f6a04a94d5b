"""Anomalies of share groups: what is delivered to whom, how often, and until when.

    share-lost            a record that was never delivered
    share-unfinished      a record that nobody has finished, and that is not delivered any more
    share-redelivered     acquired after the broker had said that it is done
    share-delivery-count  less than one, or more than the limit
    share-count-repeated  two deliveries of one record with one count

A record is done when an ACCEPT or REJECT of it was answered with success: also one that comes too
late is, if the record is done already. A count may come again after a restart of the broker, which
does not write down whom it has given what; nor does a crash of a member finish anything.

A delivery whose member has noted it late, because it stood still, may come after that. But whoever
finishes a record has noted his own before, and it has a greater count than all that were acquired
earlier: a count greater than those noted until then is one that was acquired later. Unless the
broker was killed meanwhile; and the last one that the limit allows needs nobody to finish it.

Deliveries that no member has noted - it was killed, the answer was lost - count for the broker:
near the limit a record may have been given up with them.

Source: KIP-932.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.anomalies.versions import Versions
from tests.checker.history import Op

UNNOTED_MAX: Final = 2
"""So many deliveries of one record may go unnoted."""

_FINAL: Final = frozenset({"ACCEPT", "REJECT"})

Record = tuple[str, str, int]
"""Group, key, offset."""


class _Delivery(NamedTuple):
    times: int
    since_ns: int
    until_ns: int
    op: Op


def _sharing(versions: Versions) -> dict[str, Op]:
    return {op.value["group"]: op for op in versions.ops if op.f == "sharing"}


def _delivered(versions: Versions) -> dict[Record, list[_Delivery]]:
    kills = sorted(op.invoked_ns for op in versions.ops if op.f == "kill" and op.value["clean"])
    found: dict[Record, list[_Delivery]] = {}
    for op in versions.ops:
        if op.f != "deliver":
            continue
        since = op.value["since"]
        # The poll before has returned what was under way when the broker was killed.
        place = bisect_right(kills, op.value["previous"])
        if place:
            since = max(since, kills[place - 1])
        for key, records in op.value["deliveries"].items():
            for offset, _value, count in records:
                one = _Delivery(count, since, op.invoked_ns, op)
                found.setdefault((op.value["group"], key, offset), []).append(one)
    return found


def _done(versions: Versions) -> dict[Record, int]:
    """When the broker first said that a record is done."""
    done: dict[Record, int] = {}
    for op in versions.ops:
        if op.f == "acknowledge" and op.outcome == "ok" and op.completed_ns is not None:
            for offset, kind in op.value["acks"]:
                if kind in _FINAL:
                    record = (op.value["group"], op.value["key"], offset)
                    done[record] = min(op.completed_ns, done.get(record, op.completed_ns))
    return done


def deliveries(versions: Versions) -> Iterator[Anomaly]:
    """Each delivery against what was said before, and those of one record against each other."""
    limits = {group: op.value["deliveries_max"] for group, op in _sharing(versions).items()}
    restarts = sorted(op.invoked_ns for op in versions.ops if op.f == "kill")
    done = _done(versions)
    for record, several in _delivered(versions).items():
        group, key, offset = record
        known: dict[int, _Delivery] = {}
        done_ns = done.get(record)
        highest = max((one.times for one in several if _is_before(one, done_ns)), default=0)
        for one in several:
            where = f"{one.op.name}: {group}, {key}@{offset}"
            if not 1 <= one.times <= limits[group]:
                yield Anomaly("share-delivery-count", f"{where} has the count {one.times}")
            is_restarted = _any_between(restarts, one.since_ns, one.until_ns)
            is_later = highest < one.times < limits[group] and not is_restarted
            if done_ns is not None and (
                one.since_ns > done_ns or (is_later and one.until_ns > done_ns)
            ):
                yield Anomaly("share-redelivered", f"{where} was done before, count {one.times}")
            before = known.get(one.times)
            if before is not None and not _any_between(
                restarts, min(before.since_ns, one.since_ns), one.until_ns
            ):
                yield Anomaly(
                    "share-count-repeated",
                    f"{where} has the count {one.times}, as had {before.op.name}",
                )
            known[one.times] = one


def _is_before(one: _Delivery, time_ns: int | None) -> bool:
    return time_ns is not None and one.until_ns <= time_ns


def _any_between(times: list[int], begin: int, end: int) -> bool:
    place = bisect_left(times, begin)
    return place < len(times) and times[place] <= end


def ends(versions: Versions) -> Iterator[Anomaly]:
    """What became of each record that is there; judged by final reads, after all was drained."""
    delivered = _delivered(versions)
    finished: set[Record] = set()
    for op in versions.ops:
        if op.f == "acknowledge" and op.outcome != "fail":
            finished.update(
                (op.value["group"], op.value["key"], offset)
                for offset, kind in op.value["acks"]
                if kind in _FINAL
            )
    for group, sharing in _sharing(versions).items():
        given_up = sharing.value["deliveries_max"] - UNNOTED_MAX
        for key in sharing.value["keys"]:
            final = versions.final.get(key, set())
            for value, offset in versions.read.get(key, {}).items():
                record = (group, key, offset)
                if value not in final or record in finished:
                    continue
                several = delivered.get(record, [])
                if not several:
                    yield Anomaly("share-lost", f"{group}: {key}@{offset} {value}")
                elif max(one.times for one in several) < given_up:
                    last = several[-1]
                    yield Anomaly(
                        "share-unfinished",
                        f"{group}: {key}@{offset} {value}, last delivered to {last.op.name} "
                        f"with the count {last.times}",
                    )
