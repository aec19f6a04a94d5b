"""Aborted transactions of a log, from the transaction indexes of its segments.

A segment's index has the transactions whose abort marker lies in it. One that overlaps an offset
range may have begun long before and may be aborted segments later; so the indexes are read from the
range's first segment on, until an entry proves that no later one can begin in the range: when its
marker was written, the last stable offset had reached the range's end.

    range                      [ start ......... end )
    entries by their markers   ... | first  last | ...           last >= start and first < end
    stop                                            last stable offset >= end

Entries are kept as columns of numbers, in the order of their markers, and found by binary search:
by their last offset from below, and by the least first offset of all that follow from above. One
that began long before its marker keeps the search from ending; so the least first offset of each
block of entries is kept as well, and blocks without any that begin early enough are passed over.

Source: Kafka, TransactionIndex.java (collectAbortedTxns), RemoteLogManager.java; KIP-98.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from struct import Struct
from typing import Final, NamedTuple

from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import DamagedBucketError, PlanError
from pipeline.plan.in_parallel import REQUESTS_AT_A_TIME, in_parallel
from pipeline.plan.layout import LaidSegment
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import AbortedRange
from pipeline.plan.segment_files import read_segment_files
from storage.errors import CorruptFileError
from storage.index.transaction_index import ENTRY_SIZE, VERSION, AbortedTxn
from tiered.tier import SideFile

ENTRIES_MAX: Final = 2_000_000
"""Aborted transactions of a range that are held at a time: some 64 MB."""

BLOCK: Final = 128
"""Entries that are passed over together."""

_ENTRY: Final = Struct(">hqqqq")


class AbortedTransactions:
    """Aborted transactions of a part of a log, by piece."""

    __slots__ = ("_block_firsts", "_firsts", "_lasts", "_least_first_from", "_producers")

    def __init__(self, entries: Iterable[AbortedRange]) -> None:
        """Entries in any order; each counts once, however often it occurs."""
        ordered = sorted(set(entries), key=lambda one: (one.last_offset, one.first_offset))
        self._producers = array("q", (one.producer_id for one in ordered))
        self._firsts = array("q", (one.first_offset for one in ordered))
        self._lasts = array("q", (one.last_offset for one in ordered))
        self._block_firsts = array(
            "q", (min(self._firsts[at : at + BLOCK]) for at in range(0, len(ordered), BLOCK))
        )
        least = array("q", accumulate(reversed(self._block_firsts), min))
        self._least_first_from = least[::-1]

    def __len__(self) -> int:
        return len(self._firsts)

    def overlapping(self, start: int, end: int) -> list[AbortedRange]:
        """Those with records in [start, end), or none there yet: ascending by first offset."""
        found: list[AbortedRange] = []
        begin = bisect_left(self._lasts, start)
        for block in range(begin // BLOCK, len(self._block_firsts)):
            if self._least_first_from[block] >= end:
                break
            if self._block_firsts[block] >= end:
                continue
            found += [
                AbortedRange(self._producers[at], self._firsts[at], self._lasts[at])
                for at in range(max(begin, block * BLOCK), min((block + 1) * BLOCK, len(self)))
                if self._firsts[at] < end
            ]
        found.sort(key=lambda one: (one.first_offset, one.last_offset, one.producer_id))
        return found


NONE_ABORTED: Final = AbortedTransactions(())


class _Entries(NamedTuple):
    """A segment's own, and whether no later segment has any that begin before `end`."""

    entries: list[AbortedRange]
    is_last: bool


async def read_aborts(
    bucket: Bucket, log: PartitionLog, start: int, end: int
) -> AbortedTransactions:
    """All that overlap [start, end), as far as the bucket knows.

    Up to the log's stable end that is all there are.

    Raises:
        DamagedBucketError: An index is not one.
        ObjectNotFoundError: A segment was removed: read the partition's log again.
        RemoteStorageError: The store cannot give one, or a key pair is missing.
    """
    if start >= end:
        return NONE_ABORTED
    # The one with the marker may be any from the first on.
    candidates = [
        one
        for one in log.segments_of(start, max(log.end_offset, end))
        if not one.metadata.txn_index_empty
    ]
    found: list[AbortedRange] = []
    for first in range(0, len(candidates), REQUESTS_AT_A_TIME):
        some = candidates[first : first + REQUESTS_AT_A_TIME]

        async def read(one: LaidSegment) -> _Entries:
            return await _entries(bucket, one, start, end)

        for entries, is_last in await in_parallel(some, read):
            found += entries
            if len(found) > ENTRIES_MAX:
                raise PlanError(
                    f"{log.partition.topic}-{log.partition.partition}: more than {ENTRIES_MAX} "
                    f"aborted transactions in offsets {start} to {end - 1}: read fewer at a time"
                )
            if is_last:
                return AbortedTransactions(found)
    return AbortedTransactions(found)


async def _entries(bucket: Bucket, one: LaidSegment, start: int, end: int) -> _Entries:
    keys, _, files = await read_segment_files(bucket, one.metadata, (SideFile.TRANSACTION,))
    data = files.get(SideFile.TRANSACTION, b"")
    try:
        entries = await bucket.threads.run(parse_transaction_index, data)
    except CorruptFileError as error:
        raise DamagedBucketError(keys.indexes, -1, str(error)) from error
    # Markers outside of what the segment gives are another segment's, or another history's.
    own = [entry for entry in entries if one.start_offset <= entry.last_offset < one.end_offset]
    return _Entries(
        [
            AbortedRange(entry.producer_id, entry.first_offset, entry.last_offset)
            for entry in own
            if entry.last_offset >= start and entry.first_offset < end
        ],
        any(entry.last_stable_offset >= end for entry in own),
    )


def parse_transaction_index(data: bytes) -> Sequence[AbortedTxn]:
    """The entries of a `.txnindex` file, ascending by last offset; none in an empty one.

    Raises:
        CorruptFileError: It is something else.
    """
    if len(data) % ENTRY_SIZE:
        raise CorruptFileError("the transaction index ends within an entry")
    entries = []
    previous = -1
    for version, *fields in _ENTRY.iter_unpack(data):
        entry = AbortedTxn(*fields)
        if version != VERSION:
            raise CorruptFileError(f"the transaction index has version {version}")
        if entry.last_offset <= previous or entry.first_offset > entry.last_offset:
            raise CorruptFileError(f"the transaction index has {entry} after offset {previous}")
        previous = entry.last_offset
        entries.append(entry)
    return entries
