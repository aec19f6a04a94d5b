"""Range of a remote segment's bytes that answers a read.

    log    |-----|---------|----*----|-------|------|------|
                           ^ position               ^ end
                                * offset wanted
           [---- index entry says: start here]

The first batch that reaches the offset is found from the greatest index entry at or below it, by
walking batch headers. The end is the last batch boundary within `max_bytes` that the index knows,
or that walking finds if it knows none; the segment's end; or where its lineage is left.

What is not in the cache does not hold up what is: if half of what was wanted is here, it is enough.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from storage.errors import CorruptFileError
from storage.index.batch_scan import read_batch_header, scan_headers
from tiered.fetch.segment_view import ChunkMissingError, SegmentView
from tiered.format.chunk_file import ChunkKey

CHUNKS_MAX: Final = 8
"""Requested at a time by one read: more would fill the queue for all readers."""

CHUNKS_HELD_MAX: Final = 256
"""Of one read, unless a single batch lies in more: each is an open file until the answer is sent,
and segments from elsewhere may be cut into chunks of a few bytes."""


class Range(NamedTuple):
    """What to answer, or what must come first.

    Attributes:
        position: Where the first batch begins, as far as that is known.
        end: Where the last one ends; `position` if the first is larger than allowed.
        end_offset: Above all offsets in between; may be a little too great.
        missing: Chunks that must come before anything can be answered, the first of them; empty
            when something can.
    """

    position: int
    end: int
    end_offset: int
    missing: list[int]


def find_range(
    view: SegmentView,
    offset: int,
    valid_offset: int,
    max_bytes: int,
    min_one_batch: bool,
    failed: Mapping[Any, Exception],
) -> Range | None:
    """See the module.

    Args:
        view: Of the segment.
        offset: Wanted; within the segment.
        valid_offset: From here on the segment is of another history; exclusive.
        max_bytes: Most bytes.
        min_one_batch: The first batch may be larger.
        failed: Chunks (by `ChunkKey`) that will not come: less is enough then.

    Returns:
        None when the segment has no batch for this offset.

    Raises:
        CorruptFileError: The indexes do not fit the log.
    """
    segment = view.segment
    position = segment.hints.get(offset, -1)
    try:
        if position < 0:
            position = position_of(view, offset)
        end = view.log_bytes
        if valid_offset <= segment.metadata.end_offset:
            end = position_of(view, valid_offset, below=position + max_bytes)
        if position >= end:
            return None
        limit = min(position + max_bytes, end)
        wanted = min(limit, position + CHUNKS_HELD_MAX * view.chunk_bytes)
        here = view.cached_end(position, wanted)
        next_chunk = ChunkKey(segment.metadata.id, here // view.chunk_bytes)
        if here - position < (wanted - position) // 2 and next_chunk not in failed:
            return Range(position, position, offset, view.missing(position, wanted)[:CHUNKS_MAX])
        return _whole_batches(view, position, here, limit, end, valid_offset, min_one_batch)
    except ChunkMissingError as missing:
        at = missing.position if position < 0 else position
        ahead = min(max_bytes, CHUNKS_MAX * view.chunk_bytes)
        also = view.missing(at, min(at + ahead, view.log_bytes))
        return Range(at, at, offset, sorted({missing.chunk, *also[:CHUNKS_MAX]}))


def position_of(view: SegmentView, offset: int, below: int | None = None) -> int:
    """Where the first batch begins that reaches `offset`; the end of the log without one.

    Args:
        view: Of the segment.
        offset: The one to find.
        below: A position from here on need not be exact: any such one will do.

    Raises:
        ChunkMissingError: A header is not here.
        CorruptFileError: The index leads astray.
    """
    metadata = view.segment.metadata
    relative = offset - metadata.start_offset
    if relative <= 0:
        return 0
    start = view.segment.indexes.lookup(relative)
    if below is not None and start >= below:
        return start
    end = start
    for position, header in scan_headers(view, start, view.log_bytes):
        if position == start and not metadata.start_offset <= header.base_offset <= (
            offset if start else metadata.end_offset
        ):
            raise CorruptFileError(f"offset index of {view.path} names another batch")
        if header.base_offset + header.last_offset_delta >= offset:
            return position
        end = position + header.size
        if below is not None and end >= below:
            return end
    if end != view.log_bytes:
        raise CorruptFileError(f"no batch at {end} of {view.path}")
    return end


def _whole_batches(
    view: SegmentView,
    position: int,
    here: int,
    limit: int,
    end: int,
    valid_offset: int,
    min_one_batch: bool,
) -> Range:
    """Batches from `position` that are whole within `here`; all of it, if that is `end`."""
    if here == end:
        return Range(position, end, valid_offset, [])
    segment = view.segment
    last = segment.indexes.last_position_up_to(here)
    if last > position:
        return _up_to(view, position, last, valid_offset)
    last = position
    end_offset = valid_offset
    for at, header in scan_headers(view, position, view.log_bytes):
        stop = at + header.size
        if stop > here:
            if at > position:
                end_offset = header.base_offset
                break
            # Not even the first batch is within it.
            if stop > limit and not min_one_batch:
                return Range(position, position, header.base_offset, [])
            missing = view.missing(position, stop)[:CHUNKS_MAX]
            if stop < view.log_bytes:
                segment.remember(header.next_offset, stop)
            return Range(position, stop, header.next_offset, missing)
        last = stop
        end_offset = header.next_offset
        if stop == here:
            break
    if last == position:
        raise CorruptFileError(f"no batch at {position} of {view.path}")
    if last < view.log_bytes:
        view.segment.remember(end_offset, last)
    return Range(position, last, min(end_offset, valid_offset), [])


def _up_to(view: SegmentView, position: int, last: int, valid_offset: int) -> Range:
    """End before the batch at `last`; a reader will ask for it next."""
    segment = view.segment
    if view.file(last // view.chunk_bytes) is not None:
        try:
            header = read_batch_header(view, last, view.log_bytes)
        except ChunkMissingError:
            header = None
        else:
            if header is None:
                raise CorruptFileError(f"no batch at {last} of {view.path}")
        if header is not None:
            segment.remember(header.base_offset, last)
            return Range(position, last, min(header.base_offset, valid_offset), [])
    relative = segment.indexes.upper_bound(last)
    end_offset = segment.metadata.end_offset + 1
    if relative is not None:
        end_offset = segment.metadata.start_offset + relative
    return Range(position, last, min(end_offset, valid_offset), [])
