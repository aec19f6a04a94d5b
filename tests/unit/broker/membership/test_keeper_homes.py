"""Where a lease is kept: in the store's thread if it has one, else in the data loop."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

from broker.membership.keeper_homes import LoopHome, ThreadHome, home_of
from broker.membership.lease_keeper import Beat, LeaseKeeper
from broker.membership.validity import Validity
from storage.environment.clock import SystemClock
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.environment import FakeEnvironment


class OtherThread:
    """A store with a loop in a thread of its own, as far as leases go."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.renewed_in: list[int] = []
        self.renewed = threading.Event()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def spawn(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def renew_here(self, lease: int) -> int:
        self.renewed_in.append(threading.get_ident())
        self.renewed.set()
        return 3_000

    async def ask_here(self) -> None:
        raise AssertionError("every renewal is answered")

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Owner:
    def lost(self, lease: int) -> None:
        raise AssertionError(lease)

    def late(self, lease: int, until_ms: float) -> None:
        raise AssertionError(lease)


def keeper_of(validity: Validity) -> LeaseKeeper:
    clock = SystemClock()
    now_ms = clock.monotonic_ms()
    keeper = LeaseKeeper(
        validity,
        Beat(now_ms),
        Owner(),
        clock=clock,
        interval_ms=1,
        stall_max_ms=60_000,
        deaf_after_ms=60_000,
    )
    keeper.keep(7, validity.grant(now_ms + 60_000))
    return keeper


async def test_a_stalled_data_loop_costs_no_renewal() -> None:
    """The loop of this test stands still while the other thread renews."""
    store = OtherThread()
    validity = Validity()
    home = ThreadHome(store)
    home.run(keeper_of(validity))
    assert store.renewed.wait(30), "nothing was renewed while the data loop stood still"
    assert set(store.renewed_in) == {store.thread.ident}
    called: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    store.loop.call_soon_threadsafe(
        lambda: home.call(lambda: called.set_result(threading.get_ident()))
    )
    assert await asyncio.wait_for(called, 30) == threading.get_ident()
    await home.stop()
    store.stop()


async def test_a_store_of_this_process_is_kept_by_the_timer() -> None:
    environment = FakeEnvironment()
    store = MemoryStore(environment.timer)
    home = home_of(store, environment)
    assert isinstance(home, LoopHome)
    await home.stop()
    lease = await store.grant_lease(1_000)
    keeper = keeper_of(validity := Validity())
    keeper.keep(lease, validity.grant_number)
    home.run(keeper)
    for _ in range(100):
        await asyncio.sleep(0)
        environment.timer.advance(100)
    await store.keep_lease_alive(lease)
    await home.stop()


def test_a_data_loop_that_has_ended_is_not_called() -> None:
    store = OtherThread()

    async def make() -> ThreadHome:
        return ThreadHome(store)

    home = asyncio.run(make())
    home.call(lambda: None)
    store.stop()
