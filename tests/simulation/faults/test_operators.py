"""What operators do to a cluster in use: partitions added, replicas throttled, moves given up."""

import pytest

from tests.simulation.faults.nemesis import Fault
from tests.simulation.faults.throttles import lifting, throttling
from tests.simulation.run import run
from tests.simulation.shape import Shape
from tests.simulation.stage import Stage

SMALL = Shape(
    partitions=1,
    pause_s=0.3,
    transactional=0,
    members=1,
    settings={"replica_lag_time_max_ms": 1_000},
)


def test_a_partition_that_is_added_is_written_to_and_read_by_the_group() -> None:
    plan = [Fault(3.0, "add partitions", 1, 2, 1.0, 0), Fault(3.2, "kill", 1, 2, 2.0, 0)]
    outcome = run(1, 10.0, shape=SMALL, plan=plan)
    assert outcome.violation is None
    assert outcome.added == 1


@pytest.mark.parametrize("salt", [3, 4])
def test_a_move_that_is_replaced_or_taken_back_ends_where_it_is_to(salt: int) -> None:
    plan = [Fault(3.0, "move given up", 1, 2, 6.0, salt)]
    outcome = run(salt, 16.0, shape=SMALL, plan=plan)
    assert outcome.violation is None
    assert outcome.moves > 0
    assert outcome.replaced + outcome.given_up > 0


def test_a_replica_that_a_throttle_held_back_is_in_sync_once_it_is_lifted() -> None:
    outcome = run(4, 16.0, shape=SMALL, plan=[Fault(3.0, "throttle", 1, 2, 6.0, 1)])
    assert outcome.violation is None
    assert outcome.held_back > 10


def test_a_throttle_holds_back_who_is_out_of_sync_and_nobody_else() -> None:
    with Stage(shape=SMALL) as stage:
        stage.write(3)
        follower = stage.followers[0]
        operator = stage.run.session("operator")
        everywhere = throttling(1, stage.world.brokers, [stage.place.topic])
        stage.do(operator.call(stage.leader, everywhere))
        stage.run_for(1)
        for _ in range(8):
            stage.write(5)
            stage.run_for(0.5)
            assert sorted(stage.record.isr) == sorted(stage.record.replicas)
        stage.kill(follower)
        stage.until(lambda: follower not in stage.record.isr, "it has left the ISR")
        stage.write(5)
        stage.start(follower)
        stage.until(lambda: stage.world.brokers[follower].is_ready, "it is back")
        for _ in range(8):
            stage.write(5)
            stage.run_for(0.5)
            assert follower not in stage.record.isr
        request = lifting(stage.world.image)
        assert request is not None
        stage.do(operator.call(stage.leader, request))
        stage.until(lambda: follower in stage.record.isr, "it is in sync", limit_s=10)
        assert lifting(stage.world.image) is None
