"""Aborted transactions of a remote segment, in memory, and those that a fetch response lists.

The file is the segment's `.txnindex` (see `storage.index.transaction_index` for its bytes). A
transaction that overlaps a fetch may have ended in a later segment, so the search goes on from
segment to segment until an entry's last stable offset reaches the end of the fetch.

Where the lineage leaves a segment (`tiered.metadata.epoch_bounds`) its index is left as well:
markers from there on are of another history, and the segment that has this one's begins there.

Source: Kafka, TransactionIndex.java (collectAbortedTxns), RemoteLogManager.java
(accumulateAbortedTransactions); KIP-98, KIP-1057.
"""

from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, Final

from storage.errors import CorruptFileError
from storage.index.transaction_index import ENTRY_SIZE, VERSION, AbortedTxn
from tiered.metadata.epoch_bounds import valid_end
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.remote_read import ReadRequest
from tiered.segment_metadata import RemoteLogSegmentMetadata

if TYPE_CHECKING:
    from tiered.cache.index_cache import IndexCache
    from tiered.cache.remote_segment import RemoteSegment

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

    def collect(
        self, start: int, end: int, valid_offset: int
    ) -> tuple[list[tuple[int, int]], bool]:
        """(producer id, first offset) of those that overlap [start, end), and whether that is all.

        If it is not, the next segment must be asked too. Markers from `valid_offset` on are of
        another history.
        """
        found: list[tuple[int, int]] = []
        entries = self._entries
        last_offsets = self._last_offsets
        for at in range(bisect_left(last_offsets, start), bisect_left(last_offsets, valid_offset)):
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
        request: The read they are for.
        segment: That holds `start`.
        start: First offset.
        end: Exclusive.

    Returns:
        (producer id, first offset) of each, or the segment whose indexes must come first.
    """
    log, client = request.log, request.client
    valid_offset = valid_end(segment.metadata, log.leader_epochs)
    found, complete = segment.indexes.aborts.collect(start, end, valid_offset)
    while not complete:
        following = _next_with_aborts(manager, request, valid_offset)
        if following is None:
            # What is local is in the log's own indexes.
            found += log.reader.aborted_transactions(start, end)
            break
        later = indexes.get(following, client)
        if later is None:
            return following
        valid_offset = max(valid_end(following, log.leader_epochs), valid_offset + 1)
        more, complete = later.indexes.aborts.collect(start, end, valid_offset)
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
        following = epochs.next_epoch(epoch)
        ends = None if following is None else epochs.start_offset_of(following)
        # What a past leader copied beyond that, its successor wrote again.
        if found is not None and (ends is None or found.start_offset < ends):
            return found
        epoch = following
    return None
