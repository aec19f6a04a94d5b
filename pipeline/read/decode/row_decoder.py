"""Decoder of whole record batches to Arrow rows: the way of the bytes through this package.

    data -> headers as arrays (`batch_table`) -> what is out -> blocks of the rest, decompressed
         -> where the records lie (`record_table`, a kernel) -> pieces of <= 4 MiB (`arrow_rows`)

Blocks are taken in groups, a few MiB at a time (`block_groups`); a batch of gigabytes goes through
windows (`record_window`), so that memory is bounded whatever a batch decompresses to.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from pipeline.plan.piece import AbortedRange, PartitionName
from pipeline.read.decode.aborted_batches import AbortedBatches
from pipeline.read.decode.arrow_rows import TIMESTAMP_MS_MAX, ArrowRows, BatchValues
from pipeline.read.decode.batch_table import BatchTable, read_batch_table, wanted_batches
from pipeline.read.decode.block_groups import ROWS_MAX, BlockGroups, Group
from pipeline.read.decode.inflate import inflate
from pipeline.read.decode.kernels import load_kernel
from pipeline.read.decode.plain_kernel import BatchFacts, facts_of, walk_rest
from pipeline.read.decode.record_table import Bytes, Int64s, Kernel, RecordTable
from pipeline.read.decode.record_window import RecordWindows
from protocol.errors import DecodeError
from protocol.records.batch import CRC_START, HEADER_SIZE, crc32c

PIECE_BYTES: Final = 4 << 20
"""Of a record batch that is given out, at most but for its first row.

Records of 100 bytes become half as large again in Arrow: with this, what a kernel likes to be given
is one record batch and not a large and a small one, each of which costs Spark's JVM as much.
"""


class RowDecoder:
    """Decodes the batches of one partition; keeps what can be used again from call to call.

    Not for several threads at a time.
    """

    def __init__(
        self,
        columns: Sequence[str],
        partition: PartitionName,
        kernel: Kernel | str | None = None,
        *,
        tier: str = "",
    ) -> None:
        """Prepare for rows with `columns`.

        Args:
            columns: Of `row_schema.COLUMNS`; what is not named is not copied.
            partition: Whose rows.
            kernel: How records are found, or its name; None: the fastest there is.
            tier: What the column `tier` says.

        Raises:
            ValueError: A column or kernel that there is not.
        """
        self._kernel = load_kernel(kernel) if kernel is None or isinstance(kernel, str) else kernel
        self._rows = ArrowRows(columns, partition, self._kernel, tier=tier)
        self._table = RecordTable(ROWS_MAX)
        self._groups = BlockGroups(self._kernel.group_bytes)
        self._ranges: Sequence[AbortedRange] = ()
        self._aborted = AbortedBatches(())

    @property
    def schema(self) -> Any:
        """The Arrow schema of what `decode` gives."""
        return self._rows.schema

    @property
    def kernel_name(self) -> str:
        """Name of the kernel that finds records."""
        return self._kernel.name

    def decode(
        self,
        data: memoryview,
        start_offset: int,
        end_offset: int,
        aborted: Sequence[AbortedRange] = (),
        *,
        read_committed: bool,
        check_crc: bool = False,
    ) -> Iterator[Any]:
        """Give the rows of `data` in order, as Arrow record batches of at most 4 MiB, or a row.

        Args:
            data: Whole batches, back to back. Not kept: it may change once all was given.
            start_offset: First offset wanted.
            end_offset: Offset after the last one wanted.
            aborted: Ranges that may concern the data, in any order.
            read_committed: Leave out what `aborted` names. Control batches are never rows.
            check_crc: Check every batch's CRC, those that are left out, too: without it it is
                unknown that they may be.

        Raises:
            BrokenBatchError: A batch is damaged; all rows before it were given.
        """
        ranges = self._aborted_batches(aborted) if read_committed else None
        position = 0
        after_offset = -1
        while position < len(data):
            table = read_batch_table(data, self._kernel, position, after_offset=after_offset)
            if check_crc:
                table = _up_to_the_first_bad_sum(data, table)
            indexes = wanted_batches(table, start_offset, end_offset, ranges)
            for group in self._groups.of(data, table, indexes):
                if isinstance(group, Group):
                    yield from self._decode_group(table, group, start_offset, end_offset)
                else:
                    yield from self._decode_large(data, table, group, start_offset, end_offset)
            if table.problem is not None:
                raise table.problem
            position = table.next_position
            after_offset = int(table.last_offset[-1])

    def _aborted_batches(self, ranges: Sequence[AbortedRange]) -> AbortedBatches:
        # A piece's ranges come with each of its chunks; a list may have grown meanwhile.
        if ranges is not self._ranges or not isinstance(ranges, tuple):
            self._ranges = ranges
            self._aborted = AbortedBatches(ranges)
        return self._aborted

    def _decode_group(
        self, table: BatchTable, group: Group, start_offset: int, end_offset: int
    ) -> Iterator[Any]:
        good = self._kernel.walk(group.data, group.blocks, self._table)
        indexes = group.indexes[:good]
        problem = None
        if good < len(group.indexes):
            problem = table.broken(int(group.indexes[good]), _reason(group, good))
        counts = table.records[indexes]
        yield from self._pieces(table, group.data, indexes, counts, start_offset, end_offset)
        if problem is not None:
            raise problem

    def _decode_large(
        self, data: memoryview, table: BatchTable, index: int, start_offset: int, end_offset: int
    ) -> Iterator[Any]:
        begin = int(table.position[index])
        payload = data[begin + HEADER_SIZE : begin + int(table.size[index])]
        facts = BatchFacts(
            int(table.base_offset[index]),
            int(table.last_offset[index]),
            int(table.base_timestamp[index]),
            int(table.max_timestamp[index]) if table.is_append_time[index] else None,
        )
        try:
            pieces = inflate(int(table.codec[index]), payload)
            records = int(table.records[index])
            for window, rows in RecordWindows(pieces, facts, records, self._kernel, self._table):
                yield from self._pieces(
                    table,
                    window,
                    np.array([index], np.int64),
                    np.array([rows], np.int64),
                    start_offset,
                    end_offset,
                    is_lasting=True,
                )
                # A window with a large record is let go before the next one is filled.
                del window
        except DecodeError as error:
            raise table.broken(index, str(error)) from None

    def _pieces(
        self,
        table: BatchTable,
        data: Bytes,
        indexes: Int64s,
        counts: Int64s,
        start_offset: int,
        end_offset: int,
        *,
        is_lasting: bool = False,
    ) -> Iterator[Any]:
        """Rows of the batches, `counts` of each, which the kernel has found, in pieces."""
        records = self._table
        rows = int(counts.sum())
        start, end = np.searchsorted(records.offset[:rows], (start_offset, end_offset)).tolist()
        if start >= end:
            return
        problem = None
        if self._rows.wants_timestamp:
            stamps = records.timestamp[start:end]
            bad = (stamps > TIMESTAMP_MS_MAX) | (stamps < -TIMESTAMP_MS_MAX)
            if bad.any():
                row = start + int(bad.argmax())
                batch = int(np.searchsorted(np.cumsum(counts), row, "right"))
                problem = table.broken(
                    int(indexes[batch]),
                    f"record at offset {records.offset[row]} has timestamp "
                    f"{records.timestamp[row]} ms, which microseconds cannot say",
                )
                end = max(start, int(counts[:batch].sum()))
        batches = _values_of(table, indexes)
        batch_of_row = None
        if not _are_alike(batches):
            batch_of_row = np.repeat(np.arange(len(indexes)), counts)
        row = start
        for stop in self._stops(len(data), start, end):
            yield self._rows.make(
                data, records, row, stop, batches, batch_of_row, is_lasting=is_lasting
            )
            row = stop
        if problem is not None:
            raise problem

    def _stops(self, data_bytes: int, start: int, end: int) -> Iterator[int]:
        """Where pieces of the rows start .. end, which lie in so many bytes, end."""
        if self._rows.weight_max(data_bytes, end - start) > PIECE_BYTES:
            weights = np.cumsum(self._rows.weigh(self._table, start, end))
            row = start
            while row < end:
                before = int(weights[row - start - 1]) if row > start else 0
                stop = start + int(np.searchsorted(weights, before + PIECE_BYTES, "right"))
                row = max(stop, row + 1)
                yield row
        elif start < end:
            yield end


def _reason(group: Group, index: int) -> str:
    """What is wrong with a block that a kernel refused, in the words of the plain one."""
    block = group.data[int(group.blocks.start[index]) : int(group.blocks.end[index])].tobytes()
    try:
        facts = facts_of(group.blocks, index)
        records = int(group.blocks.records[index])
        walk_rest(block, 0, records, facts, facts.base_offset - 1, RecordTable(records), 0)
    except DecodeError as error:
        return str(error)
    return "its records are damaged"


def _values_of(table: BatchTable, indexes: Int64s) -> BatchValues:
    return BatchValues(
        table.records[indexes],
        table.is_append_time[indexes].astype(np.int64),
        table.leader_epoch[indexes],
        table.producer_id[indexes],
        table.is_transactional[indexes].astype(np.int64),
    )


def _are_alike(batches: BatchValues) -> bool:
    return all(bool((values == values[0]).all()) for values in batches[1:])


def _up_to_the_first_bad_sum(data: memoryview, table: BatchTable) -> BatchTable:
    bounds = zip(table.position.tolist(), table.size.tolist(), table.crc.tolist(), strict=True)
    for index, (position, size, claimed) in enumerate(bounds):
        crc = crc32c(data[position + CRC_START : position + size])
        if crc != claimed:
            text = f"its CRC-32C is {crc:#010x}, not {claimed:#010x} as it says"
            return table.before(index, table.broken(index, text))
    return table


__all__ = ["PIECE_BYTES", "RowDecoder"]
