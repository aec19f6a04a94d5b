"""Whole brokers on a seeded loop: they boot, are one cluster, and a seed repeats its run."""

from random import Random

import pytest

from tests.simulation.faults.nemesis import Fault
from tests.simulation.repeats import compare
from tests.simulation.run import run
from tests.simulation.shape import Shape, draw_tier
from tests.simulation.stage import Stage
from tests.simulation.world import World


def boot(seed: int, brokers: int) -> World:
    world = World(seed, brokers=brokers)
    try:
        for place in world.brokers.values():
            place.start()
        world.until(
            lambda: all(place.is_ready for place in world.brokers.values()),
            limit_s=20,
            what="all brokers have opened their logs",
        )
        world.run_for(5)
    finally:
        world.close()
    return world


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_seed_repeats_its_run(brokers: int) -> None:
    first, second = boot(7, brokers), boot(7, brokers)
    assert first.loop.trace == second.loop.trace
    assert first.loop.handles == second.loop.handles > 200


def test_another_seed_is_another_run() -> None:
    assert boot(7, 1).loop.trace != boot(8, 1).loop.trace


@pytest.mark.system
def test_a_run_does_not_depend_on_how_an_interpreter_hashes_strings() -> None:
    assert compare(["--dense", "--seed", "5", "--runs", "2", "--length", "10"]) == 0


@pytest.mark.system
def test_a_run_with_a_bucket_repeats_as_well() -> None:
    assert compare(["--dense", "--tiered", "--seed", "2", "--runs", "2", "--length", "10"]) == 0


def test_what_leaves_the_disks_of_a_cluster_is_in_its_bucket() -> None:
    shape = Shape(
        partitions=1,
        pause_s=0.3,
        transactional=0,
        members=0,
        is_tiered=True,
        retention_ms=8_000,
        settings=draw_tier(Random(3)),
    )
    plan = [
        Fault(3.0, "tier dies", 1, 2, 1.0, 1),
        Fault(5.0, "kill", 2, 1, 1.0, 2),
        Fault(7.0, "bucket loses answers", 1, 2, 2.0, 3),
    ]
    outcome = run(1, 15.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert outcome.copied > 10
    assert outcome.remote_removed > 3


@pytest.mark.parametrize("is_tiered", [False, True])
def test_a_topic_that_is_made_anew_has_nothing_of_the_one_before(is_tiered: bool) -> None:
    """Also while brokers die: the old one's records, folders and objects go, the new one's stay."""
    shape = Shape(
        partitions=1,
        pause_s=0.3,
        transactional=0,
        members=0,
        is_tiered=is_tiered,
        has_lives=True,
        settings=draw_tier(Random(3)) if is_tiered else {},
    )
    plan = [Fault(3.0, "kill", 2, 1, 1.0, 1), Fault(7.0, "crash", 1, 2, 2.0, 3)]
    outcome = run(1, 15.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert outcome.deleted > 1


@pytest.mark.parametrize(
    "kind", [pytest.param("deaf heir", marks=pytest.mark.system), "leader in doubt"]
)
def test_a_leader_that_knows_too_little_harms_nothing_in_the_bucket(kind: str) -> None:
    """One hears late what others write, one what others decide: both have copies under way."""
    shape = Shape(
        partitions=1,
        pause_s=0.3,
        transactional=0,
        members=0,
        is_tiered=True,
        retention_ms=15_000,
        bucket_s=0.3,
        settings={**draw_tier(Random(3)), "replica_lag_time_max_ms": 1_000},
    )
    outcome = run(6, 40.0, shape=shape, plan=[Fault(8.0, kind, 1, 2, 1.0, 5)])
    assert outcome.violation is None
    assert any(f"end of {kind}" in line for line in outcome.done)
    assert outcome.copied > 5


def test_a_broker_that_is_to_start_while_it_stops_starts_when_it_has_stopped() -> None:
    with Stage() as stage:
        place = stage.world.brokers[stage.followers[0]]
        stage.world.loop.spawn(place.process, place.stop())
        stage.until(lambda: place.is_stopping, "it stops")
        stage.start(place.node_id)
        assert place.lives == 1
        stage.until(lambda: place.lives == 2 and place.is_ready, "it runs again", limit_s=40)
