"""Names, order, and which snapshots are kept, in a directory and in the bucket."""

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import pytest

from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem, PowerCut
from tests.fakes.tiered.scripted_tier import FakeTier
from tiered.errors import ObjectNotFoundError, RemoteStorageError
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.snapshot_store import (
    BucketSnapshotStore,
    LocalSnapshotStore,
    SnapshotName,
    SnapshotStore,
)

T = TypeVar("T")
TOPIC = UUID(int=1)


async def run_here(function: Callable[[], T], /) -> T:
    return function()


def local() -> tuple[LocalSnapshotStore, FakeFilesystem]:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/s")
    filesystem.sync_directory("/")
    return LocalSnapshotStore(filesystem, "/s", run_here), filesystem


@pytest.fixture(params=["local", "bucket"])
def store(request: pytest.FixtureRequest) -> SnapshotStore:
    return local()[0] if request.param == "local" else BucketSnapshotStore(FakeTier(), "c")


def name(offset: int, topic: UUID = TOPIC) -> SnapshotName:
    return SnapshotName.of(topic, offset)


async def test_nothing_there(store: SnapshotStore) -> None:
    assert await store.names(3) == []
    with pytest.raises(ObjectNotFoundError):
        await store.read(3, name(1))


async def test_the_two_newest_are_kept(store: SnapshotStore) -> None:
    for offset in (5, 100, 30_000):
        await store.write(3, name(offset), b"%d" % offset)
    await store.write(4, name(1), b"other")
    assert await store.names(3) == [name(30_000), name(100)]
    assert await store.read(3, name(100)) == b"100"
    assert await store.names(4) == [name(1)]


async def test_those_of_another_history_go(store: SnapshotStore) -> None:
    """Beyond the one just written, or of a topic that is no more."""
    await store.write(3, name(50), b"")
    await store.write(3, name(100), b"")
    await store.write(3, name(70), b"")
    assert await store.names(3) == [name(70), name(50)]
    await store.write(3, name(10, UUID(int=2)), b"")
    assert await store.names(3) == [name(10, UUID(int=2))]


async def test_the_same_again(store: SnapshotStore) -> None:
    await store.write(3, name(50), b"a")
    await store.write(3, name(50), b"b")
    assert await store.names(3) == [name(50)]
    assert await store.read(3, name(50)) == b"b"


async def test_other_files_are_left_alone() -> None:
    store, filesystem = local()
    await store.write(3, name(50), b"a")
    filesystem.replace_bytes("/s/3/notes.txt", b"")
    await store.write(3, name(60), b"b")
    assert await store.names(3) == [name(60), name(50)]
    assert filesystem.exists("/s/3/notes.txt")


async def test_a_disk_that_refuses_is_a_store_that_fails() -> None:
    store, filesystem = local()
    filesystem.fail("write", 28, path="snapshot")
    with pytest.raises(RemoteStorageError):
        await store.write(3, name(50), b"a")


async def test_a_power_cut_leaves_an_old_or_a_new_one() -> None:
    for stop_after in range(40):
        store, filesystem = local()
        await store.write(3, name(10), b"old")
        filesystem.stop_after = filesystem.changes + stop_after
        try:
            await store.write(3, name(20), b"new")
        except PowerCut:
            done = False
        else:
            done = True
        filesystem.crash(KEEP_ALL if stop_after % 2 else None)
        again = LocalSnapshotStore(filesystem, "/s", run_here)
        contents = [await again.read(3, found) for found in await again.names(3)]
        assert contents in ([b"old"], [b"new", b"old"])
        if done:
            assert contents[0] == b"new"
            return
    raise AssertionError("never done")


async def test_keys_in_the_bucket_are_no_segments_keys() -> None:
    tier = FakeTier()
    await BucketSnapshotStore(tier, "cluster").write(3, name(50), b"a")
    (key,) = tier.objects
    assert key == (
        "__remote_log_metadata/cluster/3/AAAAAAAAAAAAAAAAAAAAAQ-00000000000000000050.snapshot"
    )
    assert ObjectKeys().parse(key) is None


def test_names_that_are_not_ours() -> None:
    assert SnapshotName.parse(name(7).file_name) == name(7)
    for text in ("", "x.snapshot", name(7).file_name + ".tmp", name(7).file_name[1:]):
        assert SnapshotName.parse(text) is None
