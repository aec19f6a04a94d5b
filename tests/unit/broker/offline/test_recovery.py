"""Recovery of a store: refused where it could lose, whole in the end, done once."""

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

import pytest

from broker.controller.images.broker_records import (
    BrokerRegistration,
    broker_key,
    encode_live,
    encode_registration,
    live_key,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.controller_history import WRITES_KEY
from broker.controller.images.metadata_records import (
    CLUSTER_ID_KEY,
    INCARNATION_KEY,
    PRODUCER_IDS_KEY,
    chunks,
    decode_next_producer_id,
    encode_topic,
    topic_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.images.store_marks import (
    ORIGIN_KEY,
    Origin,
    OriginState,
    UnfinishedStoreError,
    check_whole,
    recovery_of,
)
from broker.controller.store.metadata_store import Put, StoreError
from broker.controller.store.whole_range import whole_range
from broker.offline.directory_facts import FactsError, NodeFacts
from broker.offline.recovery import LOOK_AGAIN_MS, StoreRecovery, shown
from broker.offline.recovery_plan import RecoveryPlan
from config.broker import BrokerConfig
from storage.types.uuid_text import format_uuid
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.environment import FakeEnvironment
from tests.unit.broker.offline.facts import INCARNATION, TOPIC, directory_id, node, replica

BOTH = (node(1, replica(), brokers=(1, 2)), node(2, replica(), brokers=(1, 2)))


def recovery(store: MemoryStore, nodes: Sequence[NodeFacts] = BOTH, *absent: int) -> StoreRecovery:
    return StoreRecovery(
        store, nodes, absent=absent, settings=BrokerConfig(), environment=FakeEnvironment()
    )


async def recover(store: MemoryStore, nodes: Sequence[NodeFacts] = BOTH) -> RecoveryPlan:
    one = recovery(store, nodes)
    made = await one.plan()
    await one.execute(made)
    return made


async def old_copy(revisions: int = 0) -> MemoryStore:
    """A store with the topic in leader epoch 1, and broker 1 registered."""
    store = MemoryStore()
    registration = BrokerRegistration(UUID(int=1), {}, directories=(directory_id(1),))
    await store.txn(
        then=[
            Put(CLUSTER_ID_KEY, b"c"),
            Put(INCARNATION_KEY, format_uuid(INCARNATION).encode()),
            Put(topic_key("t"), encode_topic(TOPIC)),
            *(Put(*one) for one in chunks(TOPIC, [PartitionImage(0, 1, 1, 1, (1, 2), (1, 2))])),
            Put(broker_key(1), encode_registration(registration)),
        ]
    )
    for number in range(revisions):
        await store.txn(then=[Put("x", b"%d" % number)])
    return store


async def image_of(store: MemoryStore) -> ClusterImage:
    content = await whole_range(store, "")
    return ClusterImage.loaded(content.items, content.revision)


async def test_an_empty_store_is_filled_and_names_what_it_replaces() -> None:
    store = MemoryStore()
    made = await recover(store)
    assert made.evidence == ["the store is empty: it was lost, or emptied"]
    image = await image_of(store)
    assert (image.cluster_id, image.topics["t"].topic_id) == ("c", TOPIC)
    incarnation = await store.get(INCARNATION_KEY)
    assert incarnation is not None
    assert incarnation.value.decode() != format_uuid(INCARNATION)
    found = await recovery_of(store)
    assert found is not None
    assert found.accounts_for(2, directory_id(2), INCARNATION)
    assert found.brokers[1].epoch == 7
    ids = await store.get(PRODUCER_IDS_KEY)
    assert ids is not None
    assert decode_next_producer_id(ids.value) >= FakeEnvironment().clock.now_ms() * 1000
    await check_whole(store)


async def test_an_old_copy_is_raised_and_its_brokers_are_forgotten() -> None:
    store = await old_copy()
    made = await recover(store, [node(1, replica(), revision=99), node(2, replica())])
    assert any("has seen revision 99" in line for line in made.evidence)
    assert any("later leader epochs than the store: t-0" in line for line in made.evidence)
    assert (await image_of(store)).topics["t"].partitions[0].leader_epoch > 5
    assert await store.get(broker_key(1)) is None


async def test_a_copy_whose_revisions_went_on_is_told_by_the_controllers_writes() -> None:
    store = await old_copy(revisions=50)
    await store.txn(then=[Put(WRITES_KEY, b"1 9 1 5")])
    seen = node(1, replica(epoch=1), write=("1 9", store.revision))
    other = node(2, replica(epoch=1))
    assert (await recovery(store, (seen, other)).plan()).evidence == []
    seen = node(1, replica(epoch=1), write=("1 9", store.revision + 1))
    (line,) = (await recovery(store, (seen, other)).plan()).evidence
    assert "the store does not have it" in line


async def test_planning_writes_nothing() -> None:
    store = await old_copy()
    commits = store.commits
    await recovery(store).plan()
    assert store.commits == commits


async def test_a_store_that_is_not_behind_needs_nothing() -> None:
    store = await old_copy(20)
    nodes = [node(1, replica(epoch=1), revision=9), node(2, replica(epoch=1))]
    assert (await recovery(store, nodes).plan()).evidence == []


async def test_run_again_it_finds_nothing_to_do() -> None:
    """The directories still name the lost store until their brokers start."""
    store = MemoryStore()
    await recover(store)
    assert (await recovery(store).plan()).evidence == []


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("commit", range(3))
async def test_broken_off_anywhere_it_goes_on(fault: Fault, commit: int) -> None:
    """Until its end no broker takes the store for whole."""
    store = await old_copy()
    store.faults += [*[None] * commit, fault, Fault.REFUSED]
    with suppress(StoreError):
        await recover(store)
    store.faults.clear()
    found = await recovery_of(store)
    if found is not None and found.state.value == "recovering":
        with pytest.raises(UnfinishedStoreError):
            await check_whole(store)
    await recover(store)
    await check_whole(store)
    found = await recovery_of(store)
    assert found is not None
    assert found.accounts_for(1, directory_id(1), INCARNATION)


async def test_not_while_a_broker_lives() -> None:
    """A lease that nobody renews is waited for; this one stays."""
    store = await old_copy()
    await store.txn(then=[Put(live_key(2), encode_live(UUID(int=2)))])
    environment = FakeEnvironment()
    one = StoreRecovery(store, BOTH, absent=(), settings=BrokerConfig(), environment=environment)
    import asyncio

    planning = asyncio.ensure_future(one.plan())
    while not planning.done():
        for _ in range(5):
            await asyncio.sleep(0)
        environment.timer.advance(LOOK_AGAIN_MS)
    with pytest.raises(FactsError, match="broker 2 runs"):
        await planning


async def test_directories_that_are_not_here_must_be_named() -> None:
    """By what the store says, and by what brokers saw where the store says nothing."""
    with pytest.raises(FactsError, match="has also broker 2, of which"):
        await recovery(await old_copy(), BOTH[:1]).plan()
    with pytest.raises(FactsError, match="has also broker 2, of which"):
        await recovery(MemoryStore(), BOTH[:1]).plan()
    await recovery(MemoryStore(), BOTH[:1], 2).plan()


async def test_a_broker_that_comes_later_is_taken_in_by_another_run() -> None:
    """Its epochs are above those of the first: they are raised once more."""
    store = MemoryStore()
    first = recovery(store, BOTH[:1], 2)
    await first.execute(await first.plan())
    late = [node(1, replica(), brokers=(1, 2)), node(2, replica(epoch=500, end_epoch=500))]
    made = await recover(store, late)
    assert any("belongs to incarnation" in line for line in made.evidence)
    assert (await image_of(store)).topics["t"].partitions[0].leader_epoch > 500
    found = await recovery_of(store)
    assert found is not None
    assert found.accounts_for(2, directory_id(2), INCARNATION)


async def test_a_store_in_the_middle_of_a_copy_is_left_alone() -> None:
    store = await old_copy()
    origin = Origin(OriginState.COPYING, INCARNATION, 1)
    await store.txn(then=[Put(ORIGIN_KEY, origin.encode())])
    with pytest.raises(FactsError, match="varve metadata copy"):
        await recovery(store).plan()


def test_lines_name_the_first_few() -> None:
    assert shown(["a", "b", "c"]) == "a, b, c"
    assert shown(list("abcde")) == "a, b, c and 2 more"
