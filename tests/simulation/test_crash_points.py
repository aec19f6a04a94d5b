"""A broker that dies at any change of its disk, or behind any commit, loses nothing."""

import os

import pytest

from tests.simulation.faults.crash_points import DISK, STORE, CrashPoint
from tests.simulation.run import run
from tests.simulation.walks import LENGTH_S, PLANS, SHAPE, Walk, play

EVERY = int(os.environ.get("VARVE_TEST_CRASH_POINTS_EVERY", "200"))
"""Each so many-eth point of each plan is tried; 1: all of them, some 1,500 of a plan."""


@pytest.mark.system
@pytest.mark.parametrize("plan", PLANS)
def test_a_broker_may_die_at_any_of_some_points(plan: str) -> None:
    walk = Walk(11, plan, every=EVERY)
    outcome = walk.play()
    assert outcome.violation is None
    assert {kind for _, kind in outcome.points} == {DISK, STORE}
    assert {node_id for node_id, _ in outcome.points} == {1, 2, 3}
    assert len(walk.ended) >= 2 * sum(outcome.points.values()) // EVERY > 0
    for one in walk.ended:
        assert one.violation is None, (one.point, one.violation)
        assert one.has_crashed, one.point


@pytest.mark.system
def test_a_run_that_forked_at_a_point_is_the_run_with_a_crash_at_it() -> None:
    plan = "a leader is killed"
    walk = Walk(11, plan, every=700)
    assert walk.play().trace == play(plan, None, seed=11).trace
    one, *_ = walk.ended
    alone = play(plan, one.point, seed=11)
    assert (alone.trace, alone.has_crashed) == (one.trace, True)


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
