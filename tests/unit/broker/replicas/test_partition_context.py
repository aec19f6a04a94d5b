"""What partitions share is one object, so that a changed limit holds for all of them."""

from tests.unit.broker.world import World


async def test_partitions_share_the_terms_of_their_broker(world: World) -> None:
    first, second = world.add("t", 0), world.add("t", 1)
    assert first._context is second._context
    world.replicas.terms.lag_time_max_ms = 7.0
    assert second._context.terms.lag_time_max_ms == 7.0
