"""Histories of a correct broker are clean; each way to damage them is noticed."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checker.analysis import analyse
from tests.checker.histories import Model
from tests.checker.history import Op


@settings(max_examples=150, deadline=None)
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
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m.__name__ for m in MUTATIONS])
def test_damaged_histories_are_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(60):
        ops = Model(seed, steps=120).run()
        expected = mutation(ops, random.Random(seed))
        if expected:
            tried += 1
            report = analyse(ops)
            assert expected & report.forbidden.keys(), f"seed {seed}: {report.text()}"
    assert tried >= 40
