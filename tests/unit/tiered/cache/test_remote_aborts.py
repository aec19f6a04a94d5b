"""Aborted transactions in memory, compared with the index of the local log."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError
from storage.index.transaction_index import AbortedTxn, TransactionIndex
from tests.fakes.filesystem import FakeFilesystem
from tiered.cache.remote_aborts import RemoteAborts


def _pack(*entries: AbortedTxn) -> bytes:
    return b"".join(pack(">hqqqq", 0, *entry) for entry in entries)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5)), max_size=12),
    st.integers(0, 120),
    st.integers(0, 120),
)
def test_collects_what_the_local_index_does(
    steps: list[tuple[int, int, int]], start: int, length: int
) -> None:
    filesystem = FakeFilesystem()
    index = TransactionIndex("x.txnindex", filesystem)
    last, stable, entries = 0, 0, []
    for producer, size, lag in steps:
        last += size
        stable = max(stable, last - lag)
        entries.append(AbortedTxn(producer, max(last - size * 2, 0), last, stable))
        index.append(entries[-1])
    aborts = RemoteAborts.parse(_pack(*entries), 0, last)
    found, complete = index.collect(start, start + length)
    expected = [(txn.producer_id, txn.first_offset) for txn in found]
    assert aborts.collect(start, start + length, last + 1) == (expected, complete)
    assert len(aborts) == len(entries)


def test_no_file_is_no_transactions() -> None:
    assert RemoteAborts.parse(b"", 0, 10).collect(0, 100, 11) == ([], False)


def test_markers_of_another_history_do_not_count() -> None:
    aborts = RemoteAborts.parse(
        _pack(AbortedTxn(1, 2, 10, 5), AbortedTxn(2, 5, 20, 21), AbortedTxn(3, 15, 30, 31)), 0, 40
    )
    assert aborts.collect(0, 12, 41) == ([(1, 2), (2, 5)], True)
    assert aborts.collect(0, 12, 21) == ([(1, 2), (2, 5)], True)
    assert aborts.collect(0, 12, 20) == ([(1, 2)], False)


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        _pack(AbortedTxn(1, 5, 4, 5)),
        _pack(AbortedTxn(1, 0, 99, 5)),
        _pack(AbortedTxn(1, 0, 5, 5), AbortedTxn(1, 0, 5, 5)),
        b"\x00\x09" + _pack(AbortedTxn(1, 0, 5, 5))[2:],
    ],
)
def test_what_cannot_be_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        RemoteAborts.parse(data, 0, 50)


@given(st.binary(max_size=200))
def test_hostile_bytes_are_refused_or_harmless(data: bytes) -> None:
    try:
        aborts = RemoteAborts.parse(data, 0, 50)
    except CorruptFileError:
        return
    aborts.collect(0, 51, 51)
