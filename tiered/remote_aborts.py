"""The aborted transactions of one remote segment, in memory; and what a client is told of them.

The file is the segment's `.txnindex` (see `storage.transaction_index` for its bytes). A transaction
that overlaps a fetch may have ended in a later segment, so the search goes on from segment to
segment until an entry's last stable offset reaches the end of the fetch.

Source: Kafka, TransactionIndex.java (collectAbortedTxns), RemoteLogManager.java
(accumulateAbortedTransactions); KIP-98, KIP-1057.
"""

from bisect import bisect_left
from struct import Struct
from typing import Final

from storage.errors import CorruptFileError
from storage.transaction_index import ENTRY_SIZE, VERSION, AbortedTxn

_ENTRY: Final = Struct(">hqqqq")


class RemoteAborts:
    """Entries of one segment, ascending by the offset of their markers."""

    __slots__ = ("_entries", "_last_offsets")

    def __init__(self, entries: list[AbortedTxn]) -> None:
        self._entries = entries
        self._last_offsets = [entry.last_offset for entry in entries]

    def __len__(self) -> int:
        return len(self._entries)

    @classmethod
    def parse(cls, data: bytes, start_offset: int, end_offset: int) -> "RemoteAborts":
        """The content of a `.txnindex` file.

        Args:
            data: All of it; empty if there is no file.
            start_offset: First offset of the segment.
            end_offset: Last offset of the segment, inclusive.

        Raises:
            CorruptFileError: It is no such file, or not of this segment.
        """
        if len(data) % ENTRY_SIZE:
            raise CorruptFileError("transaction index ends within an entry")
        entries = []
        previous = start_offset - 1
        for version, *fields in _ENTRY.iter_unpack(data):
            entry = AbortedTxn(*fields)
            if version != VERSION:
                raise CorruptFileError(f"transaction index has version {version}")
            if not previous < entry.last_offset <= end_offset or (
                entry.first_offset > entry.last_offset
            ):
                raise CorruptFileError(f"transaction index has {entry} after {previous}")
            previous = entry.last_offset
            entries.append(entry)
        return cls(entries)

    def collect(self, start: int, end: int) -> tuple[list[tuple[int, int]], bool]:
        """(producer id, first offset) of those that overlap [start, end), and whether that is all.

        If it is not, the next segment must be asked too.
        """
        found: list[tuple[int, int]] = []
        entries = self._entries
        for at in range(bisect_left(self._last_offsets, start), len(entries)):
            entry = entries[at]
            if entry.first_offset < end:
                found.append((entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= end:
                return found, True
        return found, False
