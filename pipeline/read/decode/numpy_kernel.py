"""The kernel in numpy: all batches side by side, a step finds the next record of each.

    batch 0   [r0][r1][r2]...        cursors: an array with a position in each batch
    batch 1   [r0 ][r1][r2]...       step i:  lengths, deltas, key, value, headers of r_i of all
    batch 2   [r0][r1 ]...                    batches that have so many records

Longest batches come first, so that those still at work are always the first ones. When only a few
are left, plain Python continues: a step costs the same for one batch as for fifty. A batch that
turns out to be broken is dragged along (reads are clipped to the buffer) and left out at the end.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pipeline.read.decode.gather import take_bytes
from pipeline.read.decode.plain_kernel import PlainKernel, facts_of, walk_headers, walk_rest
from pipeline.read.decode.record_table import (
    Blocks,
    Bytes,
    HeaderTable,
    Int32s,
    Int64s,
    RecordTable,
    Walked,
)
from protocol.errors import DecodeError

Bools = npt.NDArray[np.bool_]

LANES_MIN: Final = 72
"""Below so many batches side by side plain Python is faster: a step takes 75 us, a record 1."""

HEADER_LANES_MIN: Final = 24
"""The same of records whose headers are walked side by side."""


class NumpyKernel:
    """Finds records of many batches at once."""

    name = "numpy"
    group_bytes = 8 << 20

    def __init__(
        self, *, lanes_min: int = LANES_MIN, header_lanes_min: int = HEADER_LANES_MIN
    ) -> None:
        """Choose from how many on batches, and records with headers, go side by side."""
        self._plain = PlainKernel()
        self._lanes_min = lanes_min
        self._header_lanes_min = header_lanes_min

    def walk(self, data: Bytes, blocks: Blocks, table: RecordTable) -> int:
        """See `Kernel`."""
        order = np.argsort(-blocks.records, kind="stable")
        count = blocks.records[order]
        first_row = (np.cumsum(blocks.records) - blocks.records)[order]
        position = blocks.start[order]
        bad = np.zeros(len(order), np.bool_)
        previous = blocks.base_offset[order] - 1
        ordered = Blocks(*(column[order] for column in blocks))
        lanes = _Lanes(data, ordered, table, first_row, self._header_lanes_min)
        rising = count[::-1]
        step = 0
        while step < count[0]:
            active = len(order) - int(np.searchsorted(rising, step, "right"))
            if active < self._lanes_min:
                for lane in range(active):
                    if not bad[lane]:
                        bad[lane] = not lanes.finish(lane, step, position, previous)
                break
            lanes.step(step, active, position[:active], previous[:active], bad[:active])
            step += 1
        bad |= position != lanes.blocks.end
        return int(order[bad].min()) if bad.any() else len(order)

    def walk_window(
        self, data: Bytes, blocks: Blocks, previous_offset: int, table: RecordTable
    ) -> Walked:
        """See `Kernel`; a single batch has nothing side by side."""
        return self._plain.walk_window(data, blocks, previous_offset, table)

    def find_headers(self, data: Bytes, starts: Int32s, counts: Int32s) -> HeaderTable:
        """See `Kernel`."""
        total = int(counts.sum(dtype=np.int64))
        found = HeaderTable(*(np.empty(total, np.int32) for _ in range(4)))
        some = np.flatnonzero(counts)
        first = np.cumsum(counts, dtype=np.int64) - counts
        ends = np.full(len(some), len(data), np.int64)
        _walk_headers(
            data,
            starts[some].astype(np.int64),
            counts[some],
            ends,
            found,
            first[some],
            self._header_lanes_min,
        )
        return found

    def gather(self, data: Bytes, starts: Int32s, sizes: Int32s) -> Any:
        """See `Kernel`."""
        return take_bytes(data, starts, sizes)

    def find_batches(self, data: memoryview, position: int, count: int) -> tuple[Int64s, Any]:
        """See `Kernel`; each batch says where the next one is, so there is nothing side by side."""
        return self._plain.find_batches(data, position, count)


class _Lanes:
    """State of all batches for a step, longest first."""

    def __init__(
        self,
        data: Bytes,
        blocks: Blocks,
        table: RecordTable,
        first_row: Int64s,
        header_lanes_min: int,
    ) -> None:
        self._data = data
        self._header_lanes_min = header_lanes_min
        self.blocks = blocks
        self._table = table
        self._first_row = first_row
        self._is_append_time = blocks.append_time != 0
        self._any_append_time = bool(self._is_append_time.any())

    def step(self, step: int, active: int, position: Int64s, previous: Int64s, bad: Bools) -> None:
        """Find record `step` of the first `active` batches; the arrays are moved on in place."""
        data, blocks, table = self._data, self.blocks, self._table
        row = self._first_row[:active] + step
        length, at = _read_varints(data, position, bad)
        end = at + length
        bad |= (length < 0) | (end > blocks.end[:active])
        delta, at = _read_varlongs(data, at + 1, bad)
        timestamp = blocks.base_timestamp[:active] + delta
        if self._any_append_time:
            fixed = self._is_append_time[:active]
            np.copyto(timestamp, blocks.max_timestamp[:active], where=fixed)
        delta, at = _read_varints(data, at, bad)
        offset = blocks.base_offset[:active] + delta
        bad |= (offset <= previous) | (offset > blocks.last_offset[:active])
        key_size, key_start = _read_varints(data, at, bad)
        value_size, value_start = _read_varints(data, key_start + np.maximum(key_size, 0), bad)
        at = value_start + np.maximum(value_size, 0)
        bad |= (key_size < -1) | (value_size < -1) | (at > end)
        count, at = _read_varints(data, at, bad)
        table.headers_start[row] = at
        bad |= (count < 0) | (count * 2 > end - at)
        if count.any():
            some = np.flatnonzero((count > 0) & ~bad)
            at[some], broken = _walk_headers(
                data, at[some], count[some], end[some], None, some, self._header_lanes_min
            )
            bad[some[broken]] = True
        bad |= at != end
        table.offset[row] = offset
        table.timestamp[row] = timestamp
        table.key_start[row] = key_start
        table.key_size[row] = key_size
        table.value_start[row] = value_start
        table.value_size[row] = value_size
        table.header_count[row] = count
        table.end[row] = end
        position[:] = at
        previous[:] = offset

    def finish(self, lane: int, step: int, position: Int64s, previous: Int64s) -> bool:
        """Find the rest of a batch, one by one; whether it is well formed."""
        start, end = int(position[lane]), int(self.blocks.end[lane])
        try:
            walk_rest(
                self._data[start:end].tobytes(),
                start,
                int(self.blocks.records[lane]) - step,
                facts_of(self.blocks, lane),
                int(previous[lane]),
                self._table,
                int(self._first_row[lane]) + step,
            )
        except DecodeError:
            return False
        position[lane] = end
        return True


def _read_varints(data: Bytes, position: Int64s, bad: Bools) -> tuple[Int64s, Int64s]:
    """Signed 32-bit varints at the positions: values and the positions after them."""
    value = data.take(position, mode="clip").astype(np.int64)
    after = position + 1
    more = value > 0x7F
    if more.any():
        second = data.take(after, mode="clip").astype(np.int64)
        np.copyto(value, value & 0x7F | (second & 0x7F) << 7, where=more)
        after += more
        more &= second > 0x7F
        if more.any():
            long = np.flatnonzero(more)
            read, after[long], broken = _read_long(data, position[long], 5, 0xFFFF_FFFF)
            value[long] = read.astype(np.int64)
            bad[long[broken]] = True
    return (value >> 1) ^ -(value & 1), after


def _read_varlongs(data: Bytes, position: Int64s, bad: Bools) -> tuple[Int64s, Int64s]:
    """Signed 64-bit varints, likewise."""
    value = data.take(position, mode="clip").astype(np.int64)
    after = position + 1
    signed = (value >> 1) ^ -(value & 1)
    more = value > 0x7F
    if more.any():
        long = np.flatnonzero(more)
        read, after[long], broken = _read_long(data, position[long], 10, 0xFFFF_FFFF_FFFF_FFFF)
        signed[long] = ((read >> np.uint64(1)) ^ -(read & np.uint64(1))).astype(np.int64)
        bad[long[broken]] = True
    return signed, after


def _read_long(
    data: Bytes, position: Int64s, bytes_max: int, value_max: int
) -> tuple[npt.NDArray[np.uint64], Int64s, Bools]:
    """Varints of any length, not unzigzagged: values, positions after, which are too long."""
    value = np.zeros(len(position), np.uint64)
    after = position.copy()
    more = np.ones(len(position), np.bool_)
    bad = np.zeros(len(position), np.bool_)
    for index in range(bytes_max):
        byte = data.take(after, mode="clip").astype(np.uint64)
        byte[~more] = 0
        part = byte & np.uint64(0x7F)
        # What does not fit into the last byte is lost by the shift, so it is checked before.
        bad |= part > np.uint64(value_max >> 7 * index)
        value |= part << np.uint64(7 * index)
        after += more
        more &= byte > 0x7F
        if not more.any():
            break
    return value, after, bad | more


def _walk_headers(
    data: Bytes,
    position: Int64s,
    count: Int64s | Int32s,
    end: Int64s,
    found: HeaderTable | None,
    first: Int64s,
    lanes_min: int,
) -> tuple[Int64s, Bools]:
    """Find `count` headers at each position: the positions after them, and which are broken.

    Header i of lane j goes to `found` at `first[j]` + i.
    """
    order = np.argsort(-count, kind="stable")
    count, at, end, first = count[order], position[order], end[order], first[order]
    bad = np.zeros(len(order), np.bool_)
    rising = count[::-1]
    step = 0
    while len(order) and step < count[0]:
        active = len(order) - int(np.searchsorted(rising, step, "right"))
        if active < lanes_min:
            for lane in range(active):
                if not bad[lane]:
                    bad[lane] = not _finish_headers(
                        data, lane, int(count[lane]) - step, at, end, found, int(first[lane]) + step
                    )
            break
        here, mute = at[:active], bad[:active]
        key_size, key_start = _read_varints(data, here, mute)
        value_size, value_start = _read_varints(data, key_start + np.maximum(key_size, 0), mute)
        here[:] = value_start + np.maximum(value_size, 0)
        mute |= (key_size < 0) | (value_size < -1) | (here > end[:active])
        if found is not None:
            index = first[:active] + step
            found.key_start[index] = key_start
            found.key_size[index] = key_size
            found.value_start[index] = value_start
            found.value_size[index] = value_size
        step += 1
    after = np.empty_like(at)
    after[order] = at
    broken = np.empty_like(bad)
    broken[order] = bad
    return after, broken


def _finish_headers(
    data: Bytes,
    lane: int,
    count: int,
    at: Int64s,
    end: Int64s,
    found: HeaderTable | None,
    first: int,
) -> bool:
    """Find the rest of a lane's headers, one by one; whether they are well formed."""
    start = int(at[lane])
    view = data.data[start : int(end[lane])]
    rows: list[tuple[int, int, int, int]] = []
    try:
        after = walk_headers(view, 0, count, len(view), None if found is None else rows.append)
    except (DecodeError, IndexError):
        return False
    at[lane] = start + after
    if found is not None:
        columns = np.array(rows, np.int64).T
        found.key_start[first : first + count] = columns[0] + start
        found.key_size[first : first + count] = columns[1]
        found.value_start[first : first + count] = columns[2] + start
        found.value_size[first : first + count] = columns[3]
    return True


__all__ = ["NumpyKernel"]
