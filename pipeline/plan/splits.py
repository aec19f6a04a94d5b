"""Cutting ranges of offsets into pieces that tasks read.

A segment that is larger than a piece may be is cut where its offset index has entries. An entry
knows a batch's position and its last offset, so a cut is behind that batch, and the later piece
begins with a batch of which it gives no row:

    log       [batch][batch][batch with an entry][batch] ...[entry] ...
    earlier    ........................ rows    |                 ^ end position
    later             position ^                | rows ...
                                 cut: the batch's last offset + 1

Without entries there is nothing to cut at: the segment is one piece. Most records of a piece is
another matter: cuts may then be anywhere, and neighbours read the same bytes.

Limits are Spark's: a piece has at most so many bytes and records; if all together are fewer than
`min_partitions`, pieces are made smaller.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pipeline.plan.aborts import NONE_ABORTED, AbortedTransactions, read_aborts
from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import PlanError
from pipeline.plan.in_parallel import PARTITIONS_AT_A_TIME, in_parallel
from pipeline.plan.layout import LaidSegment
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import PartitionName, RemotePiece
from pipeline.plan.segment_index import SegmentIndex, read_segment_index

MAX_PARTITION_BYTES: Final = 128 * 1024 * 1024

PIECES_MAX: Final = 1_000_000
"""Most pieces of one plan."""


class SplitLimits(NamedTuple):
    """Limits of pieces.

    Attributes:
        max_partition_bytes: Of the log, before compression and encryption.
        min_partitions: At least so many pieces of all ranges, as far as indexes allow.
        max_records: Offsets in a piece.
    """

    max_partition_bytes: int = MAX_PARTITION_BYTES
    min_partitions: int | None = None
    max_records: int | None = None


NO_LIMITS: Final = SplitLimits()
"""But that of bytes."""


class OffsetRange(NamedTuple):
    """Offsets wanted of a partition, exclusive end.

    Attributes:
        log: Whose.
        start, end: Which.
        aborted: Aborted transactions of them, where they are known; None: they are read.
    """

    log: PartitionLog
    start: int
    end: int
    aborted: AbortedTransactions | None = None


class _Part(NamedTuple):
    """The part of a range that a segment gives."""

    laid: LaidSegment
    start: int
    end: int


async def pieces(
    bucket: Bucket,
    log: PartitionLog,
    start: int,
    end: int,
    *,
    read_committed: bool,
    max_partition_bytes: int = MAX_PARTITION_BYTES,
    max_records: int | None = None,
) -> list[RemotePiece]:
    """One range as pieces, ascending; see `plan_pieces`."""
    limits = SplitLimits(max_partition_bytes, None, max_records)
    return await plan_pieces(
        bucket, [OffsetRange(log, start, end)], limits, read_committed=read_committed
    )


async def plan_pieces(
    bucket: Bucket,
    ranges: Sequence[OffsetRange],
    limits: SplitLimits = NO_LIMITS,
    *,
    read_committed: bool,
) -> list[RemotePiece]:
    """Ranges as pieces, in the order of the ranges and of their offsets.

    What the bucket does not have of a range is not in them (`PartitionLog.missing` has it). For
    rows that are committed a range must not go beyond the stable end.

    Raises:
        PlanError: They would be more than `PIECES_MAX`.
        DamagedBucketError: An index is not one.
        ObjectNotFoundError: A segment was removed meanwhile: read the partition's log again.
        RemoteStorageError: The store cannot be read, or a key pair is missing.
    """
    parts = [[*_parts(one)] for one in ranges]
    size_limit = limits.max_partition_bytes
    if limits.min_partitions is not None:
        total = sum(_bytes(part) for of_range in parts for part in of_range)
        size_limit = min(size_limit, total // max(limits.min_partitions, 1))
    size_limit = max(size_limit, 1)
    if limits.max_records is not None:
        offsets = sum(part.end - part.start for of_range in parts for part in of_range)
        if offsets // max(limits.max_records, 1) > PIECES_MAX:
            raise PlanError(
                f"{offsets} offsets in pieces of {limits.max_records} are more than {PIECES_MAX} "
                "pieces: raise maxRecordsPerPartition, or read fewer offsets at a time"
            )

    async def cut(one: tuple[OffsetRange, list[_Part]]) -> list[RemotePiece]:
        wanted, of_range = one
        aborted = NONE_ABORTED
        if read_committed:
            aborted = wanted.aborted or NONE_ABORTED
            if wanted.aborted is None:
                aborted = await read_aborts(bucket, wanted.log, wanted.start, wanted.end)

        async def index_of(number: int) -> SegmentIndex:
            return await read_segment_index(bucket, of_range[number].laid.metadata)

        large = [
            number
            for number, part in enumerate(of_range)
            if not _is_one_piece(part, size_limit, limits)
        ]
        indexes = dict(zip(large, await in_parallel(large, index_of), strict=True))
        return [
            piece
            for number, part in enumerate(of_range)
            for piece in _cut(
                wanted.log.partition, part, indexes.get(number), aborted, size_limit, limits
            )
        ]

    together = await in_parallel(zip(ranges, parts, strict=True), cut, PARTITIONS_AT_A_TIME)
    return [piece for some in together for piece in some]


def _parts(wanted: OffsetRange) -> Sequence[_Part]:
    return [
        _Part(laid, max(laid.start_offset, wanted.start), min(laid.end_offset, wanted.end))
        for laid in (
            wanted.log.segments_of(wanted.start, wanted.end) if wanted.start < wanted.end else ()
        )
    ]


def _bytes(part: _Part) -> int:
    """Of a part, about: as if all records were of one length."""
    metadata = part.laid.metadata
    offsets = metadata.end_offset + 1 - metadata.start_offset
    return metadata.segment_size_bytes * (part.end - part.start) // offsets


def _is_one_piece(part: _Part, size_limit: int, limits: SplitLimits) -> bool:
    """Whether all of a segment is wanted, and not too much."""
    metadata = part.laid.metadata
    offsets = metadata.end_offset + 1 - metadata.start_offset
    return (
        part.end - part.start == offsets
        and metadata.segment_size_bytes <= size_limit
        and (limits.max_records is None or offsets <= limits.max_records)
    )


def _cut(
    partition: PartitionName,
    part: _Part,
    index: SegmentIndex | None,
    aborted: AbortedTransactions,
    size_limit: int,
    limits: SplitLimits,
) -> Iterator[RemotePiece]:
    metadata = part.laid.metadata
    size = metadata.segment_size_bytes
    ranges = [(part.start, part.end)]
    if index is not None:
        ranges = _ranges(index, part.start, part.end, size_limit, limits.max_records)
    for start, end in ranges:
        position, end_position = 0, size
        if index is not None and start > metadata.start_offset:
            position = index.position_of(start)
        if index is not None and end <= metadata.end_offset:
            end_position = index.position_behind(end)
        yield RemotePiece(
            partition,
            metadata.id,
            metadata.start_offset,
            position,
            end_position,
            start,
            end,
            aborted.overlapping(start, end),
        )


def _ranges(
    index: SegmentIndex, start: int, end: int, size_limit: int, max_records: int | None
) -> list[tuple[int, int]]:
    """Offsets of [start, end), cut by bytes where the index allows, then by records anywhere."""
    first, last = index.position_of(start), index.position_behind(end)
    count = -(-(last - first) // size_limit)
    cuts = [start]
    for number in range(1, count):
        at = index.offset_near(first + (last - first) * number // count)
        if at is not None and cuts[-1] < at < end:
            cuts.append(at)
    cuts.append(end)
    cut = []
    for begin, stop in pairwise(cuts):
        parts = 1 if max_records is None else -(-(stop - begin) // max_records)
        steps = [begin + (stop - begin) * number // parts for number in range(parts + 1)]
        cut += [*pairwise(steps)]
    return cut
