"""Every revision makes one image, in order, whoever has changed the store."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from broker.controller import image_feed
from broker.controller.image_feed import DECODED_PER_TURN, ImageFeed
from broker.controller.images.cluster_image import BrokerImage, ClusterImage, decode_chunk
from broker.controller.images.metadata_records import (
    CLUSTER_ID_KEY,
    FEATURES_KEY,
    PARTITIONS_PER_CHUNK,
    PRODUCER_IDS_KEY,
    ConfigResource,
    ResourceType,
    config_key,
    encode_config,
    encode_features,
    encode_next_producer_id,
    encode_partitions,
    encode_topic,
    partitions_key,
    topic_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import Put, StoreClosedError
from tests.fakes.broker.metadata_store import MemoryStore

BROKER = BrokerImage(1, {})
TOPIC = UUID(int=7)
EVERYWHERE = ConfigResource(ResourceType.BROKER, "")


def feed_of(store: MemoryStore) -> tuple[ImageFeed, list[tuple[int, int]]]:
    feed = ImageFeed(store, ClusterImage.empty(controller_id=1).at(store.revision))
    feed.place_brokers([BROKER])
    told: list[tuple[int, int]] = []

    async def listen(old: ClusterImage, new: ClusterImage) -> None:
        told.append((old.revision, new.revision))

    feed.subscribe(listen)
    return feed, told


async def set_config(store: MemoryStore, value: str) -> int:
    put = Put(config_key(EVERYWHERE), encode_config({"min.insync.replicas": value}))
    return (await store.txn(then=[put])).revision


async def test_a_level_of_a_newer_release_ends_this_one_and_changes_no_image() -> None:
    """Its records would be misread, or written without what is not understood."""
    store = MemoryStore()
    feed, _ = feed_of(store)
    ended: list[str] = []
    feed.on_unsupported = ended.append
    await feed.reach(store.revision)
    before = feed.image.features
    result = await store.txn(then=[Put(FEATURES_KEY, encode_features({"varve.version": 99}))])
    await feed.reach(result.revision)
    assert feed.image.features == before
    assert len(ended) == 1
    assert "feature varve.version at level 99" in ended[0]
    await feed.aclose()


async def test_listeners_see_one_image_of_each_revision_in_order() -> None:
    store = MemoryStore()
    feed, told = feed_of(store)
    await feed.reach(store.revision)
    revisions = [await set_config(store, str(value)) for value in range(1, 5)]
    # The watch begins with the first wait: what came before it is not missed.
    await feed.reach(revisions[-1])
    assert told == [(1, 2), (2, 3), (3, 4), (4, 5)]
    assert feed.image.config(EVERYWHERE) == {"min.insync.replicas": "4"}
    await feed.aclose()


async def test_a_revision_that_an_image_does_not_show_tells_nobody() -> None:
    store = MemoryStore()
    feed, told = feed_of(store)
    await store.txn(then=[Put("producer-ids", b"1000")])
    await feed.reach(2)
    assert (feed.image.revision, told) == (2, [])
    await feed.aclose()


async def test_whoever_waits_gets_the_changes_of_others_from_the_follower() -> None:
    """Several may wait for different revisions while others change the store."""
    store = MemoryStore()
    feed, told = feed_of(store)
    following = asyncio.ensure_future(feed.follow())
    waiting = [asyncio.ensure_future(feed.reach(revision)) for revision in (2, 4, 3)]
    await asyncio.sleep(0)
    for value in range(3):
        await set_config(store, str(value))
    await asyncio.wait_for(asyncio.gather(*waiting), 30)
    assert told == [(1, 2), (2, 3), (3, 4)]
    await feed.aclose()
    await asyncio.wait_for(following, 30)


def many_partitions() -> list[Put]:
    """A topic in more chunks than are decoded in a turn."""
    state = PartitionImage(0, 1, 3, 5, (1,), (1,))
    count = 2 * DECODED_PER_TURN + 1
    return [
        Put(topic_key("t"), encode_topic(TOPIC)),
        *(
            Put(partitions_key(TOPIC, at * PARTITIONS_PER_CHUNK), encode_partitions([state] * 128))
            for at in range(count)
        ),
    ]


async def test_many_keys_are_decoded_in_turns_and_shown_in_one() -> None:
    store = MemoryStore()
    feed, told = feed_of(store)
    await feed.reach(store.revision)
    await store.txn(then=many_partitions())
    waiting = asyncio.ensure_future(feed.reach(2))
    turns = 0
    while feed.image.revision < 2:
        assert "t" not in feed.image.topics
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 2
    await waiting
    assert feed.image.partition_count == (2 * DECODED_PER_TURN + 1) * PARTITIONS_PER_CHUNK
    assert told == [(1, 2)]
    await feed.aclose()


async def test_changes_are_not_lost_with_who_waited_for_them() -> None:
    """The watch gives them once: who takes them may be cancelled while they are decoded."""
    store = MemoryStore()
    feed, _ = feed_of(store)
    await feed.reach(store.revision)
    await store.txn(then=many_partitions())
    waiting = asyncio.ensure_future(feed.see(2))
    taken = asyncio.Event()
    decode = image_feed._decode

    async def decode_and_tell(*given: Any) -> None:
        taken.set()
        await decode(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_feed, "_decode", decode_and_tell)
        await taken.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert "t" in feed.image.topics
    later = await set_config(store, "2")
    await feed.reach(later)
    assert feed.image.config(EVERYWHERE) == {"min.insync.replicas": "2"}
    await feed.aclose()


async def test_all_that_is_read_anew_is_decoded_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """And shown in one."""
    store = MemoryStore(watch_buffer_max=2)
    feed, _ = feed_of(store)
    await feed.reach(store.revision)
    await set_config(store, "1")
    await feed.reach(store.revision)
    await store.txn(then=many_partitions())
    for value in range(5):
        await set_config(store, str(value))
    decoded: list[int] = []

    def seen(key: str, value: bytes | None) -> list[PartitionImage] | None:
        decoded.append(turns)
        return decode_chunk(key, value)

    monkeypatch.setattr(image_feed, "decode_chunk", seen)
    turns = 0
    waiting = asyncio.ensure_future(feed.reach(store.revision))
    while not waiting.done():
        await asyncio.sleep(0)
        turns += 1
    await waiting
    assert len(set(decoded)) > 2
    assert feed.image.partition_count == (2 * DECODED_PER_TURN + 1) * PARTITIONS_PER_CHUNK
    await feed.aclose()


async def test_what_was_compacted_is_read_anew() -> None:
    """Deleted keys are gone from the image, too; the brokers, which are not in the store, stay."""
    store = MemoryStore(watch_buffer_max=2)
    feed, told = feed_of(store)
    await set_config(store, "1")
    await feed.reach(2)
    await store.txn(then=[Put(CLUSTER_ID_KEY, b"c")])
    for value in range(5):
        await set_config(store, str(value))
    await feed.reach(store.revision)
    assert feed.image.config(EVERYWHERE) == {"min.insync.replicas": "4"}
    assert (feed.image.cluster_id, feed.image.brokers) == ("c", {1: BROKER})
    assert told[-1][1] == store.revision
    revision = await set_config(store, "9")
    await feed.reach(revision)
    assert feed.image.config(EVERYWHERE) == {"min.insync.replicas": "9"}
    await feed.aclose()


async def test_a_record_that_cannot_be_read_leaves_what_was_there() -> None:
    """The rest of its revision counts, and the revisions behind it."""
    store = MemoryStore()
    feed, _ = feed_of(store)
    await set_config(store, "1")
    await store.txn(then=[Put(config_key(EVERYWHERE), b"not json"), Put(CLUSTER_ID_KEY, b"c")])
    await feed.reach(3)
    assert feed.image.config(EVERYWHERE) == {"min.insync.replicas": "1"}
    assert (feed.image.cluster_id, feed.image.revision) == ("c", 3)
    await feed.aclose()


async def test_a_listener_that_fails_keeps_the_others_from_nothing() -> None:
    store = MemoryStore()
    feed, _ = feed_of(store)
    seen = []

    async def fail(_old: ClusterImage, _new: ClusterImage) -> None:
        raise RuntimeError("broken")

    async def listen(_old: ClusterImage, new: ClusterImage) -> None:
        seen.append(new.revision)

    feed.subscribe(fail)
    feed.subscribe(listen)
    await set_config(store, "1")
    await feed.reach(2)
    assert seen == [2]
    await feed.aclose()


async def test_revisions_are_told_of_that_change_no_image() -> None:
    """Who notes how far the store has come must hear of blocks of producer ids, too."""
    store = MemoryStore()
    feed, told = feed_of(store)
    revisions: list[int] = []

    def fail(_image: ClusterImage) -> None:
        raise RuntimeError("broken")

    feed.subscribe_revisions(fail)
    feed.subscribe_revisions(lambda image: revisions.append(image.revision))
    await store.txn(then=[Put(PRODUCER_IDS_KEY, encode_next_producer_id(1000))])
    await feed.reach(2)
    await set_config(store, "1")
    await feed.reach(3)
    assert (revisions, told) == ([2, 3], [(2, 3)])
    await feed.aclose()


async def test_no_image_waits_for_a_slow_listener() -> None:
    """It may be the one that ends a leadership; only who asks for the listeners waits for them."""
    store = MemoryStore()
    feed = ImageFeed(store, ClusterImage.empty(controller_id=1).at(store.revision))
    seen: list[str] = []
    free = asyncio.Event()

    async def slow(old: ClusterImage, new: ClusterImage) -> None:
        await free.wait()
        seen.append(f"slow {old.revision} {new.revision}")

    feed.subscribe(slow)
    feed.subscribe_now(lambda old, new: seen.append(f"now {old.revision} {new.revision}"))
    following = asyncio.ensure_future(feed.follow())
    for value in range(3):
        await set_config(store, str(value))
    await asyncio.wait_for(feed.see(4), 30)
    assert seen == ["now 1 2", "now 2 3", "now 3 4"]
    reaching = asyncio.ensure_future(feed.reach(3))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (reaching.done(), feed.pending) == (False, 3)
    free.set()
    await asyncio.wait_for(reaching, 30)
    await feed.reach(4)
    assert seen[3:] == ["slow 1 2", "slow 2 3", "slow 3 4"]
    await feed.aclose()
    await asyncio.wait_for(following, 30)


async def test_a_listener_of_now_that_fails_keeps_the_others_from_nothing() -> None:
    store = MemoryStore()
    feed, told = feed_of(store)
    seen: list[int] = []

    def fail(_old: ClusterImage, _new: ClusterImage) -> None:
        raise RuntimeError("broken")

    feed.subscribe_now(fail)
    feed.subscribe_now(lambda _old, new: seen.append(new.revision))
    await set_config(store, "1")
    await feed.reach(2)
    assert (seen, told) == ([2], [(1, 2)])
    await feed.aclose()


async def test_what_waits_for_listeners_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """They then see several changes as one, and miss nothing."""
    monkeypatch.setattr("broker.controller.image_feed.PENDING_MAX", 2)
    store = MemoryStore()
    feed = ImageFeed(store, ClusterImage.empty(controller_id=1).at(store.revision))
    told: list[tuple[int, int]] = []
    free = asyncio.Event()

    async def slow(old: ClusterImage, new: ClusterImage) -> None:
        await free.wait()
        told.append((old.revision, new.revision))

    feed.subscribe(slow)
    for value in range(5):
        await feed.see(await set_config(store, str(value)))
    assert feed.pending == 2
    free.set()
    await feed.reach(6)
    assert told == [(1, 2), (2, 6)]
    await feed.aclose()


async def test_who_waits_for_a_listener_is_released_at_a_close() -> None:
    store = MemoryStore()
    feed = ImageFeed(store, ClusterImage.empty(controller_id=1).at(store.revision))
    free = asyncio.Event()

    async def slow(_old: ClusterImage, _new: ClusterImage) -> None:
        await free.wait()

    feed.subscribe(slow)
    await feed.see(await set_config(store, "1"))
    await feed.see(await set_config(store, "2"))
    waiting = asyncio.ensure_future(feed.reach(3))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(feed.aclose())
    await asyncio.sleep(0)
    free.set()
    await asyncio.wait_for(closing, 30)
    with pytest.raises(StoreClosedError):
        await asyncio.wait_for(waiting, 30)


@pytest.mark.parametrize("closing", ["feed", "store"])
async def test_who_waits_is_released_at_a_close(closing: str) -> None:
    store = MemoryStore()
    feed, _ = feed_of(store)
    waiting = asyncio.ensure_future(feed.reach(99))
    await asyncio.sleep(0)
    await (feed.aclose() if closing == "feed" else store.aclose())
    with pytest.raises(StoreClosedError):
        await asyncio.wait_for(waiting, 30)
    await feed.aclose()
