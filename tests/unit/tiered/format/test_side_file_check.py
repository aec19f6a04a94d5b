import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints.checkpoint_files import encode_epochs
from tests.fakes.producer_snapshots import encode_snapshot
from tests.unit.tiered.format.closed_segments import metadata
from tiered.errors import CorruptSegmentError
from tiered.format.side_file_check import (
    check_leader_epochs,
    check_producer_snapshot,
    offset_index_entries,
    time_index_entries,
    transaction_index_entries,
)
from tiered.segment_metadata import SegmentEpoch


def test_entries_come_out_absolute() -> None:
    """The base offset is in the file's name only."""
    data = struct.pack(">iiii", 3, 100, 9, 200)
    assert offset_index_entries(data, "p", 1000) == [(1003, 100), (1009, 200)]
    data = struct.pack(">qiqi", 50, 3, 60, 9)
    assert time_index_entries(data, "p", 1000) == [(50, 1003), (60, 1009)]


@pytest.mark.parametrize(
    ("entries", "at"),
    [
        ([(3, 100), (3, 200)], 1),
        ([(3, 100), (4, 100)], 1),
        ([(3, 100), (4, 200), (2, 300)], 2),
        ([(-1, 100)], 0),
        ([(1, -100)], 0),
        # What a file that was not closed ends with.
        ([(3, 100), (0, 0)], 1),
    ],
)
def test_sparse_indexes_must_ascend(entries: list[tuple[int, int]], at: int) -> None:
    """A binary search in one that does not would miss."""
    offsets = b"".join(struct.pack(">ii", *entry) for entry in entries)
    times = b"".join(struct.pack(">qi", *entry) for entry in entries)
    for read, data, size in (
        (offset_index_entries, offsets, 8),
        (time_index_entries, times, 12),
    ):
        with pytest.raises(CorruptSegmentError, match="ascend") as caught:
            read(data, "p", 0)
        assert (caught.value.position, caught.value.rebuildable) == (at * size, True)
        with pytest.raises(CorruptSegmentError, match="left after") as caught:
            read(data[: size - 1], "p", 0)
        assert (caught.value.position, caught.value.rebuildable) == (0, True)


def aborts(*entries: tuple[int, int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", *entry) for entry in entries)


def test_transaction_entries() -> None:
    """A transaction may have begun in an earlier segment."""
    data = aborts((0, 7, 3, 20, 21), (0, 8, 15, 40, 21))
    assert transaction_index_entries(data, "p", metadata(start_offset=10)) == [(7, 20), (8, 40)]
    assert transaction_index_entries(b"", "", metadata()) == []


@pytest.mark.parametrize(
    "data",
    [
        aborts((1, 7, 3, 20, 21)),
        aborts((0, 7, 3, 20, 21), (0, 8, 15, 20, 21)),
        aborts((0, 7, 3, 20, 21), (0, 8, 15, 19, 21)),
        aborts((0, 7, 3, 9, 10)),
        aborts((0, 7, 3, 100, 21)),
        aborts((0, 7, 21, 20, 21)),
        aborts((0, 7, -1, 20, 21)),
        aborts((0, 7, 3, 20, 22)),
        aborts((0, 7, 3, 20, 21), (0, 7, 3, 30, 20)),
        aborts((0, 7, 3, 20, 21))[:-1],
    ],
)
def test_impossible_transaction_entries_are_refused(data: bytes) -> None:
    """They cannot be made again from this segment alone."""
    with pytest.raises(CorruptSegmentError) as caught:
        transaction_index_entries(data, "p", metadata(start_offset=10, end_offset=99))
    assert not caught.value.rebuildable


def test_metadata_must_not_hide_aborts() -> None:
    """Readers skip the index when txnIndexEmpty says so."""
    told = replace(metadata(), txn_index_empty=True)
    assert transaction_index_entries(b"", "", told) == []
    with pytest.raises(CorruptSegmentError, match="says there are none"):
        transaction_index_entries(aborts((0, 7, 3, 20, 21)), "p", told)


@given(st.binary(max_size=200))
def test_snapshots_are_known_by_their_sum(data: bytes) -> None:
    """Any other bytes are refused."""
    check_producer_snapshot(encode_snapshot([]), "p")
    with pytest.raises(CorruptSegmentError):
        check_producer_snapshot(data, "p")


TOLD = replace(
    metadata(start_offset=50, end_offset=99),
    segment_leader_epochs=(SegmentEpoch(2, 50), SegmentEpoch(5, 70)),
)


@pytest.mark.parametrize(
    "entries",
    [
        [(2, 50), (5, 70)],
        [(0, 0), (2, 40), (5, 70)],
        [(0, 0), (2, 40), (5, 70), (6, 100)],
    ],
)
def test_epochs_that_fit(entries: list[tuple[int, int]]) -> None:
    """The checkpoint begins with the log and may end after the segment."""
    assert check_leader_epochs(encode_epochs(entries), TOLD) == 50


def test_epochs_that_were_forgotten() -> None:
    """The first known one begins within the segment; the metadata may let it begin before."""
    data = encode_epochs([(2, 60), (5, 70)])
    assert check_leader_epochs(data, TOLD) == 60
    told = replace(TOLD, segment_leader_epochs=(SegmentEpoch(2, 60), SegmentEpoch(5, 70)))
    assert check_leader_epochs(data, told) == 60


@pytest.mark.parametrize(
    "data",
    [
        encode_epochs([(2, 50)]),
        encode_epochs([(2, 50), (5, 71)]),
        encode_epochs([(3, 50), (5, 70)]),
        encode_epochs([(2, 50), (5, 70), (6, 99)]),
        encode_epochs([(5, 70), (2, 50)]),
        b"",
        b"0\n1\n",
        b"\xff",
    ],
)
def test_epochs_that_do_not_fit(data: bytes) -> None:
    """A follower that is built from them would truncate at the wrong place."""
    with pytest.raises(CorruptSegmentError) as caught:
        check_leader_epochs(data, TOLD)
    assert not caught.value.rebuildable
