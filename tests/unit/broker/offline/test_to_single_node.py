"""The way back from a cluster's store: only while nothing is lost by it."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.controller.images.broker_records import encode_live, live_key
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import chunks
from broker.controller.images.partition_image import PartitionImage
from broker.controller.images.store_marks import UnfinishedStoreError, check_whole
from broker.controller.store.metadata_store import Put, StoreError
from broker.controller.store.whole_range import whole_range
from broker.node.stopped_node import stopped_node
from broker.offline.to_cluster import CopyRefusedError, CopyReport, CopyToCluster
from broker.offline.to_single_node import CopyToSingleNode
from config.broker import BrokerConfig
from storage.checkpoints.member_note import MemberNote, read_member_note, write_member_note
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.unit.broker.offline.stopped import NODE, make_node, settings_of, store_ids
from tests.unit.broker.offline.test_to_cluster import NOTE, copy, image_of


async def go_back(settings: BrokerConfig, source: MemoryStore) -> CopyReport:
    async with stopped_node(settings) as node:
        return await CopyToSingleNode(node, source).run()


async def image_alone(settings: BrokerConfig) -> ClusterImage:
    async with stopped_node(settings) as node:
        store = await node.open()
        content = await whole_range(store, "")
        await store.aclose()
        assert store_ids(settings) == {node.store_id}
    return ClusterImage.loaded(content.items, content.revision, controller_id=NODE)


async def clustered(settings: BrokerConfig, *topics: str) -> MemoryStore:
    await make_node(settings, *topics)
    store = MemoryStore()
    await copy(settings, store)
    return store


async def without_leaders(store: MemoryStore, replicas: tuple[int, ...] = (NODE,)) -> None:
    """As a controller leaves it when all brokers have stopped."""
    for topic in (await image_of(store)).topics.values():
        partitions = [
            PartitionImage(p.index, -1, 7, 9, replicas, (), elr=(NODE,)) for p in topic.partitions
        ]
        await store.txn(then=[Put(key, value) for key, value in chunks(topic.topic_id, partitions)])


async def test_the_node_leads_all_in_another_epoch_and_no_broker_starts(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "a", "b")
    store = await clustered(settings, "t")
    await without_leaders(store)
    await go_back(settings, store)
    image = await image_alone(settings)
    for partition in image.topics["t"].partitions:
        assert (partition.leader, partition.isr, partition.elr) == (NODE, (NODE,), ())
        assert partition.leader_epoch == 8
    with pytest.raises(UnfinishedStoreError, match="was copied to node"):
        await check_whole(store)


@pytest.mark.parametrize("fault", list(Fault))
async def test_broken_off_it_goes_on_and_may_come_again(tmp_path: Path, fault: Fault) -> None:
    """To and fro, with the same store."""
    settings = settings_of(tmp_path)
    store = await clustered(settings, "t")
    store.faults += [fault, Fault.REFUSED]
    with pytest.raises(StoreError):
        await go_back(settings, store)
    store.faults.clear()
    await go_back(settings, store)
    assert set((await image_alone(settings)).topics) == {"t"}
    await go_back(settings, store)
    await make_node(settings, "u")
    async with stopped_node(settings) as node:
        await CopyToCluster(node, store, NOTE).run()
    await check_whole(store)
    assert set((await image_of(store)).topics) == {"t", "u"}


async def test_what_was_seen_of_a_store_that_is_left_is_held_against_no_other(
    tmp_path: Path,
) -> None:
    """The next cluster's store begins at revision 1, far behind."""
    settings, disk = settings_of(tmp_path), LocalFilesystem()
    (path,) = settings.log_dirs
    store = await clustered(settings, "t")
    write_member_note(disk, path, MemberNote("boot", 7, 1_000_000))
    await go_back(settings, store)
    assert read_member_note(disk, path) is None
    # An earlier release left it there.
    write_member_note(disk, path, MemberNote("boot", 7, 1_000_000))
    await copy(settings, MemoryStore())
    assert read_member_note(disk, path) is None


async def test_not_while_a_broker_lives(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    store = await clustered(settings, "t")
    await store.txn(then=[Put(live_key(9), encode_live(UUID(int=9)))])
    with pytest.raises(CopyRefusedError, match="broker 9 is running"):
        await go_back(settings, store)


async def test_not_while_others_have_replicas(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    store = await clustered(settings, "t")
    await without_leaders(store, (NODE, 5))
    with pytest.raises(CopyRefusedError, match="t-0 has replicas on brokers 4, 5"):
        await go_back(settings, store)


async def test_not_into_directories_of_another(tmp_path: Path) -> None:
    settings, other = settings_of(tmp_path, "a"), settings_of(tmp_path, "z")
    store = await clustered(settings, "t")
    await make_node(other, "u")
    with pytest.raises(CopyRefusedError, match="is not of broker 4 of this cluster"):
        await go_back(other, store)
