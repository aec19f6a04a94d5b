"""A run holds what clients were told against the logs, and finds what a broker has lost."""

import pytest

from tests.simulation.history import History
from tests.simulation.nemesis import draw_plan
from tests.simulation.run import Shape, run
from tests.simulation.world import Place, Violation

ONE = Shape(brokers=1, replicas=1, min_in_sync=1)
PLACE = Place("t", 0)


def test_a_broker_serves_what_clients_write_and_a_seed_repeats_it() -> None:
    first, second = run(5, 10, shape=ONE, plan=[]), run(5, 10, shape=ONE, plan=[])
    assert first.violation is None
    assert first.acked > 100
    assert first.read > 100
    assert (first.trace, first.handles, first.acked) == (second.trace, second.handles, second.acked)


def test_a_plan_follows_from_its_seed() -> None:
    plan = draw_plan(1, 3, 600)
    assert plan == draw_plan(1, 3, 600)
    assert plan != draw_plan(2, 3, 600)
    assert len(plan) > 50
    assert len({fault.kind for fault in plan}) > 8
    assert all(fault.target != fault.other for fault in plan)


def test_a_lost_record_is_found() -> None:
    history = History()
    history.ack(PLACE, 0, [b"idempotent-0", b"idempotent-1"])
    history.judge(PLACE, {0: b"idempotent-0", 1: b"idempotent-1"})
    with pytest.raises(Violation, match="offset 1: acknowledged"):
        history.judge(PLACE, {0: b"idempotent-0"})


def test_a_record_acknowledged_as_a_repeated_one_is_looked_for() -> None:
    history = History()
    history.ack(PLACE, -1, [b"idempotent-0"])
    with pytest.raises(Violation, match="lost 1 acknowledged"):
        history.judge(PLACE, {0: b"idempotent-1"})


def test_doubled_records_and_a_wrong_order_are_found() -> None:
    history = History()
    with pytest.raises(Violation, match="doubled or out of order"):
        history.judge(PLACE, {0: b"idempotent-0", 1: b"idempotent-0"})
    with pytest.raises(Violation, match="doubled or out of order"):
        history.judge(PLACE, {0: b"idempotent-1", 1: b"idempotent-0"})


def test_a_record_that_changes_after_it_was_read_is_found() -> None:
    history = History()
    history.saw(PLACE, 3, b"idempotent-0")
    with pytest.raises(Violation, match="offset 3"):
        history.saw(PLACE, 3, b"idempotent-1")
    with pytest.raises(Violation, match="was read as"):
        history.ack(PLACE, 3, [b"idempotent-1"])
