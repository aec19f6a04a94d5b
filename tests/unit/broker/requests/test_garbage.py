"""What requests leave to the garbage collector that come thousands of times in a second: nothing.

Objects that know each other in a circle are freed by the collector alone. It holds the loop for a
millisecond or more at a time, and whoever sends meanwhile waits: of such moments the slowest
hundredth of answers is made.

Compiled, a function within another is such a circle as soon as both name the same function, be it
`len`. So this runs on both paths, and what it finds has to be written without.
"""

import gc
from collections import Counter
from collections.abc import Awaitable, Callable

from bench import wire
from bench.coordinator_costs import AT_ONCE, PRODUCERS, World
from bench.cost_meter import CostMeter
from bench.measured_broker import measured_broker, run_on_own_loop
from bench.transaction_wire import TV1, TV2, Versions

ROUNDS = 4

Work = Callable[[], Awaitable[object]]


async def left_behind(work: Work) -> Counter[str]:
    """Types of what only the collector frees after `ROUNDS` times `work`."""
    for _ in range(2):
        await work()
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            await work()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return Counter(type(one).__qualname__ for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def produce_and_fetch(world: World) -> Work:
    """Also a Fetch that waits, for records or for its time."""
    batch = wire.record_batch([b"x" * 100])
    offset = 0

    def fetch(max_wait_ms: int) -> bytes:
        return wire.fetch_frame("t", 9, offset, max_bytes=100, max_wait_ms=max_wait_ms)

    async def work() -> None:
        nonlocal offset
        await world.client.ask([wire.produce_frame("t", 9, batch)] * AT_ONCE)
        await world.client.ask([fetch(0)])
        offset += AT_ONCE
        await world.client.ask([fetch(60_000), wire.produce_frame("t", 9, batch)])
        offset += 1
        await world.client.ask([fetch(5)])

    return work


def commits_and_heartbeats(world: World, group: str) -> Work:
    commits = world.commits(9 if group == "c" else 8, 10, group)
    heartbeats = world.consumer_heartbeats if group == "c" else world.heartbeats

    async def work() -> None:
        await world.client.ask(commits())
        await world.client.ask(heartbeats())

    return work


def transactions(world: World, versions: Versions) -> Work:
    """With offsets in them, and markers in three partitions and in those of the offsets."""

    async def work() -> None:
        await world.transactions(CostMeter(counts=False), versions, {})

    return work


def test_nothing_is_left_to_the_garbage_collector() -> None:
    """Less than one object a request: the broker does other things, too."""
    left: dict[str, Counter[str]] = {}

    async def run() -> None:
        async with measured_broker("group.initial.rebalance.delay.ms=0") as broker:
            world = World(broker)
            await world.begin()
            for name, work, requests in (
                ("Produce, Fetch", produce_and_fetch(world), 1),
                ("of a classic group", commits_and_heartbeats(world, "g"), AT_ONCE),
                ("of a consumer group", commits_and_heartbeats(world, "c"), AT_ONCE),
                ("transactions, version 2", transactions(world, TV2), PRODUCERS),
                ("transactions, version 1", transactions(world, TV1), PRODUCERS),
            ):
                found = await left_behind(work)
                if found.total() >= ROUNDS * requests:
                    left[name] = found

    run_on_own_loop(run())
    assert left == {}
