"""A set of indexes: held on the disk while it is needed, and where readers will go on."""

from array import array
from uuid import UUID

import pytest

from tests.unit.tiered.format.closed_segments import metadata
from tiered.cache import remote_segment
from tiered.cache.index_files import RemoteIndexes
from tiered.cache.remote_aborts import RemoteAborts
from tiered.cache.remote_segment import IndexesEvictedError, RemoteSegment, StoredSet
from tiered.format.manifest_layout import SegmentLayout


def _segment() -> tuple[StoredSet, RemoteSegment]:
    stored = StoredSet(UUID(int=1), "/i/0_x", 100)
    layout = SegmentLayout(256, 1000)
    indexes = RemoteIndexes(layout, array("i"), array("i"), RemoteAborts([]), 100)
    segment = RemoteSegment(stored, metadata(), indexes)
    stored.remote = segment
    return stored, segment


def test_hints_are_bounded() -> None:
    _, segment = _segment()
    for offset in range(100):
        segment.remember(offset, offset * 10)
        segment.remember(offset, offset * 10)
    assert len(segment.hints) == remote_segment.HINTS_MAX
    assert segment.hints[99] == 990
    assert 0 not in segment.hints


def test_what_is_pinned_is_counted_and_what_is_gone_cannot_be() -> None:
    stored, segment = _segment()
    segment.pin()
    segment.pin()
    assert stored.pins == 2
    segment.unpin()
    assert stored.pins == 1
    stored.evicted = True
    with pytest.raises(IndexesEvictedError):
        segment.pin()
    assert stored.pins == 1


def test_memory_is_freed_and_readers_go_on() -> None:
    stored, segment = _segment()
    stored.release()
    assert stored.remote is None
    assert segment.chunk_length(3) == 232
    assert segment.manifest_path == "/i/0_x.manifest"
