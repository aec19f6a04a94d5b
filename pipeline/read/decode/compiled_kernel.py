"""The kernel in C, by ctypes: `native/records.c`, whose head says what it promises.

What is given to it are addresses and lengths of arrays that this module has made or measured; a
mistake here would be one in memory. ctypes lets go of the interpreter's lock during a call.
"""

import ctypes
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from native.library import load_library
from pipeline.read.decode.record_table import (
    Blocks,
    Bytes,
    HeaderTable,
    Int32s,
    Int64s,
    RecordTable,
    Walked,
)
from protocol.records.batch import HEADER_SIZE

CONTRACT: Final = 1
"""`CONTRACT` of the source that this module is written for."""

_BROKEN: Final = 2
_OFFSETS_MAX: Final = 2**31 - 1


class _Blocks(ctypes.Structure):
    """`struct blocks`."""

    _fields_ = (
        ("count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in Blocks._fields),
    )


_TABLE_NAMES: Final = (
    "offset",
    "timestamp",
    "key_start",
    "key_size",
    "value_start",
    "value_size",
    "headers_start",
    "header_count",
    "end",
)


class _RecordTable(ctypes.Structure):
    """`struct record_table`."""

    _fields_ = (
        ("capacity", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in _TABLE_NAMES),
    )


class _HeaderTable(ctypes.Structure):
    """`struct header_table`."""

    _fields_ = (
        ("capacity", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in HeaderTable._fields),
    )


class CompiledKernel:
    """Finds and gathers records in C."""

    name = "compiled"
    group_bytes = 2 << 20

    def __init__(self, library: ctypes.CDLL) -> None:
        """Take the functions from a library that was loaded.

        Raises:
            ValueError: It is of another contract.
        """
        contract = library.varve_records_contract
        contract.restype = ctypes.c_int64
        if contract() != CONTRACT:
            raise ValueError(f"records.c has contract {contract()}, this module {CONTRACT}")
        address, number = ctypes.c_void_p, ctypes.c_int64
        self._walk = library.varve_walk
        self._walk.argtypes = (address, number, address, address)
        self._walk_window = library.varve_walk_window
        self._walk_window.argtypes = (
            address, number, address, number, address, address, address,
        )  # fmt: skip
        self._find_headers = library.varve_find_headers
        self._find_headers.argtypes = (address, number, number, address, address, address)
        self._measure = library.varve_measure
        self._measure.argtypes = (number, address, address)
        self._gather = library.varve_gather
        self._gather.argtypes = (
            address, number, number, address, address, address, number, address, address,
        )  # fmt: skip
        self._find_batches = library.varve_find_batches
        self._find_batches.argtypes = (address, number, number, number, address, address)
        for function in (
            self._walk,
            self._walk_window,
            self._find_headers,
            self._measure,
            self._gather,
            self._find_batches,
        ):
            function.restype = number
        self._nulls = ctypes.c_int64()
        self._table: RecordTable | None = None
        self._table_struct = _RecordTable()

    def walk(self, data: Bytes, blocks: Blocks, table: RecordTable) -> int:
        """See `Kernel`."""
        columns = _checked(blocks)
        return int(
            self._walk(
                data.ctypes.data,
                len(data),
                ctypes.byref(_blocks_struct(columns)),
                ctypes.byref(self._struct_of(table)),
            )
        )

    def walk_window(
        self, data: Bytes, blocks: Blocks, previous_offset: int, table: RecordTable
    ) -> Walked:
        """See `Kernel`."""
        columns = _checked(blocks)
        if len(columns.start) != 1:
            raise ValueError("a window is of one block")
        rows = ctypes.c_int64()
        position = ctypes.c_int64()
        state = self._walk_window(
            data.ctypes.data,
            len(data),
            ctypes.byref(_blocks_struct(columns)),
            previous_offset,
            ctypes.byref(self._struct_of(table)),
            ctypes.byref(rows),
            ctypes.byref(position),
        )
        return Walked(rows.value, position.value, state == _BROKEN)

    def find_headers(self, data: Bytes, starts: Int32s, counts: Int32s) -> HeaderTable:
        """See `Kernel`."""
        starts, counts = _array(starts, np.int32), _array(counts, np.int32)
        if len(starts) != len(counts):
            raise ValueError("as many starts as counts are needed")
        total = int(counts.sum(dtype=np.int64))
        found = HeaderTable(*(np.empty(total, np.int32) for _ in range(4)))
        struct = _HeaderTable(total, *(column.ctypes.data for column in found))
        headers = self._find_headers(
            data.ctypes.data,
            len(data),
            len(starts),
            starts.ctypes.data,
            counts.ctypes.data,
            ctypes.byref(struct),
        )
        if headers != total:
            raise ValueError("headers are not where the walk found them")
        return found

    def gather(self, data: Bytes, starts: Int32s, sizes: Int32s) -> Any:
        """See `Kernel`."""
        starts, sizes = _array(starts, np.int32), _array(sizes, np.int32)
        rows = len(starts)
        if len(sizes) != rows:
            raise ValueError("as many starts as sizes are needed")
        total = int(self._measure(rows, sizes.ctypes.data, ctypes.byref(self._nulls)))
        if total > _OFFSETS_MAX:
            raise ValueError(f"{total} bytes are too many for one Arrow array")
        nulls = self._nulls.value
        # From Arrow's pool, which keeps what was freed: fresh memory costs more than the copy.
        content = pa.allocate_buffer(total)
        offsets = pa.allocate_buffer(4 * (rows + 1))
        validity = pa.allocate_buffer((rows + 7) // 8) if nulls else None
        copied = self._gather(
            data.ctypes.data,
            len(data),
            rows,
            starts.ctypes.data,
            sizes.ctypes.data,
            content.address,
            total,
            offsets.address,
            validity.address if validity is not None else None,
        )
        if copied != total:
            raise ValueError("fields are not where the walk found them")
        return pa.Array.from_buffers(
            pa.binary(), rows, [validity, offsets, content], null_count=nulls
        )

    def find_batches(self, data: memoryview, position: int, count: int) -> tuple[Int64s, Any]:
        """See `Kernel`."""
        view = np.frombuffer(data, np.uint8)
        count = min(count, max(len(view) - position, 0) // HEADER_SIZE)
        positions = np.empty(count, np.int64)
        headers = np.empty(count * HEADER_SIZE, np.uint8)
        found = self._find_batches(
            view.ctypes.data,
            len(view),
            position,
            count,
            positions.ctypes.data,
            headers.ctypes.data,
        )
        return positions[:found], headers[: found * HEADER_SIZE]

    def _struct_of(self, table: RecordTable) -> _RecordTable:
        # A decoder fills the same table all the time.
        if table is not self._table:
            columns = [getattr(table, name) for name in _TABLE_NAMES]
            for name, column in zip(_TABLE_NAMES, columns, strict=True):
                kind = np.int64 if name in {"offset", "timestamp"} else np.int32
                if _array(column, kind) is not column or len(column) != table.capacity:
                    raise ValueError(f"the table's {name} has not room for {table.capacity}")
            self._table = table
            self._table_struct = _RecordTable(
                table.capacity, *(column.ctypes.data for column in columns)
            )
        return self._table_struct


def _checked(blocks: Blocks) -> Blocks:
    """The blocks with arrays as C expects them."""
    columns = Blocks(*(_array(column, np.int64) for column in blocks))
    if any(len(column) != len(columns.start) for column in columns):
        raise ValueError("blocks need as many of each number")
    return columns


def _blocks_struct(blocks: Blocks) -> _Blocks:
    return _Blocks(len(blocks.start), *(column.ctypes.data for column in blocks))


def _array(values: npt.NDArray[Any], kind: Any) -> npt.NDArray[Any]:
    """The values as a plain array of that type in memory; the same object if they are."""
    if values.dtype == kind and values.flags.c_contiguous and values.ndim == 1:
        return values
    return np.ascontiguousarray(values, kind).reshape(-1)


def load_compiled() -> tuple[CompiledKernel | None, str]:
    """The compiled kernel, or None and a sentence that says why there is none."""
    library = load_library("records")
    if library.handle is None:
        return None, library.problem
    return CompiledKernel(library.handle), ""


__all__ = ["CompiledKernel", "load_compiled"]
