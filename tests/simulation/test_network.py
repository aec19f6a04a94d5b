"""A link brings what was sent over it in order, whatever was done to it meanwhile."""

from tests.simulation.loop import SimLoop
from tests.simulation.network import SimNetwork


def test_what_was_held_back_is_not_overtaken_when_a_link_is_healed() -> None:
    loop = SimLoop(1)  # type: ignore[abstract]  # what a broker needs of a loop
    network = SimNetwork(loop)
    arrived: list[int] = []
    network.cut.add(("a", "b"))
    for number in range(20):
        network.carry("a", "b", 0.001 * (number + 1), lambda number=number: arrived.append(number))  # type: ignore[misc]  # a lambda's default
    loop.happen_in(0.0105, network.heal)
    # So busy that what waits for a turn then would come last.
    for _ in range(50_000):
        loop.call_in(loop.outside, int)
    loop.run_for(0.1)
    assert arrived == list(range(20))
