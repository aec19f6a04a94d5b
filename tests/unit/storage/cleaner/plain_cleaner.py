"""The two halves of a compaction run, written down plainly: the model of the fast ones.

Every record is made an object and looked up in a dictionary.
`tests.unit.storage.cleaner.test_batch_filter` puts these in the place of
`storage.cleaner.dirty_part` and `storage.cleaner.batch_filter` and compares all bytes.
"""

from protocol.records.batch import BatchHeader, read_header
from protocol.records.builder import rebuild_batch
from protocol.records.record import Record, iterate_records
from storage.cleaner.batch_filter import control_type_of
from storage.cleaner.cleaning import CleanerStats, CleaningJob
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.transactions import CleanedTransactions

SIZE_MAX = 1 << 28


class PlainDirtyPart:
    """As `DirtyPart`."""

    def __init__(
        self, offset_map: OffsetMap, keys_max: int, start: int, stats: CleanerStats
    ) -> None:
        self.map = offset_map
        self.start = start
        self.keys_max = keys_max
        self.stats = stats

    def add(self, header: BatchHeader, batch: memoryview) -> bool:
        for record in iterate_records(batch, max_size=SIZE_MAX):
            self.stats.map_records_read += 1
            if record.key is not None and record.offset >= self.start:
                if len(self.map) >= self.keys_max:
                    self.map.latest_offset = max(self.map.latest_offset, record.offset - 1)
                    return True
                self.map.put(record.key, record.offset)
        return False

    def finish(self) -> None:
        pass


class PlainBatchFilter:
    """As `BatchFilter`."""

    def __init__(
        self,
        job: CleaningJob,
        dirty: PlainDirtyPart,
        transactions: CleanedTransactions,
        stats: CleanerStats,
    ) -> None:
        self.job = job
        self.map = dirty.map
        self.transactions = transactions
        self.stats = stats

    def filter(
        self, header: BatchHeader, batch: memoryview
    ) -> tuple[BatchHeader, bytearray | memoryview] | None:
        horizon = header.delete_horizon_ms
        marker_is_useless = False
        if header.is_control:
            control_type = control_type_of(header, batch)
            marker_is_useless = self.transactions.on_control_batch(header, control_type)
            discard = marker_is_useless and horizon is not None and horizon <= self.job.now_ms
        else:
            discard = self.transactions.on_data_batch(header)
        if discard:
            self.stats.records_read += max(header.records_count, 0)
            return self.emptied(header)
        records = list(iterate_records(batch, max_size=SIZE_MAX))
        retained = records
        if not header.is_control:
            retained = [record for record in records if self.keeps(record, horizon)]
        self.stats.records_read += len(records)
        self.stats.records_kept += len(retained)
        if not retained:
            return self.emptied(header)
        sets_horizon = horizon is None and (
            marker_is_useless or any(record.value is None for record in retained)
        )
        if len(retained) == len(records) and not sets_horizon:
            return header, batch
        if sets_horizon:
            horizon = self.job.now_ms + self.job.delete_retention_ms
        rebuilt = rebuild_batch(header, retained, delete_horizon_ms=horizon)
        return read_header(rebuilt), rebuilt

    def keeps(self, record: Record, horizon: int | None) -> bool:
        if record.offset > self.map.latest_offset:
            return True
        if record.key is None:
            self.stats.records_without_key += 1
            return False
        if record.offset < self.map.get(record.key):
            return False
        return record.value is not None or horizon is None or self.job.now_ms < horizon

    def emptied(self, header: BatchHeader) -> tuple[BatchHeader, bytearray] | None:
        last = self.job.last_records.get(header.producer_id)
        is_last = header.next_offset == self.job.first_uncleanable_offset
        if header.producer_id >= 0 and last is not None:
            if last[0] >= 0:
                is_last |= header.last_offset == last[0]
            else:
                is_last |= header.is_control and header.producer_epoch == last[1]
        if not is_last:
            return None
        rebuilt = rebuild_batch(header, ())
        return read_header(rebuilt), rebuilt


class PlainMap(OffsetMap):
    """A dictionary."""

    __slots__ = ("offsets_by_key",)

    def __init__(self, memory_bytes: int, _recent_bytes: int | None = None) -> None:
        super().__init__(memory_bytes)
        self.offsets_by_key: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.offsets_by_key)

    def put(self, key: bytes, offset: int) -> None:
        self.offsets_by_key[key] = offset

    def get(self, key: bytes) -> int:
        return self.offsets_by_key.get(key, -1)
