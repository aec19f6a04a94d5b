"""While no controller is elected, the lowest broker that lives lets the others in."""

from uuid import UUID

from broker.controller.admission import Admission
from broker.controller.images.broker_records import (
    BrokerRegistration,
    broker_key,
    encode_live,
    encode_registration,
    live_key,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import Put
from tests.fakes.broker.metadata_store import Fault, MemoryStore


async def register(store: MemoryStore, node_id: int, *, live: bool = True) -> None:
    life = UUID(int=node_id)
    puts = [Put(broker_key(node_id), encode_registration(BrokerRegistration(life, {})))]
    await store.txn(then=puts + [Put(live_key(node_id), encode_live(life))] * live)


async def image_of(store: MemoryStore) -> ClusterImage:
    content = await store.range("")
    return ClusterImage.loaded(content.items, content.revision)


async def let_in_by(store: MemoryStore, node_id: int) -> set[int]:
    admission = Admission(store, node_id)
    admission.image_changed(ClusterImage.empty(), await image_of(store))
    await admission.aclose()
    brokers = (await image_of(store)).brokers.values()
    return {broker.node_id for broker in brokers if not broker.is_fenced}


async def test_the_lowest_that_lives_lets_in_who_lives() -> None:
    store = MemoryStore()
    await register(store, 1, live=False)
    await register(store, 2)
    await register(store, 3)
    assert await let_in_by(store, 3) == set()
    assert await let_in_by(store, 1) == set()
    assert await let_in_by(store, 2) == {2, 3}


async def test_nothing_is_written_while_nobody_waits_or_the_store_refuses() -> None:
    store = MemoryStore()
    await register(store, 1)
    store.faults = [Fault.REFUSED]
    assert await let_in_by(store, 1) == set()
    assert await let_in_by(store, 1) == {1}
    commits = store.commits
    assert await let_in_by(store, 1) == {1}
    assert store.commits == commits
