"""Where a node's metadata store lies when not all directories can be read.

The rest is in `tests/system/disks/test_metadata_store_place.py`, with whole brokers.
"""

from pathlib import Path
from uuid import UUID

import pytest

from broker.controller.images.metadata_records import STORE_KEY, encode_store_identity
from broker.controller.store.metadata_store import Put
from broker.controller.store.sqlite_store import SqliteStore
from broker.node.node_store import NodeStore
from broker.node.store_file import METADATA_FILE, NodeStoreError
from config.broker import BrokerConfig
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import MemberNote, remove_member_note, write_member_note
from storage.checkpoints.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    write_meta_properties,
)
from storage.checkpoints.store_note import StoreNote, read_store_note, write_store_note
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.environment import run_inline
from tests.fakes.timer import ManualTimer

HERE, THERE = UUID(int=1000), UUID(int=1001)


def directory(path: Path, *, store_id: UUID | None = None, offline: bool = False) -> LogDirectory:
    """An opened directory; with `offline` one whose disk has refused."""
    made = LogDirectory(str(path), LocalFilesystem())
    if offline:
        made.go_offline("cannot list")
        return made
    path.mkdir(exist_ok=True)
    if store_id is not None:
        meta = MetaProperties("c", 1, None, {}, store_id)
        write_meta_properties(LocalFilesystem(), str(path / META_PROPERTIES), meta)
        made.meta = meta
    return made


def node(*directories: LogDirectory, node_id: int = 1) -> NodeStore:
    clock = ManualClock()
    return NodeStore(
        BrokerConfig().replace(node_id=node_id),
        directories,
        None,
        Environment(
            clock=clock,
            timer=ManualTimer(clock),
            filesystem=LocalFilesystem(),
            randomness=SeededRandomness(1),
            run_blocking=run_inline,
        ),
    )


async def test_a_directory_that_cannot_be_read_may_hold_the_store(tmp_path: Path) -> None:
    """A new cluster beside it would be one too many; what is not there at all holds nothing."""
    unread = directory(tmp_path / "unread", offline=True)
    (tmp_path / "unread").mkdir()
    fresh = directory(tmp_path / "fresh")
    for work in (node(fresh, unread).open, node(fresh, unread).adopt):
        with pytest.raises(NodeStoreError, match="unread"):
            await work()
    (tmp_path / "unread").rmdir()
    store = await node(fresh, unread).open()
    await store.aclose()


async def test_a_store_in_one_directory_needs_no_other(tmp_path: Path) -> None:
    first = node(directory(tmp_path / "a"))
    await (await first.open()).aclose()
    (tmp_path / "unread").mkdir()
    again = node(directory(tmp_path / "unread", offline=True), directory(tmp_path / "a"))
    await (await again.open()).aclose()
    assert (again.store_id, again.path) == (first.store_id, str(tmp_path / "a" / METADATA_FILE))


async def test_directories_of_two_stores_are_not_adopted_into_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t-0").mkdir()
    one = directory(tmp_path / "a", store_id=HERE)
    other = directory(tmp_path / "b", store_id=THERE)
    with pytest.raises(NodeStoreError, match="different metadata stores"):
        await node(one, other).adopt()
    assert await node(one).adopt() == 1
    made = node(one)
    await (await made.open()).aclose()
    assert made.store_id == HERE


async def test_a_broker_of_a_cluster_has_no_store_to_look_for(tmp_path: Path) -> None:
    """Where `metadata.store` was forgotten, a store of its own would make it lead all alone."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t-0").mkdir()
    member = directory(tmp_path / "a", store_id=HERE)
    filesystem = LocalFilesystem()
    write_member_note(filesystem, member.path, MemberNote("boot", 7, 40, brokers=(1, 2, 3)))
    for work in (node(member).open, node(member).adopt):
        with pytest.raises(NodeStoreError, match=r"a cluster \(brokers 1, 2, 3\)") as caught:
            await work()
        assert "metadata.store has to name it" in str(caught.value)
        assert "varve dirs adopt" not in str(caught.value)
    assert not (tmp_path / "a" / METADATA_FILE).exists()
    # As `varve metadata copy` leaves it, and an operator who knows better.
    remove_member_note(filesystem, member.path)
    assert await node(member).adopt() == 1


async def test_what_is_left_of_a_store_that_was_being_made_is_not_used(tmp_path: Path) -> None:
    fresh = directory(tmp_path / "a")
    half = await SqliteStore.open(str(tmp_path / "a" / f"{METADATA_FILE}.new"), timer=ManualTimer())
    await half.txn(then=[Put("topics/half", b"")])
    await half.aclose()
    store = await node(fresh).open()
    assert [item.key for item in (await store.range("")).items] == [STORE_KEY]
    await store.aclose()


async def test_a_store_older_than_its_directories_is_refused(tmp_path: Path) -> None:
    """A copy from before stores had an id: the directories know of a later one."""
    old = await SqliteStore.open(str(tmp_path / METADATA_FILE), timer=ManualTimer())
    await old.aclose()
    with pytest.raises(NodeStoreError, match="older"):
        await node(directory(tmp_path, store_id=HERE)).open()
    made = node(directory(tmp_path))
    await (await made.open()).aclose()
    assert made.store_id is not None


async def test_a_store_is_of_one_node(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / METADATA_FILE), timer=ManualTimer())
    await store.txn(then=[Put(STORE_KEY, encode_store_identity(HERE, 2))])
    await store.aclose()
    with pytest.raises(NodeStoreError, match="of node 2, this is node 1"):
        await node(directory(tmp_path)).open()
    await (await node(directory(tmp_path), node_id=2).open()).aclose()


async def test_a_store_behind_what_a_directory_has_seen_is_refused(tmp_path: Path) -> None:
    """An older copy, or one without its -wal file; a note of another store says nothing."""
    first = node(directory(tmp_path / "a"))
    store = await first.open()
    revision = store.revision
    await store.aclose()
    assert first.store_id is not None
    disk = LocalFilesystem()
    for note in (StoreNote(THERE, 99), StoreNote(first.store_id, revision)):
        write_store_note(disk, str(tmp_path / "a"), note)
        again = node(directory(tmp_path / "a"))
        await (await again.open()).aclose()
        assert again.noted_revision == (-1 if note.store_id == THERE else revision)
    write_store_note(disk, str(tmp_path / "a"), StoreNote(first.store_id, revision + 1))
    with pytest.raises(NodeStoreError, match="older copy"):
        await node(directory(tmp_path / "a")).open()


async def test_a_store_that_is_made_anew_is_behind_nothing(tmp_path: Path) -> None:
    """`varve dirs adopt`: it has the id of the one that is lost."""
    made = directory(tmp_path / "a", store_id=HERE)
    (tmp_path / "a" / "t-0").mkdir()
    (tmp_path / "a" / "t-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAKg\n"
    )
    write_store_note(LocalFilesystem(), made.path, StoreNote(HERE, 1_000))
    assert await node(made).adopt() == 1
    assert read_store_note(LocalFilesystem(), made.path) is None
    store = await node(made).open()
    await store.aclose()


async def test_a_node_that_begins_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its disk may not be mounted: the line tells such a start from any other."""
    caplog.set_level("INFO")
    path = tmp_path / "data"
    await (await node(directory(path)).open()).aclose()
    begun = [line for line in caplog.messages if "a new node without topics" in line]
    assert begun == [f"log directories are empty: a new node without topics begins in {path}"]
    caplog.clear()
    await (await node(directory(path)).open()).aclose()
    assert not [line for line in caplog.messages if "a new node" in line]
