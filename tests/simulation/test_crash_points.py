"""A broker that dies at any change of its disk, or behind any commit, loses nothing."""

import os
from random import Random

import pytest

from tests.simulation.faults.crash_points import DISK, STORE, CrashPoint
from tests.simulation.faults.nemesis import Fault
from tests.simulation.run import Outcome, Shape, run

SHAPE = Shape(partitions=1, transactional=1, members=1, pause_s=1.0)
LENGTH_S = 14.0
PLANS = {
    "a leader is killed": [Fault(2.0, "kill", 1, 2, 3.0, 0), Fault(8.0, "kill", 2, 3, 2.0, 0)],
    "a leader stops": [Fault(2.0, "stop", 1, 2, 3.0, 0), Fault(8.0, "stop", 2, 3, 2.0, 0)],
    "two leaders follow": [Fault(2.0, "two changes", 1, 2, 1.0, 5)],
    "a leader is cut off": [Fault(2.0, "isolate", 1, 2, 5.0, 0)],
}
SOME = int(os.environ.get("VARVE_TEST_CRASH_POINTS", "12"))
"""Points tried of each plan; `all` of them are some hundreds."""


def play(plan: str, point: CrashPoint | None) -> Outcome:
    return run(11, LENGTH_S, shape=SHAPE, plan=PLANS[plan], crash=point)


def points_of(plan: str) -> list[CrashPoint]:
    """All of a plan, each as a kill and as a crash of the machine."""
    counted = play(plan, None)
    assert counted.violation is None
    points = [
        CrashPoint(node_id, kind, number, forgets)
        for (node_id, kind), count in sorted(counted.points.items())
        for number in range(1, count + 1)
        for forgets in (False, True)
    ]
    assert {point.kind for point in points} == {DISK, STORE}
    assert {point.node_id for point in points} == {1, 2, 3}
    return points


@pytest.mark.system
@pytest.mark.parametrize("plan", PLANS)
def test_a_broker_may_die_at_any_of_some_points(plan: str) -> None:
    points = points_of(plan)
    for point in Random(plan).sample(points, min(SOME, len(points))):
        outcome = play(plan, point)
        assert outcome.violation is None, (point, outcome.violation)
        assert outcome.has_crashed, point


def test_a_run_is_the_same_up_to_its_crash_point() -> None:
    plan = "a leader is killed"
    lines: list[list[str]] = []
    for point in (None, CrashPoint(3, DISK, 20)):
        trace: list[str] = []
        run(11, LENGTH_S, shape=SHAPE, plan=PLANS[plan], crash=point, log=trace.append)
        lines.append(trace)
    whole, crashed = lines
    same = next(at for at, (one, two) in enumerate(zip(*lines, strict=False)) if one != two)
    assert same > 1000
    assert whole[:same] == crashed[:same]
