"""T: transactions that are left open, and what a rule about them finds."""

from typing import Any

import pytest

from tests.simulation.clients.leavers import LOOK_MS, LeavingProducer
from tests.simulation.clients.transactions import Outcome, TransactionalProducer
from tests.simulation.faults.nemesis import Fault
from tests.simulation.run import run
from tests.simulation.shape import Shape
from tests.simulation.stage import Stage
from tests.simulation.world import KNOWN_S, Violation

LOOK = "transaction_abort_timed_out_transaction_cleanup_interval_ms"
ONE = Shape(partitions=1, transactional=0, members=0, settings={LOOK: LOOK_MS})


def producer_of(stage: Stage, session: str, **named: Any) -> TransactionalProducer:
    return TransactionalProducer(
        stage.run.session(session),
        stage.run.load.transactions,
        [stage.place],
        pause_s=0.0,
        **named,
    )


def test_producers_that_leave_are_followed_by_others_through_faults() -> None:
    shape = Shape(partitions=2, pause_s=0.3, members=0, leavers=2, settings={LOOK: LOOK_MS})
    plan = [Fault(6.0, "kill", 1, 2, 2.0, 0), Fault(12.0, "two changes", 1, 2, 1.0, 4)]
    outcome = run(2, 22.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert outcome.left > 3
    assert outcome.timed_out > 0


def test_a_transaction_that_is_aborted_before_its_time_is_found() -> None:
    with Stage(shape=ONE) as stage:
        first = producer_of(stage, "one", transactional_id="t")
        stage.until(lambda: stage.do(first.begin()), "it begins")
        # Of what a coordinator says that has just been elected nothing is held against it.
        stage.run_for(KNOWN_S + 1)
        assert stage.do(first.open())
        second = producer_of(stage, "two", transactional_id="t")
        stage.until(lambda: stage.do(second.begin()), "another begins")
        # Nobody has told the rule of the other one.
        with pytest.raises(Violation, match=r"T t .* after .* of 20"):
            stage.do(first.write(stage.place, [b"one-9"]))


def test_a_transaction_that_stays_open_is_found() -> None:
    with Stage(shape=ONE) as stage:
        left = producer_of(stage, "one", transactional_id="t", timeout_ms=60_000)
        stage.until(lambda: stage.do(left.begin()), "it begins")
        assert stage.do(left.open())
        # The rule goes by a time-out that the coordinator has not heard of.
        left.timeout_ms = 1_000
        load = stage.run.load
        leaver = LeavingProducer(
            "t", stage.run.session, load.transactions, load.places, pause_s=0.0
        )
        with pytest.raises(Violation, match=r"T t left .* open"):
            stage.do(leaver._until_over(left, stage.run.session("watch")), limit_s=40)
        stage.gives_up()


def test_who_was_replaced_ends_nothing() -> None:
    with Stage(shape=ONE) as stage:
        load = stage.run.load
        first = producer_of(stage, "one", transactional_id="t")
        stage.until(lambda: stage.do(first.begin()), "it begins")
        assert stage.do(first.open())
        second = producer_of(stage, "two", transactional_id="t")
        stage.until(lambda: stage.do(second.begin()), "another begins")
        leaver = LeavingProducer(
            "t", stage.run.session, load.transactions, load.places, pause_s=0.0
        )
        stage.do(leaver._wake(first))
        written = stage.do(second.open())
        assert written
        load.transactions.add(stage.do(second.end(True)), written)
        assert load.transactions.count(Outcome.COMMITTED) == 1
