"""Pages of the metadata topic."""

import pytest

from broker.remote.metadata_pages import page_of
from protocol.errors import DecodeError
from protocol.records.builder import build_batch
from tiered.metadata.log import LogPage

FIRST = bytes(build_batch([(None, b"a", (), 0), (None, b"b", (), 0)], base_offset=4))
SECOND = bytes(build_batch([(None, None, (), 0)], base_offset=6))


def test_records_of_whole_batches_from_an_offset_on() -> None:
    view = memoryview(FIRST + SECOND)
    assert page_of(view, 4) == LogPage([(4, b"a"), (5, b"b"), (6, b"")], 7)
    assert page_of(view, 5) == LogPage([(5, b"b"), (6, b"")], 7)
    assert page_of(view[:-1], 4) == LogPage([(4, b"a"), (5, b"b")], 6)
    assert page_of(memoryview(b""), 4) == LogPage([], 4)


def test_a_damaged_batch_is_an_error() -> None:
    data = bytearray(FIRST)
    data[-1] ^= 1
    with pytest.raises(DecodeError, match="checksum"):
        page_of(memoryview(data), 4)
