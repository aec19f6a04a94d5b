"""Changes: one at a time, committed only by the controller, finished without their caller."""

import asyncio
import gc
import inspect

import pytest

from broker.controller.changes import Changes
from broker.controller.image_feed import ImageFeed
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.results import result_of
from broker.controller.store.metadata_store import Put, StoreError, StoreUnavailableError
from broker.controller.store.store_writer import NotControllerError, Unit
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from tests.fakes.broker.metadata_store import MemoryStore


def unit(key: str) -> Unit:
    return Unit((), (Put(key, b"1"),))


def changes_on(store: MemoryStore, *, is_controller: bool = True) -> tuple[Changes, ImageFeed]:
    feed = ImageFeed(store, ClusterImage.empty().at(1))
    return Changes(feed, store if is_controller else None), feed


async def test_commit_is_done_when_the_image_has_it() -> None:
    changes, feed = changes_on(MemoryStore())
    assert await changes.run(changes.commit([unit("a"), unit("b")])) == [None, None]
    assert feed.image.revision == 2
    await feed.aclose()


async def test_without_the_role_nothing_is_written() -> None:
    """Every unit is refused with the code that sends a client to the controller."""
    store = MemoryStore()
    changes, _ = changes_on(store, is_controller=False)
    assert not changes.is_controller
    (error,) = await changes.run(changes.commit([unit("a")]))
    assert isinstance(error, NotControllerError)
    assert result_of(error).error is ErrorCode.NOT_CONTROLLER
    changes.begin(store)
    assert await changes.run(changes.commit([unit("a")])) == [None]
    changes.resign()
    assert await changes.run(changes.commit([unit("b")])) != [None]
    assert await store.get("b") is None


async def test_changes_do_not_overlap() -> None:
    """The second one begins when the first is done, although the first one waits."""
    changes, _ = changes_on(MemoryStore())
    order: list[str] = []
    gate = asyncio.Event()

    async def change(name: str, wait: bool) -> None:
        order.append(f"{name} begins")
        if wait:
            await gate.wait()
        order.append(f"{name} ends")

    first = asyncio.ensure_future(changes.run(change("a", True)))
    second = asyncio.ensure_future(changes.run(change("b", False)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert order == ["a begins"]
    gate.set()
    await asyncio.gather(first, second)
    assert order == ["a begins", "a ends", "b begins", "b ends"]


@pytest.mark.parametrize("has_waited", [False, True])
async def test_a_plan_of_an_earlier_election_is_refused(has_waited: bool) -> None:
    """Another controller had its time meanwhile: what was planned on may be replaced."""
    store = MemoryStore()
    changes, feed = changes_on(store)
    planned, elected = asyncio.Event(), asyncio.Event()

    async def change() -> list[StoreError | None]:
        planned.set()
        await elected.wait()
        return await changes.commit([unit("a")])

    gate = asyncio.Event()
    if has_waited:
        before = asyncio.ensure_future(changes.run(gate.wait()))
    running = asyncio.ensure_future(changes.run(change()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert planned.is_set() is not has_waited
    changes.resign()
    changes.begin(store)
    elected.set()
    if has_waited:
        # Its turn comes after the election: it plans on what is there then.
        gate.set()
        await before
        assert await running == [None]
    else:
        (error,) = await running
        assert isinstance(error, NotControllerError)
        assert await store.get("a") is None
    assert await changes.run(changes.commit([unit("b")])) == [None]
    await feed.aclose()


async def test_nothing_is_committed_by_an_image_without_the_last_commit() -> None:
    """The store could not be read behind it: what comes next waits for it, or commits nothing."""
    store = MemoryStore()
    feed = _UnreadableFeed(store, ClusterImage.empty().at(1))
    changes = Changes(feed, store)
    feed.is_away = True
    with pytest.raises(StoreUnavailableError):
        await changes.run(changes.commit([unit("a")]))
    assert feed.image.revision == 1

    async def plan() -> tuple[int, list[StoreError | None]]:
        return feed.image.revision, await changes.commit([unit("b")])

    revision, (error,) = await changes.run(plan())
    assert (revision, type(error)) == (1, StoreUnavailableError)
    assert await store.get("b") is None
    feed.is_away = False
    assert await changes.run(plan()) == (2, [None])
    await feed.aclose()


class _UnreadableFeed(ImageFeed):
    """A feed whose store does not answer reads while `is_away`; commits are made."""

    is_away = False

    async def _step(self) -> None:
        if self.is_away:
            raise StoreUnavailableError("away")
        await super()._step()


async def test_a_change_ends_without_its_caller() -> None:
    """A cancelled caller cancels nothing; closing waits for the change."""
    store = MemoryStore()
    store.gate.clear()
    changes, _ = changes_on(store)
    caller = asyncio.ensure_future(changes.run(changes.commit([unit("a")])))
    for _ in range(5):
        await asyncio.sleep(0)
    caller.cancel()
    closing = asyncio.ensure_future(changes.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    store.gate.set()
    await closing
    assert await store.get("a") is not None


@pytest.mark.parametrize("turns", [0, 3])
async def test_a_change_that_never_has_its_turn_leaves_nothing_behind(turns: int) -> None:
    """Cancelled while another one is at it, or before it is looked at: its coroutine is closed."""
    changes, _ = changes_on(MemoryStore())
    gate = asyncio.Event()

    async def waiting() -> None:
        await gate.wait()

    first = asyncio.ensure_future(changes.run(waiting()))
    await asyncio.sleep(0)
    never = waiting()
    second = asyncio.ensure_future(changes.run(never))
    await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    for one in list(changes._tasks):
        one.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert inspect.getcoroutinestate(never) == inspect.CORO_CLOSED


@pytest.mark.parametrize(
    ("error", "logged"), [(ApiError(ErrorCode.INVALID_REQUEST, "refused"), 0), (ValueError(), 1)]
)
async def test_a_change_that_fails_after_its_client_has_gone(
    error: Exception, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal would have been the client's to read; anything else is logged."""
    changes, _ = changes_on(MemoryStore())
    gate = asyncio.Event()

    async def change() -> None:
        await gate.wait()
        raise error

    running = asyncio.ensure_future(changes.run(change()))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gate.set()
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    await changes.aclose()
    await asyncio.sleep(0)
    gc.collect()
    assert lost == []
    # The collector may tell of a task that another test has left behind.
    own = [record for record in caplog.records if record.name == "broker.controller.changes"]
    assert len(own) == logged
