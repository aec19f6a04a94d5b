"""Check that planned segments can be opened, on the driver, before any task starts.

Pieces are planned without their segments' manifests, which would be one request a segment. So a
missing key pair would show on an executor. Of each partition the first and the last segment are
opened here; where they need different key pairs, what lies between is searched for others by
halving, since pairs change at some moment and stay.
"""

from collections.abc import Sequence
from itertools import groupby

from pipeline.plan.bucket import Bucket
from pipeline.plan.in_parallel import PARTITIONS_AT_A_TIME, in_parallel
from pipeline.plan.piece import Piece, RemotePiece
from pipeline.read.bytes.open_segment import open_segment
from pipeline.read.read_errors import DamagedDataError


async def check_openable(bucket: Bucket, pieces: Sequence[Piece]) -> None:
    """Open some segments of every partition.

    Raises:
        RemoteStorageError: The store cannot be read, or a key pair is missing; names the pair.
        ObjectNotFoundError: A segment was removed meanwhile.
    """
    remote = [piece for piece in pieces if isinstance(piece, RemotePiece)]
    partitions = [list(some) for _, some in groupby(remote, key=lambda piece: piece.partition)]

    async def check(some: list[RemotePiece]) -> None:
        await _check_between(bucket, some, 0, len(some) - 1)

    await in_parallel(partitions, check, PARTITIONS_AT_A_TIME)


async def _check_between(
    bucket: Bucket, pieces: Sequence[RemotePiece], first: int, last: int
) -> None:
    ends = [await _pair_of(bucket, pieces[first]), await _pair_of(bucket, pieces[last])]
    middle = (first + last) // 2
    if ends[0] != ends[1] and first < middle:
        await _check_between(bucket, pieces, first, middle)
        await _check_between(bucket, pieces, middle, last)


async def _pair_of(bucket: Bucket, piece: RemotePiece) -> str:
    """Which key pair the segment needs; "" if none, or if its manifest is damaged.

    What is damaged is an error, or left out, where it is read.
    """
    try:
        opened = await open_segment(bucket.store, bucket.key_ring, bucket.manifests, piece)
    except DamagedDataError:
        return ""
    encryption = opened.manifest.encryption
    return "" if encryption is None else encryption.pair_id
