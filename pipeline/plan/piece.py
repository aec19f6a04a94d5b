"""A piece of a partition that one task reads: bytes of one remote segment, or offsets at a broker.

Pieces are what planning gives to executors. They are pickled, so they hold names and numbers only:
no client, no key, no secret. A remote piece begins and ends where batches do:

    segment's log   [batch][batch][batch][batch][batch] ...
    positions               ^ position        ^ end_position     both from the offset index,
    offsets                    ^ start_offset ^ end_offset       0 and the log's size without it

`start_offset` may lie within the first batch, and `end_offset` within the last: rows outside are
read and left out, since copies overlap and ranges are asked for by offsets.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID


class AbortedRange(NamedTuple):
    """An aborted transaction: transactional batches of the producer that begin in it are out.

    Attributes:
        producer_id: Whose.
        first_offset: Of its first record in this partition.
        last_offset: Of its abort marker, inclusive.
    """

    producer_id: int
    first_offset: int
    last_offset: int


class PartitionName(NamedTuple):
    """A partition of one incarnation of a topic."""

    topic: str
    topic_id: UUID
    partition: int


class RemotePiece(NamedTuple):
    """A part of one remote segment; see the module.

    Attributes:
        partition: Whose.
        segment_id: Of the copy.
        segment_start_offset: First offset of the whole segment: with the id it makes the names of
            its objects (`tiered.format.object_keys.ObjectKeys.keys_of`).
        position, end_position: Bytes of the log, before compression and encryption; exclusive end.
        start_offset, end_offset: Rows that are wanted; exclusive end.
        aborted: Those that overlap the piece, ascending by first offset; empty when aborted records
            are wanted too.
    """

    partition: PartitionName
    segment_id: UUID
    segment_start_offset: int
    position: int
    end_position: int
    start_offset: int
    end_offset: int
    aborted: Sequence[AbortedRange] = ()


class BrokerPiece(NamedTuple):
    """Offsets that the leader is asked for by Fetch.

    Attributes:
        partition: Whose.
        leader_epoch: That the plan knows of, -1: none. A leader of an older one refuses.
        start_offset, end_offset: Rows that are wanted; exclusive end.
    """

    partition: PartitionName
    leader_epoch: int
    start_offset: int
    end_offset: int


Piece: TypeAlias = RemotePiece | BrokerPiece
