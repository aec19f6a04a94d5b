"""The index of aborted transactions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError, DiskError
from storage.index import transaction_index
from storage.index.reads import NOWAIT, WouldBlockError
from storage.index.transaction_index import (
    BLOCK_ENTRIES,
    ENTRY_SIZE,
    KEPT_BLOCKS_MAX,
    AbortedTxn,
    TransactionIndex,
)
from tests.effort import examples
from tests.fakes.filesystem import FakeFile, FakeFilesystem

PATH = "/d/00000000000000000000.txnindex"


@pytest.fixture
def filesystem() -> FakeFilesystem:
    fake = FakeFilesystem()
    fake.mkdir("/d")
    return fake


TXNS = [
    AbortedTxn(1, 0, 10, 5),
    AbortedTxn(2, 5, 15, 13),
    AbortedTxn(1, 20, 21, 13),
    AbortedTxn(3, 13, 35, 36),
]


def filled(filesystem: FakeFilesystem) -> TransactionIndex:
    index = TransactionIndex(PATH, filesystem)
    for txn in TXNS:
        index.append(txn)
    return index


def test_no_file_without_entries(filesystem: FakeFilesystem) -> None:
    """Kafka's tools, and we, take a missing file for an empty one."""
    index = TransactionIndex(PATH, filesystem)
    assert index.collect(0, 100) == ([], False)
    assert index.entries() == []
    index.truncate_to(0)
    index.reset()
    index.sanity_check(0)
    index.flush()
    assert not filesystem.exists(PATH)


def test_bytes_are_kafkas(filesystem: FakeFilesystem) -> None:
    """34 bytes: version, producer id, first, last, last stable offset."""
    TransactionIndex(PATH, filesystem).append(AbortedTxn(258, 3, 4, 5))
    assert filesystem.peek(PATH) == (
        b"\0\0\0\0\0\0\0\0\1\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5"
    )


def test_reopened_index_goes_on(filesystem: FakeFilesystem) -> None:
    """Entries are appended behind those of the last run."""
    filled(filesystem)
    index = TransactionIndex(PATH, filesystem, exists=True)
    index.append(AbortedTxn(9, 40, 41, 42))
    assert TransactionIndex(PATH, filesystem).entries() == [*TXNS, AbortedTxn(9, 40, 41, 42)]


@pytest.mark.parametrize(
    ("start", "end", "producers", "complete"),
    [
        (0, 5, [1], True),
        (0, 11, [1, 2], True),
        (11, 13, [2], True),
        (11, 14, [2, 3], True),
        (16, 36, [1, 3], True),
        (16, 37, [1, 3], False),
        (36, 50, [], False),
    ],
)
def test_collect(
    filesystem: FakeFilesystem, start: int, end: int, producers: list[int], complete: bool
) -> None:
    """Overlaps, and whether a later segment may add some."""
    found, is_complete = filled(filesystem).collect(start, end)
    assert [txn.producer_id for txn in found] == producers
    assert is_complete is complete


@examples(100)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9), st.integers(0, 4)), max_size=30),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_collect_is_a_scan(steps: list[tuple[int, int, int]], start: int, length: int) -> None:
    """The binary search finds what reading every entry finds."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    index = TransactionIndex(PATH, filesystem)
    last = stable = 0
    txns = []
    for step, back, lag in steps:
        last += step
        stable = max(stable, last + 1 - lag)
        txns.append(AbortedTxn(1, max(last - 1 - back, 0), last, stable))
        index.append(txns[-1])
    end = start + length
    expected: list[AbortedTxn] = []
    complete = False
    for txn in txns:
        if txn.last_offset >= start and txn.first_offset < end:
            expected.append(txn)
        if txn.last_stable_offset >= end:
            complete = True
            break
    if length:
        assert index.collect(start, end) == (expected, complete)


@pytest.mark.parametrize(("offset", "left"), [(36, 4), (35, 3), (16, 2), (15, 1), (10, 0), (0, 0)])
def test_truncate(filesystem: FakeFilesystem, offset: int, left: int) -> None:
    """Entries go whose marker lies at the offset or above; appending goes on from there."""
    index = filled(filesystem)
    index.truncate_to(offset)
    assert index.entries() == TXNS[:left]
    index.append(AbortedTxn(4, 50, 51, 52))
    assert index.entry_count == left + 1


@pytest.mark.parametrize("offset", [36, 16, 0, None])
def test_what_was_dropped_does_not_come_back(
    filesystem: FakeFilesystem, offset: int | None
) -> None:
    """No flush syncs an index that has no entries."""
    index = filled(filesystem)
    index.flush()
    for directory in ("/", "/d"):
        filesystem.sync_directory(directory)
    if offset is None:
        index.reset()
        index.sync()
    else:
        index.truncate_to(offset)
    again = TransactionIndex(PATH, filesystem.after_crash())
    assert again.entries() == index.entries()


def test_refused_write_is_not_counted(filesystem: FakeFilesystem) -> None:
    """The next append takes the same place."""
    index = filled(filesystem)
    filesystem.fail("write", path=".txnindex")
    with pytest.raises(DiskError):
        index.append(AbortedTxn(4, 50, 51, 52))
    index.append(AbortedTxn(5, 50, 51, 52))
    assert [txn.producer_id for txn in index.entries()] == [1, 2, 1, 3, 5]


def test_reset_and_delete(filesystem: FakeFilesystem) -> None:
    """Rebuilt from nothing; or gone with its segment."""
    index = filled(filesystem)
    index.reset()
    assert index.entries() == []
    assert not index.may_be_there
    index.append(AbortedTxn(1, 0, 1, 2))
    assert index.may_be_there
    filesystem.rename(PATH, PATH + ".deleted")
    index.path = PATH + ".deleted"
    assert index.entry_count == 1
    index.delete()
    assert filesystem.list_directory("/d") == []


def test_sanity_check_finds_damage(filesystem: FakeFilesystem) -> None:
    """Cut-off entry, version, markers before the segment, markers that do not ascend."""
    filled(filesystem)
    data = filesystem.peek(PATH)
    TransactionIndex(PATH, filesystem).sanity_check(10)
    with pytest.raises(CorruptFileError):
        TransactionIndex(PATH, filesystem).sanity_check(11)
    swapped = data[ENTRY_SIZE:] + data[:ENTRY_SIZE]
    for damaged in (data[:-1], b"\0\1" + data[2:], swapped, data + data):
        filesystem.poke(PATH, damaged)
        with pytest.raises(CorruptFileError):
            TransactionIndex(PATH, filesystem).sanity_check(0)


def test_nothing_stays_open(filesystem: FakeFilesystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tens of thousands of segments must not cost descriptors."""
    opened = []
    original = filesystem.open

    def remember(path: str, *, create: bool = False, readonly: bool = False) -> FakeFile:
        opened.append(original(path, create=create, readonly=readonly))
        return opened[-1]

    monkeypatch.setattr(filesystem, "open", remember)
    index = filled(filesystem)
    index.collect(0, 100)
    index.sanity_check(0)
    assert len(opened) > len(TXNS)
    assert all(file.closed for file in opened)


@examples(60)
@given(st.data())
def test_blocks_that_were_searched_change_no_answer(data: st.DataObject) -> None:
    """Whatever is asked in whatever order, while entries come and go."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_index, "BLOCK_ENTRIES", 4)
        index = TransactionIndex(PATH, filesystem)
        txns: list[AbortedTxn] = []
        offset = stable = 0
        for _ in range(data.draw(st.integers(1, 6))):
            more = []
            for _ in range(data.draw(st.integers(1, 12))):
                offset += data.draw(st.integers(1, 5))
                stable = max(stable, data.draw(st.integers(max(offset - 12, 0), offset + 1)))
                first = data.draw(st.integers(max(offset - 30, 0), offset))
                more.append(AbortedTxn(1, first, offset, stable))
            index.extend(more)
            txns += more
            for _ in range(3):
                start = data.draw(st.integers(0, offset + 2))
                end = start + data.draw(st.integers(1, 40))
                mine = index.collect(start, end)
                fresh = TransactionIndex(PATH, filesystem).collect(start, end)
                assert mine == fresh
                expected = [t for t in txns if t.last_offset >= start and t.first_offset < end]
                if not mine[1]:
                    assert mine[0] == expected
                else:
                    assert mine[0] == expected[: len(mine[0])]
            if data.draw(st.booleans()):
                cut = data.draw(st.integers(0, offset + 1))
                index.truncate_to(cut)
                txns = [t for t in txns if t.last_offset < cut]
                offset = max((t.last_offset for t in txns), default=0)
                stable = txns[-1].last_stable_offset if txns else 0


def test_a_hundred_thousand_aborts_are_searched_once(
    filesystem: FakeFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction was open from offset 50 on all the while; readers are below and above it."""
    index = TransactionIndex(PATH, filesystem)
    index.extend([AbortedTxn(1, n, n + 1, 50) for n in range(100, 200_100, 2)])
    read = FakeFile.read_at
    sizes: list[int] = []

    def counted(file: FakeFile, size: int, position: int) -> bytes:
        sizes.append(size)
        return read(file, size, position)

    monkeypatch.setattr(FakeFile, "read_at", counted)
    assert index.collect(0, 50) == ([], True)
    assert sum(sizes) < 300_000
    assert index.collect(0, 90) == ([], False)
    assert sum(sizes) > 3_000_000
    sizes.clear()
    assert index.collect(0, 90) == ([], False)
    assert sum(sizes) < 40_000


def test_what_was_read_once_stays_in_memory(filesystem: FakeFilesystem) -> None:
    """Every fetch that reads committed asks; also what is appended needs no reading."""
    index = TransactionIndex(PATH, filesystem)
    index.extend([AbortedTxn(1, n, n + 1, 50) for n in range(100, 4_100, 2)])
    reads = filesystem.reads
    assert index.collect(4_000, 4_010, NOWAIT)[0][0].last_offset == 4_001
    index.append(AbortedTxn(2, 4_100, 4_101, 4_102))
    assert index.collect(4_100, 4_110, NOWAIT) == ([AbortedTxn(2, 4_100, 4_101, 4_102)], False)
    assert filesystem.reads == reads
    index.close()
    assert filesystem.loaded_indexes.weight == 0
    with pytest.raises(WouldBlockError):
        index.collect(4_000, 4_010, NOWAIT)
    fresh = TransactionIndex(PATH, filesystem)
    assert fresh.collect(4_000, 4_010)[0][0].last_offset == 4_001
    reads = filesystem.reads
    assert fresh.collect(4_002, 4_010, NOWAIT)[0][0].last_offset == 4_003
    fresh.truncate_to(4_050)
    assert fresh.collect(4_050, 5_000, NOWAIT) == ([], False)


def test_what_is_kept_of_one_index_is_bounded(filesystem: FakeFilesystem) -> None:
    index = TransactionIndex(PATH, filesystem)
    index.extend([AbortedTxn(1, n, n + 1, 50) for n in range(100, 200_100, 2)])
    assert index.collect(0, 150_000)[1] is False
    assert filesystem.loaded_indexes.weight <= KEPT_BLOCKS_MAX * BLOCK_ENTRIES * ENTRY_SIZE
