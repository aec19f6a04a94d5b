"""State batches of a share-partition, sorted and disjoint.

    current  [ 0 ......... 9  available, 1 ]
    new            [ 4 ... 6  acknowledged, 1 ]
    combined [ 0..3 ][ 4..6 ack ][ 7..9 ]

Where two overlap, the one with the higher delivery count wins, then the one with the higher state:
a record's written count never falls except by a release, and of equals the final state wins.

Source: Kafka, PersisterStateBatchCombiner.java, PersisterStateBatch.java (compareTo).
"""

from collections.abc import Iterable
from itertools import pairwise

from protocol.internal.share_state import StateBatch


def combine(
    so_far: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Combine both, without records below `start_offset` (-1: keep all)."""
    kept = _from_offset([*so_far, *new], start_offset)
    if len(kept) < 2:
        return tuple(kept)
    kept.sort()
    lowest_end = -1
    for first_offset, last_offset, _, _ in kept:
        if first_offset <= lowest_end:
            return _joined(_disjoint(_of_each_range(kept)))
        lowest_end = last_offset
    return _joined(kept)


def _from_offset(batches: list[StateBatch], start_offset: int) -> list[StateBatch]:
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _of_each_range(batches: list[StateBatch]) -> list[StateBatch]:
    """Keep the strongest of sorted batches with equal ranges.

    Nothing else is to do when records are acknowledged one by one, repeatedly.
    """
    found: dict[tuple[int, int], StateBatch] = {}
    for batch in batches:
        before = found.setdefault(batch[:2], batch)
        if before is not batch and _strength(batch) > _strength(before):
            found[batch[:2]] = batch
    return list(found.values())


def _disjoint(batches: list[StateBatch]) -> list[StateBatch]:
    """Split sorted batches at each other's ends; of each piece the strongest is kept.

    Linear in the pieces times how many overlap at one place, which is two in practice: batches of
    one write never overlap each other.
    """
    if all(before.last_offset < after.first_offset for before, after in pairwise(batches)):
        return batches
    borders = sorted(
        {batch.first_offset for batch in batches} | {batch.last_offset + 1 for batch in batches}
    )
    pieces: list[StateBatch] = []
    open_batches: list[StateBatch] = []
    following = 0
    for first, end in pairwise(borders):
        open_batches = [batch for batch in open_batches if batch.last_offset >= first]
        while following < len(batches) and batches[following].first_offset == first:
            open_batches.append(batches[following])
            following += 1
        if open_batches:
            strongest = max(open_batches, key=_strength)
            pieces.append(
                StateBatch(first, end - 1, strongest.delivery_state, strongest.delivery_count)
            )
    return pieces


def _strength(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state


def _joined(batches: list[StateBatch]) -> tuple[StateBatch, ...]:
    """Merge equal neighbours."""
    joined: list[StateBatch] = []
    last = None
    for batch in batches:
        if last is not None and batch[0] == last[1] + 1 and batch[2:] == last[2:]:
            last = joined[-1] = last._replace(last_offset=batch.last_offset)
        else:
            last = batch
            joined.append(batch)
    return tuple(joined)
