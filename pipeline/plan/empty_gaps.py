"""Gaps between a bucket's segments that are no loss: the log had no record there.

    local log   [ records ][ no record ][ no record ][ records ]       compaction, then tiering
    bucket      [ copied  ]                          [ copied  ]       emptyFrom ─┐
    gap                    └─────────────────────────┘ <──────────────────────────┘

Segments without a record are not copied. The copier of the next one has recorded in its
manifest from where on there was nothing; only that makes a gap an empty one. That no object is
found proves nothing.
"""

from collections.abc import Iterable

from pipeline.plan.bucket import Bucket
from pipeline.plan.in_parallel import in_parallel
from pipeline.plan.layout import Gap, LaidSegment, Layout
from pipeline.plan.listing import KEYS
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.manifest import MANIFEST_BYTES_MAX, SegmentManifest


async def without_empty_gaps(bucket: Bucket, layout: Layout) -> Layout:
    """The same log; with only those gaps, or parts of them, that are not known to be empty.

    That costs a request a gap.

    Raises:
        RemoteStorageError: The store cannot be read now.
    """
    if not layout.gaps:
        return layout
    behind = {one.start_offset: one for one in layout.segments}
    pairs = [(gap, behind[gap.end]) for gap in layout.gaps]

    async def shorten(pair: tuple[Gap, LaidSegment]) -> Gap:
        gap, following = pair
        return Gap(gap.start, min(gap.end, await _empty_from(bucket, following)))

    gaps: Iterable[Gap] = await in_parallel(pairs, shorten)
    return layout._replace(gaps=tuple(gap for gap in gaps if gap.start < gap.end))


async def _empty_from(bucket: Bucket, segment: LaidSegment) -> int:
    """Where what is known to be empty before a segment begins; its start where nothing is."""
    start = segment.metadata.start_offset
    key = KEYS.segment_keys(segment.metadata).manifest
    try:
        data = await bucket.store.get(key, max_bytes=MANIFEST_BYTES_MAX)
        empty_from = SegmentManifest.from_json(data, key).empty_from
    except (ObjectNotFoundError, CorruptRemoteDataError):
        empty_from = None
    if empty_from is None or segment.start_offset != start:
        return segment.start_offset
    return empty_from
