"""The aborted transactions of one remote segment, in memory; and what a client is told of them.

The file is the segment's `.txnindex` (see `storage.transaction_index` for its bytes). A transaction
that overlaps a fetch may have ended in a later segment, so the search goes on from segment to
segment until an entry's last stable offset reaches the end of the fetch.

Source: Kafka, TransactionIndex.java (collectAbortedTxns), RemoteLogManager.java
(accumulateAbortedTransactions); KIP-98, KIP-1057.
"""

from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, Final

from storage.errors import CorruptFileError
from storage.transaction_index import ENTRY_SIZE, VERSION, AbortedTxn
from tiered.metadata_manager import RemoteLogMetadataManager
from tiered.remote_read import ReadRequest
from tiered.segment_metadata import RemoteLogSegmentMetadata

if TYPE_CHECKING:
    from tiered.index_cache import IndexCache
    from tiered.remote_segment import RemoteSegment

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


def collect_aborted(
    indexes: "IndexCache",
    manager: RemoteLogMetadataManager,
    request: ReadRequest,
    segment: "RemoteSegment",
    start: int,
    end: int,
) -> list[tuple[int, int]] | RemoteLogSegmentMetadata:
    """Aborted transactions that overlap [start, end), remote and local ones, each once.

    Args:
        indexes: Of remote segments.
        manager: Which segments follow.
        request: For whom.
        segment: That holds `start`.
        start: First offset.
        end: Exclusive.

    Returns:
        (producer id, first offset) of each, or the segment whose indexes must come first.
    """
    log, client = request.log, request.client
    found, complete = segment.indexes.aborts.collect(start, end)
    metadata = segment.metadata
    while not complete:
        following = _next_with_aborts(manager, request, metadata.end_offset + 1)
        if following is None:
            # What is local is in the log's own indexes.
            found += log.aborted_transactions(start, end)
            break
        later = indexes.get(following, client)
        if later is None:
            return following
        metadata = following
        more, complete = later.indexes.aborts.collect(start, end)
        found += more
    return list(dict.fromkeys(found))


def _next_with_aborts(
    manager: RemoteLogMetadataManager, request: ReadRequest, offset: int
) -> RemoteLogSegmentMetadata | None:
    """The next segment of this lineage, from `offset` on, in which something was aborted."""
    epochs = request.log.leader_epochs
    epoch = epochs.epoch_for_offset(offset)
    while epoch is not None and offset < request.log.local_log_start_offset:
        found = manager.find_next_with_transactions(request.partition, epoch, offset)
        if found is not None:
            return found
        epoch = epochs.next_epoch(epoch)
    return None
