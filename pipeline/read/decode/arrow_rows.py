"""Rows as Arrow: where records lie, and what their batch says, become columns.

Bytes are gathered into buffers of their own: a piece must not keep its block alive, and a reader
that gave the block may use its memory again. Only a row of megabytes out of a window that lasts
points into it. Constant columns (topic, partition, tier) are made once:
Spark takes neither dictionaries nor runs, so a topic's name is in every row. Nothing is made by
`pa.array`, which imports pandas: 40 MB that a reader has no other use for.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.plan.piece import PartitionName
from pipeline.read.decode.java_text import decode_java_utf8
from pipeline.read.decode.record_table import Bytes, Int32s, Int64s, Kernel, RecordTable
from pipeline.read.decode.row_schema import HEADER_TYPE, schema_of

TIMESTAMP_MS_MAX: Final = (2**63 - 1) // 1000
"""Greatest time that microseconds in 64 bits can say; the least is its negative."""

_CONSTANT_ROWS_MIN: Final = 4096

_FIXED_BYTES: Final = {
    "key": 4,
    "value": 4,
    "partition": 4,
    "offset": 8,
    "timestamp": 8,
    "timestampType": 4,
    "headers": 4,
    "leaderEpoch": 4,
    "producerId": 8,
    "transactional": 1,
}
"""Bytes of a row in each column, beside those of the record."""

POINT_BYTES_MIN: Final = 1 << 20
"""From so many bytes on a field is not copied where that can be avoided."""

HEADER_BYTES: Final = 8
"""Of a header beside those of the record: two offsets."""


class BatchValues(NamedTuple):
    """Values that all records of a batch share, an int64 per batch that has rows.

    Attributes:
        rows: Records of the batch.
        timestamp_type: 0 or 1.
        leader_epoch, producer_id: -1: none.
        transactional: 0 or 1.
    """

    rows: Int64s
    timestamp_type: Int64s
    leader_epoch: Int64s
    producer_id: Int64s
    transactional: Int64s


class ArrowRows:
    """Makes record batches of one partition's rows, always with the same columns."""

    def __init__(
        self,
        columns: Sequence[str],
        partition: PartitionName,
        kernel: Kernel,
        *,
        tier: str = "",
    ) -> None:
        self.schema = schema_of(columns)
        self._columns = tuple(columns)
        self._kernel = kernel
        self._partition = partition
        self._texts = {"topic": partition.topic, "tier": tier}
        self._constants: dict[str, Any] = {}
        self._wants_key = "key" in columns
        self._wants_value = "value" in columns
        self._wants_headers = "headers" in columns
        self.row_bytes = sum(
            len(self._texts[name].encode()) + 4 if name in self._texts else _FIXED_BYTES[name]
            for name in columns
        )
        """Bytes of a row without those of its record."""

    @property
    def wants_timestamp(self) -> bool:
        """Whether a row says its time."""
        return "timestamp" in self._columns

    def weight_max(self, data_bytes: int, rows: int) -> int:
        """Bytes in Arrow that so many rows out of so many bytes cannot exceed."""
        # A header has two bytes of its record at least.
        headers = data_bytes // 2 * HEADER_BYTES if self._wants_headers else 0
        return data_bytes + rows * self.row_bytes + headers

    def weigh(self, table: RecordTable, start: int, end: int) -> Int64s:
        """About how many bytes each of the rows start .. end has in Arrow."""
        weights = np.full(end - start, self.row_bytes, np.int64)
        if self._wants_key:
            weights += np.maximum(table.key_size[start:end], 0)
        if self._wants_value:
            weights += np.maximum(table.value_size[start:end], 0)
        if self._wants_headers:
            weights += table.end[start:end] - table.headers_start[start:end]
            weights += table.header_count[start:end].astype(np.int64) * HEADER_BYTES
        return weights

    def make(
        self,
        data: Bytes,
        table: RecordTable,
        start: int,
        end: int,
        batches: BatchValues,
        batch_of_row: Int64s | None,
        *,
        is_lasting: bool = False,
    ) -> Any:
        """A record batch of the rows start .. end.

        Args:
            data: Where the records lie.
            table: Filled by a kernel from `data`.
            start: First row.
            end: After the last row.
            batches: Of the records' batches.
            batch_of_row: Index in `batches` of each row of the table; None: all are alike.
            is_lasting: `data` never changes, so that a single large row may point into it.
        """
        points = is_lasting and end - start == 1
        rows = slice(start, end)
        arrays = []
        for name in self._columns:
            if name == "key":
                array = self._gather(data, table.key_start, table.key_size, rows, points)
            elif name == "value":
                array = self._gather(data, table.value_start, table.value_size, rows, points)
            elif name == "offset":
                array = _copied(pa.int64(), table.offset[start:end])
            elif name == "timestamp":
                array = _owned(self.schema.field(name).type, table.timestamp[start:end] * 1000)
            elif name == "headers":
                array = self._headers(data, table, start, end, points)
            elif name in {"topic", "tier", "partition"}:
                array = self._constant(name, end - start)
            else:
                array = self._of_batches(name, start, end, batches, batch_of_row)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _constant(self, name: str, rows: int) -> Any:
        made = self._constants.get(name)
        if made is None or len(made) < rows:
            size = max(_CONSTANT_ROWS_MIN, 1 << (rows - 1).bit_length())
            if name == "partition":
                made = _owned(pa.int32(), np.full(size, self._partition.partition, np.int32))
            else:
                text = self._texts[name].encode()
                offsets = np.arange(size + 1, dtype=np.int32) * np.int32(len(text))
                buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text * size)]
                made = pa.Array.from_buffers(pa.string(), size, buffers)
            self._constants[name] = made
        return made.slice(0, rows)

    def _of_batches(
        self, name: str, start: int, end: int, batches: BatchValues, batch_of_row: Int64s | None
    ) -> Any:
        values, kind = {
            "timestampType": (batches.timestamp_type, np.int32),
            "leaderEpoch": (batches.leader_epoch, np.int32),
            "producerId": (batches.producer_id, np.int64),
            "transactional": (batches.transactional, np.bool_),
        }[name]
        rows: npt.NDArray[Any]
        if batch_of_row is None:
            rows = np.full(end - start, values[0], kind)
        else:
            rows = values.astype(kind)[batch_of_row[start:end]]
        if kind is np.bool_:
            return pa.Array.from_buffers(pa.bool_(), len(rows), [None, _bits(rows)], null_count=0)
        return _owned(self.schema.field(name).type, rows)

    def _headers(self, data: Bytes, table: RecordTable, start: int, end: int, points: bool) -> Any:
        counts = table.header_count[start:end]
        rows = end - start
        offsets = np.zeros(rows + 1, np.int32)
        if not counts.any():
            empty = pa.nulls(0, HEADER_TYPE)
            nulls = pa.py_buffer(bytes((rows + 7) // 8))
            return pa.Array.from_buffers(
                self.schema.field("headers").type,
                rows,
                [nulls, pa.py_buffer(offsets)],
                null_count=rows,
                children=[empty],
            )
        np.cumsum(counts, out=offsets[1:])
        found = self._kernel.find_headers(data, table.headers_start[start:end], counts)
        total = len(found.key_start)
        points = points and total == 1
        keys = _as_text(self._gather(data, found.key_start, found.key_size, slice(None), points))
        values = self._gather(data, found.value_start, found.value_size, slice(None), points)
        pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
        return pa.Array.from_buffers(
            self.schema.field("headers").type,
            rows,
            [_bits(counts > 0), pa.py_buffer(offsets)],
            children=[pairs],
        )

    def _gather(self, data: Bytes, starts: Int32s, sizes: Int32s, rows: slice, points: bool) -> Any:
        """The bytes at starts[rows] as an Arrow binary array; size -1 is null.

        `points`: there is one, and if it is large it may point into `data`.
        """
        starts, sizes = starts[rows], sizes[rows]
        if points and sizes[0] >= POINT_BYTES_MIN:
            first = int(starts[0])
            content = pa.py_buffer(data[first : first + int(sizes[0])])
            offsets = pa.py_buffer(np.array([0, sizes[0]], np.int32))
            return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, content])
        return self._kernel.gather(data, starts, sizes)


def _as_text(keys: Any) -> Any:
    """Binary as string; what is no UTF-8 as the JVM decodes it."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [decode_java_utf8(key).encode() for key in keys.to_pylist()]
        offsets = np.zeros(len(texts) + 1, np.int32)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers, null_count=0)


def _bits(flags: npt.NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _copied(kind: Any, values: npt.NDArray[Any]) -> Any:
    return _owned(kind, values.copy())


def _owned(kind: Any, values: npt.NDArray[Any]) -> Any:
    """An Arrow array without nulls over `values`, which must not change."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)], null_count=0)


__all__ = ["TIMESTAMP_MS_MAX", "ArrowRows", "BatchValues"]
