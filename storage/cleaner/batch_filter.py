"""What compaction leaves of a batch: all of it, some records, an empty one, or nothing.

A batch is decoded as little as possible:

    all or none of its records are the last of their keys      by offsets alone, see `dirty_part`
    none of its keys was written again                         by its keys
    else                                                       kept records are cut out of it
    records beyond the map or without key, unusual forms       one record after the other

The last way is the rule, written down plainly; the others do the same sooner.
"""

from collections.abc import Sequence

from protocol.records.batch import BatchHeader, read_header
from protocol.records.builder import rebuild_batch
from protocol.records.control import ControlType, parse_control_type
from protocol.records.cut import cut_batch
from protocol.records.keys import read_keys
from protocol.records.record import Record, iterate_records, records_block
from storage.cleaner.cleaning import CleanerStats, CleaningJob
from storage.cleaner.compiled_offset_map import CompiledOffsetMap
from storage.cleaner.dirty_part import DECOMPRESSED_SIZE_MAX, DirtyPart
from storage.cleaner.transactions import CleanedTransactions
from storage.records.walks import cut_records

Kept = tuple[BatchHeader, bytearray | memoryview]
"""A batch, and the header it has now."""


class BatchFilter:
    """Filters the batches of one run, in order.

    Args:
        job: The run.
        dirty: Of its log, all read.
        transactions: Gets each batch.
        stats: Where the records are counted.
    """

    def __init__(
        self,
        job: CleaningJob,
        dirty: DirtyPart,
        transactions: CleanedTransactions,
        stats: CleanerStats,
    ) -> None:
        self._now_ms = job.now_ms
        self._upper_bound = job.first_uncleanable_offset
        self._last_records = job.last_records
        self._new_horizon_ms = job.now_ms + job.delete_retention_ms
        self._dirty = dirty
        self._map = dirty.map
        self._transactions = transactions
        self._stats = stats

    def filter(self, header: BatchHeader, batch: memoryview) -> Kept | None:
        """What stays of a batch: it, another in its place, or None.

        Raises:
            DecodeError: Records do not parse, or are beyond `DECOMPRESSED_SIZE_MAX`.
        """
        horizon = header.delete_horizon_ms
        kept: Kept | None
        if header.is_control:
            control_type = control_type_of(header, batch)
            is_useless = self._transactions.on_control_batch(header, control_type)
            if is_useless and horizon is not None and horizon <= self._now_ms:
                self._count_discarded(header)
                kept = None
            else:
                kept = self._filter_marker(header, batch, is_useless)
        elif self._transactions.on_data_batch(header):
            self._count_discarded(header)
            kept = None
        else:
            kept = self._filter_data(header, batch)
        if kept is None and (
            header.next_offset == self._upper_bound or self._is_last_of_producer(header)
        ):
            rebuilt = rebuild_batch(header, ())
            return read_header(rebuilt), rebuilt
        return kept

    def _count_discarded(self, header: BatchHeader) -> None:
        self._stats.records_read += max(header.records_count, 0)

    def _filter_marker(
        self, header: BatchHeader, batch: memoryview, is_useless: bool
    ) -> Kept | None:
        records = list(iterate_records(batch, max_size=DECOMPRESSED_SIZE_MAX))
        self._stats.records_read += len(records)
        return self._rebuilt(header, batch, records, records, gets_horizon=is_useless)

    def _filter_data(self, header: BatchHeader, batch: memoryview) -> Kept | None:
        if isinstance(self._map, CompiledOffsetMap):
            return self._filter_block(header, batch, self._map)
        count = header.records_count
        kept: Sequence[int]
        latest = self._dirty.latest_within(header)
        if latest is not None:
            if not latest:
                self._stats.records_read += count
                return None
            if len(latest) == count:
                self._stats.records_read += count
                self._stats.records_kept += count
                return header, batch
        block = records_block(batch, header, max_size=DECOMPRESSED_SIZE_MAX)
        horizon = header.delete_horizon_ms
        gets_horizon = False
        if latest is not None and count == header.last_offset_delta + 1:
            kept = latest
        else:
            found = read_keys(block, count)
            if found.keyless or header.last_offset > self._map.latest_offset:
                return self._filter_singly(header, batch)
            kept = self._latest_of(header, found.keys, found.deltas)
            if found.tombstones:
                tombstones = set(found.tombstones)
                if horizon is None:
                    gets_horizon = not tombstones.isdisjoint(kept)
                elif self._now_ms >= horizon:
                    kept = [index for index in kept if index not in tombstones]
        cut: bytearray | None = None
        if kept and (len(kept) < count or gets_horizon):
            cut = cut_batch(
                header,
                block,
                kept,
                delete_horizon_ms=self._new_horizon_ms if gets_horizon else horizon,
            )
            if cut is None:
                return self._filter_singly(header, batch)
        self._stats.records_read += count
        self._stats.records_kept += len(kept)
        if not kept:
            return None
        return (header, batch) if cut is None else (read_header(cut), cut)

    def _latest_of(
        self, header: BatchHeader, keys: list[bytes], deltas: list[int]
    ) -> Sequence[int]:
        """Indexes of records that are not older than their keys' last."""
        if header.last_offset < self._dirty.start and self._map.is_disjoint(keys):
            return range(len(keys))
        base = header.base_offset
        latest = self._map.get_all(keys)
        return [
            index
            for index, (delta, offset) in enumerate(zip(deltas, latest, strict=True))
            if base + delta >= offset
        ]

    # -- in C, by bits of records ----------------------------------------------------------------

    def _filter_block(
        self, header: BatchHeader, batch: memoryview, offset_map: CompiledOffsetMap
    ) -> Kept | None:
        count = header.records_count
        bits = self._dirty.latest_bits(header)
        if bits is not None:
            number = bits.bit_count()
            if not number or number == count:
                self._stats.records_read += count
                self._stats.records_kept += number
                return (header, batch) if number else None
        if header.last_offset > offset_map.latest_offset:
            return self._filter_singly(header, batch)
        block = records_block(batch, header, max_size=DECOMPRESSED_SIZE_MAX)
        horizon = header.delete_horizon_ms
        if bits is None or count != header.last_offset_delta + 1:
            found = offset_map.latest_in(header, block)
            if found is None:
                return self._filter_singly(header, batch)
            bits, tombstones = found
            if not tombstones:
                pass
            elif horizon is not None:
                if self._now_ms >= horizon:
                    bits &= ~tombstones
            elif tombstones & bits:
                horizon = self._new_horizon_ms
        number = bits.bit_count()
        kept: Kept | None = header, batch
        if not number:
            kept = None
        elif number < count or horizon != header.delete_horizon_ms:
            cut = cut_records(header, block, bits, delete_horizon_ms=horizon)
            if cut is None:
                return self._filter_singly(header, batch)
            kept = read_header(cut), cut
        self._stats.records_read += count
        self._stats.records_kept += number
        return kept

    # -- one record after the other ------------------------------------------------------------

    def _filter_singly(self, header: BatchHeader, batch: memoryview) -> Kept | None:
        horizon = header.delete_horizon_ms
        records = list(iterate_records(batch, max_size=DECOMPRESSED_SIZE_MAX))
        retained = [record for record in records if self._keeps(record, horizon)]
        self._stats.records_read += len(records)
        has_tombstone = any(record.value is None for record in retained)
        return self._rebuilt(header, batch, records, retained, gets_horizon=has_tombstone)

    def _rebuilt(
        self,
        header: BatchHeader,
        batch: memoryview,
        records: list[Record],
        retained: list[Record],
        *,
        gets_horizon: bool,
    ) -> Kept | None:
        """The batch with the retained records only; with a horizon if it has none yet."""
        self._stats.records_kept += len(retained)
        if not retained:
            return None
        horizon = header.delete_horizon_ms
        gets_horizon = gets_horizon and horizon is None
        if len(retained) == len(records) and not gets_horizon:
            return header, batch
        rebuilt = rebuild_batch(
            header, retained, delete_horizon_ms=self._new_horizon_ms if gets_horizon else horizon
        )
        return read_header(rebuilt), rebuilt

    def _keeps(self, record: Record, horizon: int | None) -> bool:
        if record.offset > self._map.latest_offset:
            return True
        if record.key is None:
            self._stats.records_without_key += 1
            return False
        if record.offset < self._map.get(record.key):
            return False
        return record.value is not None or horizon is None or self._now_ms < horizon

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        if header.producer_id < 0 or header.producer_id not in self._last_records:
            return False
        last_data_offset, epoch = self._last_records[header.producer_id]
        if last_data_offset >= 0:
            return header.last_offset == last_data_offset
        # Only a marker is known of the producer: it holds the epoch that fences older ones.
        return header.is_control and header.producer_epoch == epoch


def control_type_of(header: BatchHeader, batch: memoryview) -> int | None:
    """Type of the marker in a control batch, None when compaction has taken the record."""
    if header.records_count <= 0:
        return None
    for record in iterate_records(batch, max_size=64 * 1024):
        return int(parse_control_type(record.key))
    return int(ControlType.UNKNOWN)
