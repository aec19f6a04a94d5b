"""Leader epochs of a partition."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.errors import DiskError
from tests.effort import examples
from tests.fakes.filesystem import FakeFilesystem

PATH = "/d/leader-epoch-checkpoint"


@pytest.fixture
def filesystem() -> FakeFilesystem:
    fake = FakeFilesystem()
    fake.mkdir("/d")
    return fake


@pytest.fixture
def cache(filesystem: FakeFilesystem) -> LeaderEpochCache:
    """Epochs 1, 2 and 4 wrote; 3 wrote nothing."""
    cache = LeaderEpochCache(PATH, filesystem)
    cache.assign(1, 10)
    cache.assign(2, 20)
    cache.assign(4, 30)
    return cache


def test_file_is_kafkas(cache: LeaderEpochCache, filesystem: FakeFilesystem) -> None:
    """Version, count, `epoch start`, each line ended."""
    assert filesystem.peek(PATH) == b"0\n3\n1 10\n2 20\n4 30\n"
    assert LeaderEpochCache(PATH, filesystem).entries() == cache.entries()


def test_first_assignment_of_an_epoch_stays(
    cache: LeaderEpochCache, filesystem: FakeFilesystem
) -> None:
    """Repeating the latest epoch costs no write."""
    before = filesystem.changes
    cache.assign(4, 30)
    cache.assign(4, 45)
    assert cache.entries()[-1] == (4, 30)
    assert filesystem.changes == before


def test_new_log_begins_without_waiting_for_the_disk(filesystem: FakeFilesystem) -> None:
    """The first append of that epoch then writes nothing; a log with epochs keeps them."""
    filesystem.fail("sync", times=9)
    filesystem.fail("sync_directory", times=9)
    cache = LeaderEpochCache(PATH, filesystem)
    cache.begin(3)
    before = filesystem.changes
    cache.assign(3, 0)
    cache.begin(4)
    assert filesystem.changes == before
    assert filesystem.peek(PATH) == b"0\n1\n3 0\n"
    assert LeaderEpochCache(PATH, filesystem).entries() == [(3, 0)]


@pytest.mark.parametrize(
    ("epoch", "start", "entries"),
    [
        (5, 40, [(1, 10), (2, 20), (4, 30), (5, 40)]),
        (5, 30, [(1, 10), (2, 20), (5, 30)]),
        (5, 20, [(1, 10), (5, 20)]),
        (4, 25, [(1, 10), (2, 20), (4, 25)]),
        (3, 50, [(1, 10), (2, 20), (3, 50)]),
        (2, 50, [(1, 10), (2, 50)]),
        (9, 5, [(9, 5)]),
    ],
)
def test_contradicting_entries_go(
    cache: LeaderEpochCache, epoch: int, start: int, entries: list[tuple[int, int]]
) -> None:
    """Epochs and offsets ascend, whatever is assigned."""
    cache.assign(epoch, start)
    assert cache.entries() == entries


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (1, (1, 20)),
        (2, (2, 30)),
        (3, (2, 30)),
        (4, (4, 99)),
        (5, (-1, -1)),
    ],
)
def test_end_offset(cache: LeaderEpochCache, epoch: int, expected: tuple[int, int]) -> None:
    """OffsetForLeaderEpoch's answers."""
    assert cache.end_offset_for(epoch, 99) == expected


def test_end_offset_without_epochs(filesystem: FakeFilesystem) -> None:
    """Nothing known, nothing told."""
    assert LeaderEpochCache(PATH, filesystem).end_offset_for(0, 99) == (-1, -1)


@pytest.mark.parametrize(
    ("offset", "epoch"), [(9, None), (10, 1), (19, 1), (20, 2), (29, 2), (30, 4), (1000, 4)]
)
def test_epoch_for_offset(cache: LeaderEpochCache, offset: int, epoch: int | None) -> None:
    """The epoch that began at the offset or last before it."""
    assert cache.epoch_for_offset(offset) == epoch


def test_neighbours(cache: LeaderEpochCache) -> None:
    """The epoch above, known or not."""
    assert [cache.next_epoch(epoch) for epoch in (0, 1, 2, 3, 4)] == [1, 2, 4, 4, None]
    assert cache.start_offset_of(2) == 20
    assert cache.start_offset_of(3) is None


@pytest.mark.parametrize(
    ("end", "entries"),
    [
        (31, [(1, 10), (2, 20), (4, 30)]),
        (30, [(1, 10), (2, 20)]),
        (11, [(1, 10)]),
        (10, []),
        (0, []),
    ],
)
@pytest.mark.parametrize("loaded", [True, False])
def test_truncate_from_end(
    cache: LeaderEpochCache,
    filesystem: FakeFilesystem,
    end: int,
    entries: list[tuple[int, int]],
    loaded: bool,
) -> None:
    """Epochs that begin at the end or later go; also when asked before the file was read."""
    if not loaded:
        cache = LeaderEpochCache(PATH, filesystem)
    cache.truncate_from_end(end)
    assert cache.entries() == entries
    assert LeaderEpochCache(PATH, filesystem).entries() == entries


@pytest.mark.parametrize(
    ("start", "entries"),
    [
        (5, [(1, 10), (2, 20), (4, 30)]),
        (10, [(1, 10), (2, 20), (4, 30)]),
        (15, [(1, 15), (2, 20), (4, 30)]),
        (20, [(2, 20), (4, 30)]),
        (35, [(4, 35)]),
    ],
)
@pytest.mark.parametrize("loaded", [True, False])
def test_truncate_from_start(
    cache: LeaderEpochCache,
    filesystem: FakeFilesystem,
    start: int,
    entries: list[tuple[int, int]],
    loaded: bool,
) -> None:
    """The epoch that holds the start offset stays, and begins there; the file waits."""
    before = filesystem.changes
    if not loaded:
        cache = LeaderEpochCache(PATH, filesystem)
    cache.truncate_from_start(start)
    assert cache.entries() == entries
    assert filesystem.changes == before
    cache.assign(9, 90)
    assert LeaderEpochCache(PATH, filesystem).entries() == [*entries, (9, 90)]


def test_entries_in_range(cache: LeaderEpochCache) -> None:
    """What a copied segment's checkpoint holds (KIP-405)."""
    assert cache.entries_in_range(15, 30) == [(1, 15), (2, 20)]
    assert cache.entries_in_range(0, 100) == [(1, 10), (2, 20), (4, 30)]
    assert cache.entries_in_range(30, 31) == [(4, 30)]


def test_nothing_is_read_before_it_is_needed(filesystem: FakeFilesystem) -> None:
    """Thousands of partitions open without reading their epochs."""
    filesystem.poke(PATH, b"0\n1\n7 0\n")
    filesystem.fail("read")
    cache = LeaderEpochCache(PATH, filesystem)
    cache.truncate_from_end(100)
    cache.truncate_from_start(0)
    filesystem.heal()
    assert cache.latest_epoch == 7


@pytest.mark.parametrize(
    "data",
    [b"1\n0\n", b"0\n2\n1 1\n", b"0\n1\nx 1\n", b"\xff", b"0\n1\n1\n", b"0\n2\n0 0\n1 1"],
)
def test_damage_starts_over(filesystem: FakeFilesystem, data: bytes) -> None:
    """A damaged checkpoint is as good as none, and the log is told."""
    filesystem.poke(PATH, data)
    cache = LeaderEpochCache(PATH, filesystem)
    assert cache.entries() == []
    assert cache.is_damaged
    cache.replace([(3, 0), (5, 9)])
    assert not cache.is_damaged
    assert LeaderEpochCache(PATH, filesystem).entries() == [(3, 0), (5, 9)]


@examples(100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["assign", "end", "start"]), st.integers(0, 6), st.integers(0, 40)
        ),
        max_size=25,
    )
)
def test_state_is_consistent_and_on_disk(steps: list[tuple[str, int, int]]) -> None:
    """Both columns ascend strictly, every answer agrees with a scan, opening gives the same."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    cache = LeaderEpochCache(PATH, filesystem)
    log_start = 0
    for act, epoch, offset in steps:
        log_start = max(log_start, offset) if act == "start" else min(log_start, offset)
        if act == "assign":
            cache.assign(epoch, offset)
            assert cache.latest_epoch is not None
            assert cache.latest_epoch >= epoch
        elif act == "end":
            cache.truncate_from_end(offset)
        else:
            cache.truncate_from_start(offset)
        entries = cache.entries()
        for (epoch_a, start_a), (epoch_b, start_b) in pairwise(entries):
            assert epoch_a < epoch_b
            assert start_a < start_b
        for probe in range(42):
            holding = [e for e, s in entries if s <= probe]
            assert cache.epoch_for_offset(probe) == (holding[-1] if holding else None)
        reopened = LeaderEpochCache(PATH, filesystem)
        reopened.truncate_from_start(log_start)
        assert reopened.entries() == entries


def test_crash_leaves_the_old_or_the_new_epochs(filesystem: FakeFilesystem) -> None:
    """The checkpoint is replaced as a whole, whatever was written when the power went."""
    filesystem.sync_directory("/")
    LeaderEpochCache(PATH, filesystem).assign(1, 10)
    seen: set[tuple[tuple[int, int], ...]] = set()

    def observe(_event: object) -> None:
        for keep in (None, "all", Random(len(seen))):
            disk = filesystem.after_crash(keep)
            seen.add(tuple(LeaderEpochCache(PATH, disk).entries()))

    filesystem.observer = observe
    LeaderEpochCache(PATH, filesystem).assign(2, 20)
    assert seen == {((1, 10),), ((1, 10), (2, 20))}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([(0, 0)], [(0, 0), (1, 10), (2, 20), (4, 30)]),
        ([(0, 0), (1, 5)], [(0, 0), (1, 5), (2, 20), (4, 30)]),
        ([(0, 0), (1, 5), (2, 20), (4, 30)], [(0, 0), (1, 5), (2, 20), (4, 30)]),
        ([(0, 0), (3, 5)], [(0, 0), (1, 10), (2, 20), (4, 30)]),
        ([(1, 10)], None),
        ([(2, 3)], None),
        ([], None),
    ],
)
def test_what_came_before_is_learnt_from_remote_storage(
    cache: LeaderEpochCache,
    filesystem: FakeFilesystem,
    entries: list[tuple[int, int]],
    expected: list[tuple[int, int]] | None,
) -> None:
    """Only from before the first known epoch, and nothing that contradicts it."""
    before = cache.entries()
    assert cache.extend_back(entries) is (expected is not None)
    assert cache.entries() == (expected or before)
    assert LeaderEpochCache(PATH, filesystem).entries() == cache.entries()


def test_an_empty_cache_learns_nothing(filesystem: FakeFilesystem) -> None:
    """There is nothing to say where the remote part would end."""
    assert not LeaderEpochCache(PATH, filesystem).extend_back([(0, 0)])


def test_an_epoch_begun_in_memory_is_written_by_the_next_flush(
    cache: LeaderEpochCache, filesystem: FakeFilesystem
) -> None:
    """A broker that takes over a thousand partitions does not wait for a thousand files."""
    before = LeaderEpochCache(PATH, filesystem).entries()
    cache.begin_in_memory(7, 70)
    assert cache.latest_epoch == 7
    assert LeaderEpochCache(PATH, filesystem).entries() == before
    ticket = cache.to_be_written()
    assert ticket is not None
    ticket.write()
    ticket.ended(failed=False)
    assert LeaderEpochCache(PATH, filesystem).entries() == cache.entries()
    assert cache.to_be_written() is None


def test_epochs_that_have_changed_meanwhile_are_not_put_in_place(
    cache: LeaderEpochCache, filesystem: FakeFilesystem
) -> None:
    """A thread may be slower than a truncation."""
    cache.begin_in_memory(7, 70)
    ticket = cache.to_be_written()
    assert ticket is not None
    cache.truncate_from_end(70)
    cache.assign(8, 65)
    ticket.write()
    ticket.ended(failed=False)
    assert LeaderEpochCache(PATH, filesystem).entries() == cache.entries()
    assert cache.to_be_written() is not None


def test_epochs_whose_flush_has_failed_are_written_by_the_next(cache: LeaderEpochCache) -> None:
    cache.begin_in_memory(7, 70)
    ticket = cache.to_be_written()
    assert ticket is not None
    ticket.ended(failed=True)
    assert cache.to_be_written() is not None


def test_a_begun_epoch_is_not_begun_twice(cache: LeaderEpochCache) -> None:
    cache.begin_in_memory(7, 70)
    assert cache.to_be_written() is not None
    cache.begin_in_memory(7, 80)
    assert cache.to_be_written() is None
    assert cache.start_offset_of(7) == 70


@pytest.mark.parametrize("is_left_to_the_caller", [False, True])
def test_what_was_taken_back_leaves_the_file_with_the_next_assignment(
    cache: LeaderEpochCache, filesystem: FakeFilesystem, is_left_to_the_caller: bool
) -> None:
    """Also with that of the epoch before it, which the file has: and no second time."""
    before = filesystem.changes
    cache.forget_from_end(30)
    assert (cache.latest_epoch, filesystem.changes) == (2, before)
    if is_left_to_the_caller:
        assert cache.assign_unsaved(2, 30) == b"0\n2\n1 10\n2 20\n"
        assert cache.assign_unsaved(2, 30) is None
        return
    filesystem.fail("write")
    with pytest.raises(DiskError):
        cache.assign(2, 30)
    filesystem.heal()
    cache.assign(2, 30)
    assert filesystem.peek(PATH) == b"0\n2\n1 10\n2 20\n"
    before = filesystem.changes
    cache.assign(2, 31)
    assert filesystem.changes == before
