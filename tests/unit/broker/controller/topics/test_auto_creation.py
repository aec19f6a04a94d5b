"""Topics that come into being because somebody uses them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.images.broker_records import BrokerEndpoint, BrokerImage
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.results import CreateTopicResult
from broker.controller.images.topic_names import CONSUMER_OFFSETS
from broker.controller.topics.auto_creation import AutoCreation
from broker.controller.topics.topics import NewTopic
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from tests.fakes.broker.controller import LISTENER, open_controller
from tests.fakes.broker.metadata_store import Fault, MemoryStore

MADE = TopicImage("made", UUID(int=1), (), {}, internal=False)


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


@pytest.mark.parametrize(
    ("racks", "factor", "is_alone", "is_told"),
    [
        ((None, None), 1, False, True),
        (("a", "b"), 1, False, True),
        (("a", "a"), 1, False, False),
        ((None, None), 2, False, False),
        ((None,), 1, False, False),
        ((None,), 3, True, False),
    ],
)
async def test_one_replica_of_an_internal_topic_is_told_in_a_cluster(
    racks: tuple[str | None, ...],
    factor: int,
    is_alone: bool,
    is_told: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka's default is three; brokers of one rack are those of one machine."""
    endpoint = {LISTENER: BrokerEndpoint("h", 1)}
    brokers = [BrokerImage(node, endpoint, rack) for node, rack in enumerate(racks)]
    images = [ClusterImage.empty().with_brokers(brokers)]

    async def create(topics: Sequence[NewTopic]) -> list[CreateTopicResult]:
        images.append(replace(images[0], topics={topic.name: MADE for topic in topics}))
        return [CreateTopicResult(topic.name, topic=MADE) for topic in topics]

    creation = AutoCreation(
        BrokerConfig().replace(offsets_topic_replication_factor=factor),
        image=lambda: images[-1],
        create=create,
        start=asyncio.ensure_future,
        lowers_replication=is_alone,
    )
    for name in (CONSUMER_OFFSETS, "t"):
        future = creation.create(name)
        assert future is not None
        assert (await future).topic is MADE
        images[:] = images[:1]
    assert ("setting=offsets.topic.replication.factor" in caplog.text) is is_told
    assert caplog.text.count("one replica") == is_told
