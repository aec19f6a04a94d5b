"""A single node's metadata in a cluster's store: whole, once, and not beside the node's own."""

from contextlib import suppress
from pathlib import Path

import pytest

from broker.controller.images.broker_records import broker_key, decode_registration
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import INCARNATION_KEY, STORE_KEY
from broker.controller.images.store_marks import ORIGIN_KEY, OriginState, check_whole, decode_origin
from broker.controller.store.metadata_store import Put, StoreError
from broker.controller.store.whole_range import whole_range
from broker.node.moved_note import MovedNote
from broker.node.stopped_node import stopped_node
from broker.node.store_file import METADATA_FILE, NodeStoreError
from broker.offline.to_cluster import CopyRefusedError, CopyReport, CopyToCluster
from config.broker import BrokerConfig
from storage.checkpoints.clean_shutdown import marked_epoch
from storage.environment.local_filesystem import LocalFilesystem
from storage.types.uuid_text import parse_uuid
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.unit.broker.offline.stopped import NODE, make_node, settings_of, store_ids

NOTE = MovedNote("etcd://e:1", "/varve/")


async def copy(settings: BrokerConfig, target: MemoryStore) -> CopyReport:
    async with stopped_node(settings) as node:
        return await CopyToCluster(node, target, NOTE).run()


async def image_of(store: MemoryStore) -> ClusterImage:
    content = await whole_range(store, "")
    return ClusterImage.loaded(content.items, content.revision)


async def start_alone(settings: BrokerConfig) -> None:
    async with stopped_node(settings) as node:
        await (await node.open()).aclose()


async def test_all_is_there_and_the_directories_belong_to_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "a", "b")
    await make_node(settings, "t", "u")
    target = MemoryStore()
    report = await copy(settings, target)
    assert (report.node_id, report.topics, report.partitions) == (NODE, 2, 4)
    image = await image_of(target)
    assert set(image.topics) == {"t", "u"}
    assert all(p.replicas == (NODE,) for t in image.topics.values() for p in t.partitions)
    assert await target.get(STORE_KEY) is None
    assert await target.get("producer-ids") is not None
    incarnation = await target.get(INCARNATION_KEY)
    assert incarnation is not None
    assert store_ids(settings) == {parse_uuid(incarnation.value.decode())}
    await check_whole(target)


async def test_the_next_start_is_known_to_follow_a_clean_stop(tmp_path: Path) -> None:
    """The registration's revision is the broker epoch; the markers name it."""
    settings = settings_of(tmp_path, "a", "b")
    await make_node(settings, "t")
    target = MemoryStore()
    await copy(settings, target)
    item = await target.get(broker_key(NODE))
    assert item is not None
    assert len(decode_registration(item.key, item.value).directories) == 2
    for path in settings.log_dirs:
        assert marked_epoch(LocalFilesystem(), path) == item.mod_revision


async def test_after_a_crash_of_the_node_no_marker_is_made(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    await make_node(settings, "t", clean=False)
    report = await copy(settings, MemoryStore())
    assert not report.was_clean
    assert marked_epoch(LocalFilesystem(), settings.log_dirs[0]) is None


async def test_the_node_does_not_start_alone_afterwards(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    await make_node(settings, "t")
    await copy(settings, MemoryStore())
    with pytest.raises(NodeStoreError, match="varve metadata copy --from etcd://e:1 --to sqlite"):
        await start_alone(settings)


async def test_run_twice_it_changes_nothing(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    await make_node(settings, "t")
    target = MemoryStore()
    await copy(settings, target)
    commits = target.commits
    again = await copy(settings, target)
    assert (again.keys, again.topics) == (0, 1)
    assert target.commits == commits


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("commit", range(3))
async def test_broken_off_anywhere_it_goes_on(tmp_path: Path, fault: Fault, commit: int) -> None:
    """The mark, the keys, the last transaction: after each, the same command ends well."""
    settings = settings_of(tmp_path)
    await make_node(settings, "t")
    target = MemoryStore()
    target.faults += [*[None] * commit, fault, Fault.REFUSED]
    with suppress(StoreError):
        await copy(settings, target)
    target.faults.clear()
    mark = await target.get(ORIGIN_KEY)
    if mark is None or decode_origin(mark.value).state is not OriginState.COPIED:
        # Until then nobody takes it for a cluster's.
        assert await target.get(INCARNATION_KEY) is None
    await copy(settings, target)
    await check_whole(target)
    assert set((await image_of(target)).topics) == {"t"}
    with pytest.raises(NodeStoreError):
        await start_alone(settings)


async def test_what_the_node_did_after_an_attempt_is_copied_too(tmp_path: Path) -> None:
    """Broken off before its file is renamed, it may have run alone again."""
    settings = settings_of(tmp_path)
    await make_node(settings, "t")
    target = MemoryStore()
    target.faults += [None, None, Fault.REFUSED]
    with pytest.raises(StoreError):
        await copy(settings, target)
    (tmp_path / "a" / (METADATA_FILE + ".copied")).rename(tmp_path / "a" / METADATA_FILE)
    await make_node(settings, "later")
    await copy(settings, target)
    assert set((await image_of(target)).topics) == {"t", "later"}


async def test_a_store_in_use_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    await make_node(settings, "t")
    target = MemoryStore()
    await target.txn(then=[Put("cluster/id", b"another")])
    with pytest.raises(CopyRefusedError, match="has a cluster's metadata"):
        await copy(settings, target)
    await start_alone(settings)


async def test_the_copy_of_another_node_is_refused(tmp_path: Path) -> None:
    settings, other = settings_of(tmp_path, "a"), settings_of(tmp_path, "z")
    await make_node(settings, "t")
    await make_node(other, "u")
    target = MemoryStore()
    await copy(other, target)
    with pytest.raises(CopyRefusedError, match="the metadata of another node"):
        await copy(settings, target)


async def test_all_directories_with_partitions_must_be_named(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "a", "b")
    await make_node(settings, "t", "u", partitions=4)
    with pytest.raises(CopyRefusedError, match="name all"):
        await copy(settings_of(tmp_path, "a"), MemoryStore())


async def test_a_directory_without_a_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CopyRefusedError, match="there is no varve-metadata"):
        await copy(settings_of(tmp_path, "empty"), MemoryStore())
