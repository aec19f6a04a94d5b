"""Opening a cluster's state: what a new one lacks is written once, whoever else opens it."""

import asyncio

import pytest

from broker.controller.cluster_opening import ClusterIdError, open_cluster
from broker.controller.images.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.images.metadata_records import CLUSTER_ID_KEY, INCARNATION_KEY
from broker.controller.store.metadata_store import Put, StoreUnavailableError
from config.broker import BrokerConfig
from storage.environment.randomness import SeededRandomness
from tests.fakes.broker.controller import CLUSTER_ID
from tests.fakes.broker.metadata_store import Fault, MemoryStore

EVERYWHERE = ConfigResource(ResourceType.BROKER, "")


async def opened(
    store: MemoryStore, seed: int = 1, cluster_id: str | None = None, *, is_alone: bool = False
) -> ClusterImage:
    return await open_cluster(
        store,
        BrokerConfig(),
        randomness=SeededRandomness(seed),
        cluster_id=cluster_id,
        is_alone=is_alone,
    )


async def test_brokers_that_open_a_new_cluster_at_once_find_the_same() -> None:
    store = MemoryStore()
    images = await asyncio.gather(*(opened(store, seed) for seed in range(1, 6)))
    assert len({(image.cluster_id, image.revision) for image in images}) == 1
    assert images[0].features
    assert images[0].config(EVERYWHERE) == {"min.insync.replicas": "1"}
    assert store.commits == 1


async def test_what_is_there_is_left_alone() -> None:
    store = MemoryStore()
    before = await opened(store)
    assert await opened(store, 2) == before
    assert store.commits == 1


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST])
async def test_an_unknown_outcome_is_looked_up(fault: Fault) -> None:
    store = MemoryStore()
    store.faults = [fault]
    image = await opened(store)
    item = await store.get(CLUSTER_ID_KEY)
    assert item is not None
    assert image.cluster_id == item.value.decode() != ""


async def test_a_store_that_is_away_is_an_error() -> None:
    store = MemoryStore()
    store.faults = [Fault.REFUSED]
    with pytest.raises(StoreUnavailableError):
        await opened(store)


async def test_another_cluster_is_refused_and_left_alone() -> None:
    store = MemoryStore()
    image = await opened(store)
    with pytest.raises(ClusterIdError, match=image.cluster_id):
        await opened(store, 2, CLUSTER_ID)
    assert store.commits == 1


async def test_only_a_cluster_gets_an_incarnation() -> None:
    """A single node's store has an identity of its own."""
    alone, shared = MemoryStore(), MemoryStore()
    assert (await opened(alone, is_alone=True)).controller_id == 1
    assert (await opened(shared)).controller_id == -1
    assert await alone.get(INCARNATION_KEY) is None
    first = await shared.get(INCARNATION_KEY)
    await opened(shared, 2)
    assert await shared.get(INCARNATION_KEY) == first is not None


async def test_changes_of_others_meanwhile_are_in_the_image() -> None:
    """The image is of one revision, with all that was before it."""
    store = MemoryStore()
    opening = asyncio.ensure_future(opened(store))
    await store.txn(then=[Put("configs/broker/", b'{"v":1,"c":{"min.insync.replicas":"2"}}')])
    image = await opening
    assert image.config(EVERYWHERE) == {"min.insync.replicas": "2"}
    assert image.revision == store.revision
