"""The map in memory: its history and its buffers are bounded, and cut between revisions."""

import pytest

from broker.controller.store.keyspace import Keyspace
from broker.controller.store.metadata_store import CompactedError, Put


def write(keyspace: Keyspace, *keys: str) -> None:
    stage = keyspace.stage()
    stage.txn([], [Put(key, b"") for key in keys], [])
    keyspace.apply(stage)


def test_history_is_cut_between_revisions() -> None:
    """Half of a transaction is never readable; the cut is where reads and watches are refused."""
    keyspace = Keyspace(history_events_max=5)
    for number in range(4):
        write(keyspace, f"{number}/a", f"{number}/b")
    # Eight events of revisions 2 to 5; five fit, so revisions 2 and 3 had to go.
    assert keyspace.compacted_revision == 3
    assert len(keyspace.range("", revision=4).items) == 6
    assert len(keyspace.range("", revision=3).items) == 4
    with pytest.raises(CompactedError):
        keyspace.range("", revision=2)


async def test_watch_of_the_past_needs_whole_history() -> None:
    """From the first revision that is still whole on it works, one before it does not."""
    keyspace = Keyspace(history_events_max=5)
    for number in range(4):
        write(keyspace, f"{number}/a", f"{number}/b")
    watch = keyspace.watch("", 4)
    items = [await anext(watch) for _ in range(2)]
    assert [(item.revision, len(item.events)) for item in items] == [(4, 2), (5, 2)]
    with pytest.raises(CompactedError):
        await anext(keyspace.watch("", 3))


async def test_buffer_of_a_watcher_is_bounded() -> None:
    """It gets what fitted, then the error."""
    keyspace = Keyspace(watch_buffer_max=2)
    watch = keyspace.watch("", 0)
    for key in ("a", "b", "c", "d"):
        write(keyspace, key)
    assert [(await anext(watch)).events[0].key for _ in range(2)] == ["a", "b"]
    with pytest.raises(CompactedError):
        await anext(watch)
    assert not keyspace._watches


def test_dropped_stage_leaves_no_trace() -> None:
    """What could not be made durable was never there."""
    keyspace = Keyspace()
    write(keyspace, "a")
    stage = keyspace.stage()
    stage.txn([], [Put("a", b"new"), Put("b", b"new")], [])
    stage.grant(1000)
    item = keyspace.get("a")
    assert item is not None
    assert item.value == b""
    assert keyspace.get("b") is None
    assert keyspace.revision == 2
    assert keyspace.leases == {}


def test_stage_sees_its_own_changes() -> None:
    """Transactions that share a commit run as if one after the other."""
    keyspace = Keyspace()
    stage = keyspace.stage()
    stage.txn([], [Put("a", b"1")], [])
    stage.txn([], [Put("a", b"2")], [])
    keyspace.apply(stage)
    item = keyspace.get("a")
    assert item is not None
    assert (item.version, item.create_revision, item.mod_revision) == (2, 2, 3)
    assert keyspace.revision == 3


def test_history_is_bounded_in_bytes() -> None:
    """A few changes of topics with ten thousand partitions are as much as all there may be."""
    keyspace = Keyspace(history_bytes_max=10_000)
    for number in range(100):
        stage = keyspace.stage()
        stage.txn([], [Put("topic", bytes(1_000)), Put(f"{number}", b"")], [])
        keyspace.apply(stage)
        assert keyspace.history_bytes <= 10_000
    assert 0 < keyspace.history_events < 20
    # One that is larger by itself is not remembered; what is there now is not concerned.
    stage = keyspace.stage()
    stage.txn([], [Put("topic", bytes(20_000))], [])
    keyspace.apply(stage)
    assert (keyspace.history_events, keyspace.history_bytes) == (0, 0)
    assert keyspace.compacted_revision == keyspace.revision
    assert len(keyspace.range("", keyspace.revision).items) == 101
    with pytest.raises(CompactedError):
        keyspace.range("", keyspace.revision - 1)
