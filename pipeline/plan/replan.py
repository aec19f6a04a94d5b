"""Replanning of a piece whose object is gone: its offsets from a fresh listing.

What retention has removed is gone for good, but a copy that was superseded may have been the one
that was planned, and another one has the same offsets. So everything is listed, whatever a history
says, and what is found is cut to the offsets that are still wanted.
"""

from typing import Final, NamedTuple

from pipeline.plan.aborts import AbortedTransactions
from pipeline.plan.bucket import Bucket
from pipeline.plan.layout import Gap
from pipeline.plan.partition_read import read_partition
from pipeline.plan.piece import RemotePiece
from pipeline.plan.splits import OffsetRange, plan_pieces
from tiered.errors import ObjectNotFoundError

TRIES: Final = 2
"""Listings, if what the first one has found is gone as well."""


class Replanned(NamedTuple):
    """The new plan of a piece.

    Attributes:
        pieces: Of offsets that the bucket still has, ascending.
        lost: Offsets that it has not.
        problems: Sentences about objects that cannot be read; they may have had them.
    """

    pieces: tuple[RemotePiece, ...]
    lost: tuple[Gap, ...]
    problems: tuple[str, ...] = ()


async def replan(
    bucket: Bucket, piece: RemotePiece, start: int, *, read_committed: bool
) -> Replanned:
    """A piece's offsets from `start` on, as the bucket has them now.

    Args:
        bucket: Where.
        piece: Whose object is gone.
        start: Rows below have been read.
        read_committed: Leave out aborted transactions: those that the piece knows of, and those
            that are found.

    Raises:
        DamagedBucketError: An index is not one.
        RemoteStorageError: The bucket cannot be read now.
    """
    end = piece.end_offset
    if start >= end:
        return Replanned((), ())
    bucket.forget(piece.segment_id)
    problems: tuple[str, ...] = ()
    for _ in range(TRIES):
        log = await read_partition(bucket, piece.partition, use_history=False)
        problems = tuple(log.problems)
        try:
            found = await plan_pieces(
                bucket, [OffsetRange(log, start, end)], read_committed=read_committed
            )
        except ObjectNotFoundError:
            continue
        known = AbortedTransactions(piece.aborted)
        return Replanned(
            tuple(_with_aborts(one, known) for one in found),
            tuple(log.missing(start, end)),
            problems,
        )
    return Replanned((), (Gap(start, end),), problems)


def _with_aborts(piece: RemotePiece, known: AbortedTransactions) -> RemotePiece:
    """With what was known before: an index that named it may be gone, too."""
    together = AbortedTransactions(
        [*piece.aborted, *known.overlapping(piece.start_offset, piece.end_offset)]
    )
    return piece._replace(aborted=together.overlapping(piece.start_offset, piece.end_offset))
