"""A store that is not the one these directories belong to is refused, and nothing is written."""

from uuid import UUID

import pytest

from broker.controller.images.controller_history import WRITES_KEY
from broker.controller.images.metadata_records import INCARNATION_KEY
from broker.controller.store.metadata_store import Put, StoreReplacedError
from broker.node.cluster_node import check_directories, check_store, incarnation_of
from broker.node.store_file import METADATA_FILE, NodeStoreError
from storage.checkpoints.member_note import MemberNote, write_member_note
from storage.manager.log_manager import LogManager
from storage.types.uuid_text import format_uuid
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.environment import FakeEnvironment

OURS = UUID(int=0x77 << 64)


def manager_of(environment: FakeEnvironment, store_id: UUID | None = None) -> LogManager:
    manager = LogManager(environment, ["/a", "/b"])
    manager.startup.open_directories()
    if store_id is not None:
        manager.startup.claim("cluster", 1, store_id)
    return manager


async def store_of(incarnation: UUID | None) -> MemoryStore:
    store = MemoryStore()
    if incarnation is not None:
        await store.txn(then=[Put(INCARNATION_KEY, format_uuid(incarnation).encode())])
    return store


async def test_new_directories_go_with_any_store() -> None:
    manager = manager_of(FakeEnvironment())
    await check_store(await store_of(OURS), manager.directories, {})
    await check_store(await store_of(None), manager.directories, {})


async def test_directories_of_this_store_go_with_it() -> None:
    manager = manager_of(FakeEnvironment(), OURS)
    store = await store_of(OURS)
    await check_store(store, manager.directories, {"/a": MemberNote("", 1, store.revision)})
    assert await incarnation_of(store) == OURS


@pytest.mark.parametrize("incarnation", [None, UUID(int=0x78 << 64)])
async def test_another_or_an_emptied_store_is_refused(incarnation: UUID | None) -> None:
    manager = manager_of(FakeEnvironment(), OURS)
    store = await store_of(incarnation)
    commits = store.commits
    with pytest.raises(NodeStoreError, match="belongs to another metadata store"):
        await check_store(store, manager.directories, {})
    assert store.commits == commits


async def test_a_store_behind_what_was_seen_is_refused() -> None:
    """Restored from a copy: same id, and an older state."""
    manager = manager_of(FakeEnvironment(), OURS)
    store = await store_of(OURS)
    with pytest.raises(StoreReplacedError, match="restored from a copy"):
        await check_store(store, manager.directories, {"/b": MemberNote("", 1, store.revision + 1)})


async def test_a_copy_whose_revisions_went_on_is_refused() -> None:
    """Leases have ended there, and a broker that had seen nothing since is the controller."""
    manager = manager_of(FakeEnvironment(), OURS)
    store = await store_of(OURS)
    await store.txn(then=[Put(WRITES_KEY, b"1 1 1 5")])
    written = store.revision
    for number in range(9):
        await store.txn(then=[Put("x", b"%d" % number)])
    notes = {"/a": MemberNote("", 1, written, writer="1 1", write=written)}
    await check_store(store, manager.directories, notes)
    notes = {"/a": MemberNote("", 1, written + 1, writer="1 1", write=written + 1)}
    with pytest.raises(StoreReplacedError, match="restored from a copy"):
        await check_store(store, manager.directories, notes)


async def test_a_store_that_has_lost_its_incarnation_is_refused() -> None:
    with pytest.raises(NodeStoreError, match=INCARNATION_KEY):
        await incarnation_of(await store_of(None))


def test_directories_of_a_node_that_was_alone_are_refused() -> None:
    environment = FakeEnvironment()
    manager = manager_of(environment, OURS)
    environment.filesystem.replace_bytes(f"/b/{METADATA_FILE}", b"x")
    with pytest.raises(NodeStoreError, match="/b/varve-metadata"):
        check_directories(manager.directories, environment.filesystem)


def test_partitions_of_another_cluster_are_refused() -> None:
    environment = FakeEnvironment()
    manager = manager_of(environment)
    environment.filesystem.mkdir("/b/topic-0")
    with pytest.raises(NodeStoreError, match="/b holds partitions that are not this cluster's"):
        check_directories(manager.directories, environment.filesystem)


def test_a_member_that_has_lost_its_meta_properties_is_led_on() -> None:
    environment = FakeEnvironment()
    manager = manager_of(environment)
    environment.filesystem.mkdir("/b/topic-0")
    write_member_note(environment.filesystem, "/b", MemberNote("", 5, 50))
    with pytest.raises(NodeStoreError, match=r"has lost its meta\.properties.* move the"):
        check_directories(manager.directories, environment.filesystem)


def test_what_was_seen_is_what_the_notes_say() -> None:
    environment = FakeEnvironment()
    manager = manager_of(environment, OURS)
    environment.filesystem.mkdir("/b/topic-0")
    note = MemberNote("", 5, 50)
    write_member_note(environment.filesystem, "/b", note)
    assert check_directories(manager.directories, environment.filesystem) == {"/b": note}
