"""Evidence of a death: an end and two refusals, 50 ms apart; nothing less, nothing else."""

import pytest

from broker.membership.evidence import APART_MS, Evidence
from tests.fakes.clock import ManualClock

LOST = ConnectionResetError()


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.dead: list[tuple[int, int]] = []
        self.alive: list[tuple[int, int]] = []
        self.evidence = Evidence(
            self.clock,
            on_dead=lambda *life: self.dead.append(life),
            on_alive=lambda *life: self.alive.append(life),
        )

    def refused(self, after_ms: float = 0.0, epoch: int = 5) -> None:
        self.clock.advance(after_ms)
        self.evidence.on_peer_refused(2, epoch)

    def killed(self) -> None:
        self.evidence.on_peer_ended(2, 5, LOST)
        self.refused()
        self.refused(APART_MS)


@pytest.mark.parametrize("error", [None, LOST])
def test_an_end_and_two_refusals_are_evidence_once(error: OSError | None) -> None:
    world = World()
    world.evidence.on_peer_ended(2, 5, error)
    world.refused(20)
    world.refused(40)
    assert world.dead == []
    world.refused(10)
    assert world.dead == [(2, 5)]
    world.refused(500)
    world.evidence.on_peer_ended(2, 5, error)
    assert world.dead == [(2, 5)]


def test_refusals_alone_are_none() -> None:
    """This broker never had a connection: it may have started with a broken network."""
    world = World()
    world.refused()
    world.refused(1_000)
    assert world.dead == []


def test_a_connect_that_succeeds_begins_from_nothing() -> None:
    """Once it may succeed after a kill; a process that serves refutes all."""
    world = World()
    world.evidence.on_peer_ended(2, 5, LOST)
    world.refused()
    world.evidence.on_peer_connected(2, 5)
    world.refused(100)
    world.refused(100)
    assert world.dead == []


def test_a_time_out_between_the_refusals_begins_again() -> None:
    world = World()
    world.evidence.on_peer_ended(2, 5, LOST)
    world.refused()
    world.evidence.on_peer_unreachable(2, 5, TimeoutError())
    world.refused(100)
    assert world.dead == []
    world.refused(100)
    assert world.dead == [(2, 5)]


def test_time_outs_are_no_evidence() -> None:
    world = World()
    world.evidence.on_peer_ended(2, 5, TimeoutError())
    for _ in range(10):
        world.clock.advance(1_500)
        world.evidence.on_peer_unreachable(2, 5, TimeoutError())
    assert world.dead == []


def test_another_life_has_evidence_of_its_own() -> None:
    world = World()
    world.evidence.on_peer_ended(2, 5, LOST)
    world.refused()
    world.refused(100, epoch=6)
    assert world.dead == []
    world.refused(100)
    assert world.dead == [(2, 5)]
    world.evidence.on_peer_ended(2, 6, LOST)
    assert world.alive == [(2, 5)]


def test_what_is_reached_again_is_alive() -> None:
    world = World()
    world.killed()
    world.evidence.on_peer_connected(2, 5)
    assert (world.dead, world.alive) == ([(2, 5)], [(2, 5)])
    world.evidence.on_peer_connected(2, 5)
    world.evidence.on_peer_connected(3, 7)
    assert world.alive == [(2, 5)]
