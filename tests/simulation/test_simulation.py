"""Whole brokers on a seeded loop: they boot, are one cluster, and a seed repeats its run."""

import pytest

from tests.simulation.repeats import compare
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
