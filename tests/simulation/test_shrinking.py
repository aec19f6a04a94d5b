"""A failing run is made small, and printed as a script that fails in the same way."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.faults.nemesis import Fault
from tests.simulation.faults.shrinking import Case, rule_of, shrink
from tests.simulation.outcome import Outcome
from tests.simulation.shape import Shape

ROOT = Path(__file__).parents[2]


def fault(at_s: float, kind: str = "kill") -> Fault:
    return Fault(at_s, kind, 1, 2, 1.0, 0)


class Scripted(Case):
    """A case that fails if, and only if, it has the faults at 3 and 7 seconds."""

    def play(self) -> Outcome:
        times = {one.at_s for one in self.plan}
        fails = {3.0, 7.0} <= times
        other = "1.0 I2 another rule" if times == {1.0} else None
        outcome = Outcome(self.seed, self.plan, violation="9.0 I4 counts" if fails else other)
        outcome.violated_s = 9.0
        return outcome


def test_what_does_not_matter_is_left_out() -> None:
    case = Scripted(1, 60.0, Shape(partitions=3), [fault(float(at)) for at in range(10)])
    smallest, outcome = shrink(case, case.play())
    assert [one.at_s for one in smallest.plan] == [3.0, 7.0]
    assert smallest.shape.partitions == 1
    assert smallest.shape.transactional == smallest.shape.members == 0
    assert smallest.length_s == 14
    assert rule_of(outcome.violation) == "I4"


@pytest.mark.parametrize(
    ("violation", "rule"),
    [
        (None, ""),
        ("1003.2 I12 Place(topic='t', partition=0) on 2 ends at 6", "I12"),
        ("1003.2 seed 3: I9 ['fences/1']", "I9"),
        ("12.0 E Place(topic='t', partition=0): 2 proposes 3", "E"),
        ("12.0 Place(topic='t', partition=0) offset 17: read as b'x', is None", "offset"),
    ],
)
def test_the_rule_is_read_from_a_violation(violation: str | None, rule: str) -> None:
    assert rule_of(violation) == rule


@pytest.mark.system
def test_a_seeded_bug_becomes_a_short_script_that_finds_it_again(tmp_path: Path) -> None:
    """In processes of their own: pieces of the broker are replaced."""
    command = [sys.executable, "-m", "tests.simulation", "--dense", "--seed", "2", "--runs", "8"]
    replay = tmp_path / "replay.py"
    ended = subprocess.run(
        [*command, "--mutant", "min_isr_not_strict", "--shrink", "--script", str(replay)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    text = replay.read_text()
    assert 1 <= text.count("Fault(at_s") <= 4, text
    again = subprocess.run(
        [sys.executable, str(replay)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert " M Place(" in again.stdout.splitlines()[-1], again.stdout
