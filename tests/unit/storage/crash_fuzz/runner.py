"""Runs of steps: drawn by a seed, or given; and what a run that fails is made small to."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final, NamedTuple

from storage.errors import DiskError, StorageError
from tests.fakes.filesystem import KEEP_ALL, PowerCut
from tests.unit.storage.crash_fuzz.appends import append
from tests.unit.storage.crash_fuzz.machine import Machine
from tests.unit.storage.crash_fuzz.rules import RuleBroken
from tests.unit.storage.crash_fuzz.steps import STEPS, WEIGHTS

LENGTH: Final = 120


class Drawn(NamedTuple):
    """A step by its name, and the number that all else of it is drawn by."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}:{self.number}"


def draw_steps(seed: int, length: int = LENGTH) -> list[Drawn]:
    """The steps of a seed: topics are created, then anything, each seed's favourites most of all.

    What takes two rare steps in a row is met where both are favoured, and others are left out.
    """
    random = Random(seed)
    names = [step.__name__ for step in WEIGHTS]
    weights = [weight * random.choice((0.0, 1.0, 1.0, 4.0)) for weight in WEIGHTS.values()]
    weights[names.index("append")] = WEIGHTS[append]
    kinds = ["create"] * 3 + random.choices(names, weights, k=length)
    return [Drawn(kind, random.randrange(1_000_000)) for kind in kinds]


def parse_steps(text: str) -> list[Drawn]:
    """The steps that a failure has printed."""
    pairs = [word.partition(":") for word in text.split()]
    return [Drawn(name, int(number)) for name, _, number in pairs]


def run(seed: int, steps: Sequence[Drawn]) -> None:
    """Do the steps, and lose power and look a last time.

    Raises:
        RuleBroken: A rule does not hold.
        Exception: Whatever should not have been raised.
    """
    machine = Machine(seed)
    for name, number in [*steps, Drawn("cut", seed)]:
        do(machine, name, Random(f"{number}"))


def do(machine: Machine, name: str, random: Random) -> None:
    """One step, and what follows on it: errors are handled as by a broker, and all is judged.

    Raises:
        RuleBroken: A rule does not hold.
    """
    manager = machine.manager
    try:
        try:
            STEPS[name](machine, random)
        finally:
            if machine.manager is manager and not machine.has_lost_power:
                machine.write_queued()
        if machine.manager is manager and not machine.has_lost_power:
            machine.upkeep()
    except PowerCut:
        pass
    except DiskError as error:
        for log in manager.logs():
            if error.path.startswith(log.directory + "/"):
                manager.fail_log(log, error)
    except StorageError:
        pass
    if machine.has_lost_power:
        machine.crash(random, random.choice([None, KEEP_ALL, random]))
    elif machine.manager is manager:
        machine.judge_all()
    machine.note_durable()


def failure_of(seed: int, steps: Sequence[Drawn]) -> str | None:
    """What is wrong, by its rule first; None: nothing is."""
    try:
        with _quiet():
            run(seed, steps)
    except RuleBroken as broken:
        return str(broken)
    except Exception as error:  # noqa: BLE001  any other is a finding, too
        return f"raised {type(error).__name__}: {error}"
    return None


def shrink(seed: int, steps: Sequence[Drawn]) -> list[Drawn]:
    """Fewer steps that break the same rule: halves are left out, then ever smaller parts."""
    wanted = _rule_of(failure_of(seed, steps))
    left, size = list(steps), max(len(steps) // 2, 1)
    while True:
        at, before = 0, len(left)
        while at < len(left):
            tried = left[:at] + left[at + size :]
            if _rule_of(failure_of(seed, tried)) == wanted:
                left = tried
            else:
                at += size
        if size == 1 and len(left) == before:
            return left
        size = max(size // 2, 1)


def describe(seed: int, steps: Sequence[Drawn], failure: str) -> str:
    """The failure, and the command that repeats it."""
    words = " ".join(map(str, steps))
    return (
        f"seed {seed}, {len(steps)} steps: {failure}\n"
        f'  python -m tests.unit.storage.crash_fuzz --seed {seed} --steps "{words}"'
    )


def _rule_of(failure: str | None) -> str | None:
    return None if failure is None else failure.partition(":")[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Cutting logs is what this is about."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
