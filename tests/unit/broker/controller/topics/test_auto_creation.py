"""Topics that come into being because somebody uses them."""

import asyncio

import pytest

from broker.controller.topics.topics import NewTopic
from protocol.error_codes import ErrorCode
from tests.fakes.broker.controller import open_controller
from tests.fakes.broker.metadata_store import Fault, MemoryStore


async def test_automatic_creations_are_shared() -> None:
    """Many who ask for one topic, and for many topics, cost one commit."""
    store = MemoryStore()
    controller = await open_controller(store, num_partitions=2)
    commits = store.commits
    futures = [controller.auto_create(f"t{i % 3}") for i in range(30)]
    results = [await f for f in futures if f is not None]
    assert len({id(f) for f in futures}) == 3
    assert all(r.topic is controller.image.topics[r.name] for r in results)
    assert store.commits == commits + 1
    assert len(controller.image.topics["t0"].partitions) == 2


async def test_automatic_creation_of_an_existing_topic_is_it() -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 5, 1)])
    future = controller.auto_create("t")
    assert future is not None
    assert future.done()
    assert future.result().topic is controller.image.topics["t"]


async def test_automatic_creation_that_loses_a_race_finds_the_topic() -> None:
    """Somebody creates it on purpose while it waits its turn: both get the same topic."""
    controller = await open_controller()
    creating = asyncio.ensure_future(controller.create_topics([NewTopic("t", 5, 1)]))
    await asyncio.sleep(0)
    future = controller.auto_create("t")
    assert future is not None
    await creating
    result = await future
    assert result.error is ErrorCode.NONE
    assert result.topic is not None
    assert len(result.topic.partitions) == 5


async def test_automatic_creation_tells_why_it_failed(caplog: pytest.LogCaptureFixture) -> None:
    """Illegal names at once; others after the attempt, and in the log."""
    controller = await open_controller(default_replication_factor=3)
    illegal, impossible = controller.auto_create("bad name"), controller.auto_create("t")
    assert illegal is not None
    assert impossible is not None
    assert illegal.result().error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (await impossible).error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "replication factor of 3" in caplog.text
    again = controller.auto_create("t")
    assert again is not impossible
    assert again is not None
    await again


async def test_automatic_creation_when_the_store_fails() -> None:
    """Everybody who waits is told; nothing hangs."""
    store = MemoryStore()
    controller = await open_controller(store)
    store.faults = [Fault.REFUSED]
    future = controller.auto_create("t")
    assert future is not None
    assert (await future).error is ErrorCode.REQUEST_TIMED_OUT


async def test_automatic_creations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is left alone: its client asks again."""
    monkeypatch.setattr("broker.controller.topics.auto_creation.AUTO_CREATIONS_MAX", 2)
    controller = await open_controller()
    first, second = controller.auto_create("a"), controller.auto_create("b")
    assert controller.auto_create("c") is None
    assert controller.auto_create("a") is first
    assert first is not None
    assert second is not None
    await asyncio.gather(first, second)
    third = controller.auto_create("c")
    assert third is not None
    await third


async def test_many_large_automatic_topics_are_split() -> None:
    """Together they are above what one request may create; each by itself is fine."""
    controller = await open_controller(num_partitions=4000)
    futures = [controller.auto_create(f"t{i}") for i in range(4)]
    results = [await future for future in futures if future is not None]
    assert {result.error for result in results} == {ErrorCode.NONE}
