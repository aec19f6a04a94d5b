"""Blocks of wanted batches, gathered into groups that a kernel walks at once.

    codec none     the batches stay where they are; a group is a range of the data
    compressed     blocks are decompressed one behind the other into the arena, which every group
                   uses again
    large          more than 8 MiB of records, or more than 131,072 of them: by itself, see
                   `record_window`

Which way a batch goes depends on itself alone, so that it is the same for every kernel.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import cramjam
import numpy as np

from pipeline.read.decode.batch_table import BatchTable
from pipeline.read.decode.record_table import Blocks, Bytes, Int64s
from protocol.errors import DecodeError
from protocol.records.batch import HEADER_SIZE
from protocol.records.compression import Codec, decompress
from protocol.records.record import RECORD_SIZE_MIN

BLOCK_MAX: Final = 8 << 20
"""Most bytes of a batch's records, decompressed, that are walked without windows."""

ROWS_MAX: Final = 128 * 1024
"""Most records that are walked at once: their table has 5.5 MB."""


class Group(NamedTuple):
    """Blocks that are walked at once.

    Attributes:
        data: Holds them; the next group may change it.
        blocks: Where they are.
        indexes: Of their batches in the table.
    """

    data: Bytes
    blocks: Blocks
    indexes: Int64s


class BlockGroups:
    """Makes groups of one decoder's batches; has the arena."""

    def __init__(self, group_bytes: int) -> None:
        """Prepare for groups of `group_bytes`; a block that is larger is one by itself."""
        self._group_bytes = group_bytes
        # A block always finds its greatest size behind a group that is not full yet.
        self._arena = self._new_arena()

    def _new_arena(self) -> Bytes:
        return np.empty(self._group_bytes + BLOCK_MAX, np.uint8)

    def of(self, data: memoryview, table: BatchTable, indexes: Int64s) -> Iterator[Group | int]:
        """Groups of the batches at `indexes`, in order; of a large batch its index.

        What cannot be decompressed counts as large: there it is found again and named.

        Raises:
            BrokenBatchError: A block cannot hold as many records as its batch says; what comes
                before it was given.
        """
        payload = table.size[indexes] - HEADER_SIZE
        records = table.records[indexes]
        is_plain = table.codec[indexes] == Codec.NONE
        lies = is_plain & (records * RECORD_SIZE_MIN > payload) & (payload <= BLOCK_MAX)
        stays = is_plain & (payload <= BLOCK_MAX) & (records <= ROWS_MAX) & ~lies
        at = 0
        while at < len(indexes):
            # How far it continues in the same way.
            other = np.flatnonzero(stays[at:] != stays[at])
            stop = at + int(other[0]) if len(other) else len(indexes)
            if stays[at]:
                yield from self._in_place(data, table, indexes[at:stop])
            else:
                yield from self._in_arena(data, table, indexes[at:stop])
            at = stop

    def _in_place(self, data: memoryview, table: BatchTable, indexes: Int64s) -> Iterator[Group]:
        start = table.position[indexes]
        end = start + table.size[indexes]
        rows = np.cumsum(table.records[indexes])
        group_bytes = self._even_bytes(int(end[-1] - start[0]), int((end - start).max()))
        at = 0
        while at < len(indexes):
            rows_before = int(rows[at - 1]) if at else 0
            stop = min(
                int(np.searchsorted(end, start[at] + group_bytes, "right")),
                int(np.searchsorted(rows, rows_before + ROWS_MAX, "right")),
            )
            stop = max(stop, at + 1)
            first = int(start[at])
            view = np.frombuffer(data[first : int(end[stop - 1])], np.uint8)
            chosen = indexes[at:stop]
            yield Group(
                view,
                _blocks(
                    table, chosen, start[at:stop] + (HEADER_SIZE - first), end[at:stop] - first
                ),
                chosen,
            )
            at = stop

    def _even_bytes(self, total: int, largest: int) -> int:
        """Bytes of groups that leave no small one behind, of blocks of up to `largest` bytes."""
        groups = max(1, (total + self._group_bytes // 2) // self._group_bytes)
        # Where groups end before a block that does not fit, the last one has what they lack.
        return max(self._group_bytes, -(-total // groups) + largest)

    def _in_arena(
        self, data: memoryview, table: BatchTable, indexes: Int64s
    ) -> Iterator[Group | int]:
        waiting: list[int] = []
        ends: list[int] = []
        used = rows = 0
        bounds = zip(
            indexes.tolist(),
            table.position[indexes].tolist(),
            table.size[indexes].tolist(),
            table.records[indexes].tolist(),
            table.codec[indexes].tolist(),
            strict=True,
        )
        for index, position, size, records, codec in bounds:
            payload = data[position + HEADER_SIZE : position + size]
            length = inflate_into(codec, payload, self._arena.data[used : used + BLOCK_MAX])
            lies = 0 <= length < records * RECORD_SIZE_MIN
            is_large = length < 0 or records > ROWS_MAX
            if waiting and (is_large or lies or rows + records > ROWS_MAX):
                yield self._arena_group(table, waiting, ends)
                if not is_large:
                    self._arena[:length] = self._arena[used : used + length].copy()
                waiting, ends = [], []
                used = rows = 0
            if lies:
                raise table.broken(index, f"batch claims {records} records in {length} bytes")
            if is_large:
                # What was tried may have touched all of it: a window needs the memory more.
                self._arena = self._new_arena()
                yield index
                continue
            used += length
            rows += records
            waiting.append(index)
            ends.append(used)
            if used >= self._group_bytes:
                yield self._arena_group(table, waiting, ends)
                waiting, ends = [], []
                used = rows = 0
        if waiting:
            yield self._arena_group(table, waiting, ends)

    def _arena_group(self, table: BatchTable, indexes: list[int], ends: list[int]) -> Group:
        chosen = np.array(indexes, np.int64)
        end = np.array(ends, np.int64)
        start = np.zeros_like(end)
        start[1:] = end[:-1]
        return Group(self._arena[: ends[-1]], _blocks(table, chosen, start, end), chosen)


def inflate_into(codec: int, payload: memoryview, room: memoryview) -> int:
    """Decompress a batch's records into `room`; their size, or -1 if they are damaged or larger."""
    if codec == Codec.NONE or not payload:
        if len(payload) > len(room):
            return -1
        room[: len(payload)] = payload
        return len(payload)
    try:
        if codec == Codec.ZSTD:
            # As `decompress` does it, without a copy.
            return int(cramjam.zstd.decompress_into(payload, room))
        block = decompress(codec, payload, max_size=len(room))
    except (DecodeError, cramjam.DecompressionError):
        return -1
    room[: len(block)] = block
    return len(block)


def _blocks(table: BatchTable, indexes: Int64s, start: Int64s, end: Int64s) -> Blocks:
    return Blocks(
        start,
        end,
        table.records[indexes],
        table.base_offset[indexes],
        table.last_offset[indexes],
        table.base_timestamp[indexes],
        table.is_append_time[indexes].astype(np.int64),
        table.max_timestamp[indexes],
    )


__all__ = ["BLOCK_MAX", "ROWS_MAX", "BlockGroups", "Group", "inflate_into"]
