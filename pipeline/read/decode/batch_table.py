"""Headers of record batches as arrays, and which of the batches hold wanted rows.

The kernel follows the lengths; everything else is done for thousands of headers at once. No record
is read, so a filtered batch costs its header and nothing else.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.read.decode.aborted_batches import AbortedBatches
from pipeline.read.decode.record_table import Int64s, Kernel
from pipeline.read.errors import BrokenBatchError
from protocol.errors import DecodeError
from protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    UnsupportedMagicError,
    checked_header,
)

Bools = npt.NDArray[np.bool_]

BATCHES_MAX: Final = 8192
"""Headers in one table: 0.5 MB of them, whatever the data."""

_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)
"""`protocol.records.batch`'s layout for numpy, 61 bytes."""

_INT64_MAX: Final = 2**63 - 1


class BatchTable(NamedTuple):
    """One row per batch; the arrays are int64.

    Attributes:
        position, size: Bytes of the whole batch in the data.
        base_offset, last_offset: Inclusive, ascending over the table.
        attributes: The codec and the flags; see `protocol.records.batch`.
        crc: CRC-32C that the batch claims.
        leader_epoch, base_timestamp, max_timestamp, producer_id, records: As in the header.
        next_position: Where the next table begins; the data's end when this was the last.
        problem: What is wrong with the batch that should follow, None where nothing is.
    """

    position: Int64s
    size: Int64s
    base_offset: Int64s
    last_offset: Int64s
    attributes: Int64s
    crc: Int64s
    leader_epoch: Int64s
    base_timestamp: Int64s
    max_timestamp: Int64s
    producer_id: Int64s
    records: Int64s
    next_position: int
    problem: BrokenBatchError | None

    @property
    def codec(self) -> Int64s:
        """Codec numbers, 0 .. 7."""
        return self.attributes & CODEC_MASK

    @property
    def is_append_time(self) -> Bools:
        """Whether the records carry the batch's max timestamp."""
        return self._has(TIMESTAMP_TYPE_BIT)

    @property
    def is_transactional(self) -> Bools:
        """Part of a transaction."""
        return self._has(TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> Bools:
        """Holds a marker: no rows."""
        return self._has(CONTROL_BIT)

    def _has(self, flag: int) -> Bools:
        flags: Bools = (self.attributes & flag) != 0
        return flags

    def before(self, index: int, problem: BrokenBatchError) -> "BatchTable":
        """The batches before `index`, whose problem this is."""
        columns = [column[:index] for column in self[:-2]]
        return BatchTable._make([*columns, int(self.position[index]), problem])

    def broken(self, index: int, problem: str) -> BrokenBatchError:
        """The error for the batch at `index`."""
        position = int(self.position[index])
        return BrokenBatchError(
            position,
            problem,
            base_offset=int(self.base_offset[index]),
            next_offset=int(self.last_offset[index]) + 1,
            next_position=position + int(self.size[index]),
        )


def read_batch_table(
    data: memoryview,
    kernel: Kernel,
    position: int = 0,
    *,
    after_offset: int = -1,
    batches_max: int = BATCHES_MAX,
) -> BatchTable:
    """Read the headers from `position`, at most `batches_max`, up to the first bad one.

    Args:
        data: Whole batches, back to back.
        kernel: Follows the lengths.
        position: Where a batch begins.
        after_offset: Last offset of what came before: base offsets must lie above it.
        batches_max: Most headers.
    """
    problem: BrokenBatchError | None = None
    start, headers = kernel.find_batches(data, position, batches_max)
    fields = np.frombuffer(headers, _HEADER)
    if len(start):
        position = int(start[-1]) + int(fields["batch_length"][-1]) + LOG_OVERHEAD
    if len(start) < batches_max and position < len(data):
        problem = _structure_problem(data, position)
    base_offset = fields["base_offset"].astype(np.int64)
    delta = fields["last_offset_delta"].astype(np.int64)
    table = BatchTable(
        start,
        fields["batch_length"].astype(np.int64) + LOG_OVERHEAD,
        base_offset,
        base_offset + delta,
        fields["attributes"].astype(np.int64),
        fields["crc"].astype(np.int64),
        fields["leader_epoch"].astype(np.int64),
        fields["base_timestamp"].astype(np.int64),
        fields["max_timestamp"].astype(np.int64),
        fields["producer_id"].astype(np.int64),
        fields["records_count"].astype(np.int64),
        position,
        problem,
    )
    return _up_to_the_first_lie(table, delta, after_offset)


def _structure_problem(data: memoryview, position: int) -> BrokenBatchError:
    """Why no batch can be read at `position`."""
    try:
        checked_header(data, position)
    except UnsupportedMagicError as error:
        old = "the format before Kafka 0.11, which this reader does not know"
        known = old if error.magic in (0, 1) else "which does not exist"
        return BrokenBatchError(position, f"it has magic {error.magic}, {known}; only 2 is read")
    except DecodeError as error:
        return BrokenBatchError(position, str(error))
    raise AssertionError("a header that was refused passes its check")  # pragma: no cover


def _up_to_the_first_lie(table: BatchTable, delta: Int64s, after_offset: int) -> BatchTable:
    """The table cut before the first batch whose offsets or count cannot be."""
    if not len(delta):
        return table
    before = np.empty_like(table.last_offset)
    before[0] = after_offset
    before[1:] = table.last_offset[:-1]
    bad = (
        (table.base_offset <= before)
        | (delta < 0)
        | (table.base_offset < 0)
        | (table.base_offset > _INT64_MAX - 1 - delta)
        | (table.records < 0)
    )
    if not bad.any():
        return table
    index = int(bad.argmax())
    if delta[index] < 0:
        text = f"it claims last offset delta {delta[index]}"
    elif not 0 <= table.base_offset[index] <= _INT64_MAX - 1 - delta[index]:
        text = f"it claims base offset {table.base_offset[index]}"
    elif table.records[index] < 0:
        text = f"it claims {table.records[index]} records"
    else:
        text = f"it does not follow offset {before[index]} of what came before"
    return table.before(index, table.broken(index, text))


def wanted_batches(
    table: BatchTable, start_offset: int, end_offset: int, aborted: AbortedBatches | None
) -> npt.NDArray[np.int64]:
    """Indexes of the batches that may have rows in [start, end), ascending.

    Out are control batches, those of aborted transactions (unless `aborted` is None: they are
    wanted), those outside of the range, and those that compaction has emptied.
    """
    keep = (
        (table.last_offset >= start_offset)
        & (table.base_offset < end_offset)
        & ~table.is_control
        & ((table.records > 0) | (table.size > HEADER_SIZE))
    )
    if aborted:
        asked = np.flatnonzero(keep & table.is_transactional)
        if len(asked):
            out = aborted.contain(table.producer_id[asked], table.base_offset[asked])
            keep[asked[out]] = False
    return np.flatnonzero(keep)


__all__ = ["BATCHES_MAX", "BatchTable", "read_batch_table", "wanted_batches"]
