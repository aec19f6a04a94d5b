"""Histories of a correct broker are clean; each way to damage them is noticed."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checker.anomalies.analysis import analyse
from tests.checker.anomalies.histories import SHARE_DELIVERIES_MAX, Model
from tests.checker.history import Op
from tests.effort import examples


@examples(150)
@given(st.integers(0, 1 << 32), st.integers(1, 4), st.integers(10, 150))
def test_correct_histories_are_clean(seed: int, keys: int, steps: int) -> None:
    ops = Model(seed, keys=keys + 1, steps=steps).run()
    report = analyse(ops)
    assert report.forbidden == {}, report.text()


def _committed(ops: list[Op], *, sends: int = 1) -> list[Op]:
    return [op for op in ops if op.outcome == "ok" and len(op.sends) >= sends]


def _forget(ops: list[Op], key: str, value: str) -> None:
    """Nobody ever reads the value."""
    for op in ops:
        for read in op.polls.values():
            read[:] = [(o, v) for o, v in read if v != value or key not in op.polls]


def lose(ops: list[Op], draw: random.Random) -> set[str]:
    """An acknowledged write is gone."""
    key, value, _ = draw.choice(draw.choice(_committed(ops)).sends)
    _forget(ops, key, value)
    return {"lost-write", "unseen"}


def tear(ops: list[Op], draw: random.Random) -> set[str]:
    """One of a transaction's writes is gone."""
    txns = [op for op in _committed(ops, sends=2) if op.f == "txn"]
    if not txns:
        return set()
    key, value, _ = draw.choice(draw.choice(txns).sends)
    _forget(ops, key, value)
    return {"torn"}


def show_aborted(ops: list[Op], draw: random.Random) -> set[str]:
    """A reader sees an aborted write."""
    aborted = [op for op in ops if op.f == "txn" and op.outcome == "fail" and op.sends]
    reads = [op for op in ops if op.f == "poll" and op.polls]
    if not aborted or not reads:
        return set()
    key, value, offset = draw.choice(draw.choice(aborted).sends)
    reads[-1].polls.setdefault(key, []).append((1000 if offset is None else offset, value))
    return {"G1a"}


def double(ops: list[Op], draw: random.Random) -> set[str]:
    """A value stands a second time, at the end of the log."""
    key, value, offset = draw.choice(draw.choice(_committed(ops)).sends)
    if offset is None:
        return set()
    final = next(op for op in ops if op.value.get("final") and key in op.polls)
    final.polls[key].append((10_000, value))
    return {"duplicate"}


def reuse(ops: list[Op], draw: random.Random) -> set[str]:
    """Another value is read at an acknowledged offset."""
    key, _, offset = draw.choice(draw.choice(_committed(ops)).sends)
    if offset is None:
        return set()
    final = next(op for op in ops if op.value.get("final") and key in op.polls)
    final.polls[key] = [(o, "other" if o == offset else v) for o, v in final.polls[key]]
    return {"inconsistent-offsets", "phantom"}


def swap(ops: list[Op], draw: random.Random) -> set[str]:
    """A reader gets two values in the wrong order."""
    reads = [op for op in ops if op.f == "poll" and any(len(r) > 1 for r in op.polls.values())]
    if not reads:
        return set()
    read = max(draw.choice(reads).polls.values(), key=len)
    place = draw.randrange(len(read) - 1)
    read[place], read[place + 1] = read[place + 1], read[place]
    return {"int-nonmonotonic-poll"}


def rewind(ops: list[Op], draw: random.Random) -> set[str]:
    """A reader gets a poll a second time."""
    reads = [n for n, op in enumerate(ops) if op.f == "poll" and any(op.polls.values())]
    if not reads:
        return set()
    place = draw.choice(reads)
    again = Op(ops[place].proc, 10_000, "poll", "ok", ops[place].invoked_ns + 1)
    again.polls = {key: list(read) for key, read in ops[place].polls.items()}
    ops.insert(place + 1, again)
    return {"nonmonotonic-poll"}


def hide_from_one(ops: list[Op], draw: random.Random) -> set[str]:
    """A reader misses a value between two others."""
    polls = [op for op in ops if op.f == "poll" and not op.value.get("final")]
    reads = [op for op in polls if any(len(read) > 2 for read in op.polls.values())]
    if not reads:
        return set()
    read = max(draw.choice(reads).polls.values(), key=len)
    del read[draw.randrange(1, len(read) - 1)]
    return {"int-poll-skip"}


def repeat_output(ops: list[Op], draw: random.Random) -> set[str]:
    """The job does an input twice."""
    txns = [op for op in ops if op.proc == "job" and op.f == "txn" and op.outcome == "ok"]
    if not txns:
        return set()
    key, value, _ = draw.choice(draw.choice(txns).sends)
    name = f"again|{value.partition('|')[2]}"
    twice = Op("job", 20_000, "txn", "ok", 0, 1)
    twice.sends = [(key, name, None)]
    ops.append(twice)
    next(op for op in ops if op.value.get("final") and key in op.polls).polls[key].append(
        (10_000, name)
    )
    return {"output-duplicate"}


def drop_output(ops: list[Op], draw: random.Random) -> set[str]:
    """The job's offsets are committed, its output is not there."""
    txns = [op for op in ops if op.proc == "job" and op.f == "txn" and op.outcome == "ok"]
    if not txns:
        return set()
    key, value, _ = draw.choice(draw.choice(txns).sends)
    _forget(ops, key, value)
    return {"output-missing"}


def forget_offset(ops: list[Op], draw: random.Random) -> set[str]:
    """The group's offset goes back."""
    asks = [op for op in ops if op.f == "committed" and max(op.value["offsets"].values()) >= 0]
    if not asks:
        return set()
    ask = asks[-1]
    ask.value["offsets"] = dict.fromkeys(ask.value["offsets"], -1)
    return {"group-offset-lost"}


def hang(ops: list[Op], draw: random.Random) -> set[str]:
    """A transaction never ends."""
    ends = next(op for op in ops if op.f == "ends")
    ends.value["keys"][draw.choice(sorted(ends.value["keys"]))][1] += 1
    return {"hanging-transaction"}


def see_each_other(ops: list[Op], draw: random.Random) -> set[str]:
    """Two transactions have read of each other."""
    txns = [op for op in _committed(ops) if op.f == "txn"]
    if len(txns) < 2:
        return set()
    pair = draw.sample(txns, 2)
    for one, other in (pair, pair[::-1]):
        key, value, offset = draw.choice(other.sends)
        one.polls.setdefault(key, []).append((1000 if offset is None else offset, value))
    return {"G1c"}


def foresee(ops: list[Op], draw: random.Random) -> set[str]:
    """Somebody reads what is sent later."""
    key, value, offset = draw.choice(draw.choice(_committed(ops)).sends)
    early = Op("early", 0, "poll", "ok", -20, -10)
    early.polls = {key: [(1000 if offset is None else offset, value)]}
    ops.insert(0, early)
    return {"G1c-realtime"}


def answer_late_sends_first(ops: list[Op], draw: random.Random) -> set[str]:
    """Of two sends the one that stands first in the log was begun after the other's answer."""
    sends: dict[str, list[Op]] = {}
    for op in ops:
        if op.f == "send" and op.outcome == "ok":
            sends.setdefault(op.sends[0][0], []).append(op)
    several = [found for found in sends.values() if len(found) > 1]
    if not several:
        return set()
    one, *_, other = draw.choice(several)
    one.invoked_ns, other.invoked_ns = other.invoked_ns, one.invoked_ns
    one.completed_ns, other.completed_ns = other.completed_ns, one.completed_ns
    return {"realtime-send"}


def _accepted(ops: list[Op]) -> list[tuple[Op, str, int]]:
    found = [op for op in ops if op.f == "acknowledge" and op.outcome == "ok"]
    return [
        (op, op.value["key"], offset)
        for op in found
        for offset, kind in op.value["acks"]
        if kind != "RELEASE"
    ]


def redeliver(ops: list[Op], draw: random.Random) -> set[str]:
    """A record is given out again that was accepted."""
    accepted = _accepted(ops)
    if not accepted:
        return set()
    _, key, offset = draw.choice(accepted)
    value = next(v for op in ops for o, v in op.polls.get(key, ()) if o == offset)
    late = max(op.invoked_ns for op in ops) + 10
    again = Op("m9", 0, "deliver", "ok", late, late)
    again.value = {"group": "s", "since": late, "previous": late}
    again.value["deliveries"] = {key: [(offset, value, 1)]}
    ops.append(again)
    return {"share-redelivered"}


def _take_away(ops: list[Op], offset: int, *, deliveries: bool) -> None:
    for op in ops:
        if "acks" in op.value:
            op.value["acks"] = [one for one in op.value["acks"] if one[0] != offset]
        for key, found in op.value.get("deliveries", {}).items():
            if deliveries:
                op.value["deliveries"][key] = [one for one in found if one[0] != offset]


def keep_from_all(ops: list[Op], draw: random.Random) -> set[str]:
    """A share group never gets a record."""
    accepted = _accepted(ops)
    if not accepted:
        return set()
    _take_away(ops, draw.choice(accepted)[2], deliveries=True)
    return {"share-lost"}


def forget_in_work(ops: list[Op], draw: random.Random) -> set[str]:
    """A record is delivered, nobody says anything of it, and that is all."""
    counts: dict[int, int] = {}
    for op in ops:
        for found in op.value.get("deliveries", {}).values():
            counts.update({offset: count for offset, _, count in found})
    once = [offset for _, _, offset in _accepted(ops) if counts[offset] == 1]
    if not once:
        return set()
    _take_away(ops, draw.choice(once), deliveries=False)
    return {"share-unfinished"}


def count_too_far(ops: list[Op], draw: random.Random) -> set[str]:
    """A record is delivered more often than it may."""
    delivered = [op for op in ops if op.f == "deliver"]
    if not delivered:
        return set()
    found = next(iter(draw.choice(delivered).value["deliveries"].values()))
    found[0] = (found[0][0], found[0][1], SHARE_DELIVERIES_MAX + 1)
    return {"share-delivery-count"}


def count_again(ops: list[Op], draw: random.Random) -> set[str]:
    """Two members have a record for the first time."""
    delivered = [op for op in ops if op.f == "deliver"]
    if not delivered:
        return set()
    place = ops.index(draw.choice(delivered))
    one = ops[place]
    twice = Op("m9", 0, "deliver", "ok", one.invoked_ns + 1, one.invoked_ns + 1)
    twice.value = dict(one.value)
    ops.insert(place + 1, twice)
    return {"share-count-repeated"}


Mutation = Callable[[list[Op], random.Random], set[str]]
MUTATIONS: list[Mutation] = [
    lose,
    tear,
    show_aborted,
    double,
    reuse,
    swap,
    rewind,
    hide_from_one,
    repeat_output,
    drop_output,
    forget_offset,
    hang,
    see_each_other,
    foresee,
    answer_late_sends_first,
    redeliver,
    keep_from_all,
    forget_in_work,
    count_too_far,
    count_again,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m.__name__ for m in MUTATIONS])
def test_damaged_histories_are_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(30):
        ops = Model(seed, steps=120).run()
        expected = mutation(ops, random.Random(seed))
        if expected:
            tried += 1
            report = analyse(ops)
            assert expected & report.forbidden.keys(), f"seed {seed}: {report.text()}"
    assert tried >= 20
