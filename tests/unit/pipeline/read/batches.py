"""Batches for tests of decoding, and the rows that `iterate_records` says they have."""

import contextlib
import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import strategies as st

from native.build import BuildError, build
from pipeline.plan.piece import AbortedRange, PartitionName
from pipeline.read.decode import kernels
from pipeline.read.decode.compiled_kernel import load_compiled
from pipeline.read.decode.numpy_kernel import NumpyKernel
from pipeline.read.decode.record_table import Kernel
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.decode.row_schema import COLUMNS
from pipeline.read.errors import BrokenBatchError
from protocol.errors import DecodeError
from protocol.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    checked_header,
    update_crc,
)
from protocol.records.builder import build_batch
from protocol.records.record import iterate_records

with contextlib.suppress(BuildError, OSError):
    # Where it cannot be compiled there is one kernel less to test.
    build("records", os.environ)

KERNEL_NAMES = [name for name in kernels.KERNEL_NAMES if name != "compiled" or load_compiled()[0]]
"""Those that are there."""
KERNELS = [*KERNEL_NAMES, "side by side"]
"""And numpy's, with everything side by side, however little there is."""

NAME = PartitionName("orders", UUID(int=7), 3)
INT64_MAX = 2**63 - 1
EVERYTHING = (0, INT64_MAX)
BLOCK_MAX = 1 << 26

Content = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int]


def kernel_of(name: str | None) -> Kernel:
    """The kernel of a name in `KERNELS`."""
    if name == "side by side":
        return NumpyKernel(lanes_min=1, header_lanes_min=1)
    return kernels.load_kernel(name)


class Outcome(NamedTuple):
    """What a decoder made of some data: rows by column, and how it ended."""

    rows: dict[str, list[Any]]
    error: str | None


def log_of(*batches: Sequence[Content], codec: int = 0, base_offset: int = 0, **more: Any) -> bytes:
    """Batches back to back, with ascending offsets."""
    out = bytearray()
    for records in batches:
        out += build_batch(records, base_offset=base_offset, codec=codec, **more)
        base_offset += len(records)
    return bytes(out)


def batch_around(
    block: bytes | bytearray,
    count: int,
    *,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    attributes: int = 0,
    base_timestamp: int = 0,
) -> bytes:
    """A batch around any bytes, with a good sum."""
    delta = max(count - 1, 0) if last_offset_delta is None else last_offset_delta
    length = HEADER_SIZE - LOG_OVERHEAD + len(block)
    fields = (base_offset, length, 0, 2, 0, attributes, delta, base_timestamp, 0, -1, -1, -1, count)
    data = bytearray(HEADER.pack(*fields) + bytes(block))
    update_crc(memoryview(data), 0, len(data))
    return bytes(data)


def decode(
    data: bytes,
    kernel: str | None = None,
    *,
    start: int = 0,
    end: int = INT64_MAX,
    aborted: Sequence[AbortedRange] = (),
    read_committed: bool = True,
    columns: Sequence[str] = COLUMNS,
    check_crc: bool = False,
) -> Outcome:
    """What `RowDecoder` makes of `data`; timestamps as ms."""
    decoder = RowDecoder(columns, NAME, kernel_of(kernel), tier="bucket")
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    error = None
    try:
        for batch in decoder.decode(
            memoryview(data),
            start,
            end,
            aborted,
            read_committed=read_committed,
            check_crc=check_crc,
        ):
            batch.validate(full=True)
            assert batch.schema == decoder.schema
            assert batch.num_rows > 0
            for name in columns:
                column = batch.column(name)
                if name == "timestamp":
                    column = column.view("int64")
                rows[name] += column.to_pylist()
    except BrokenBatchError as broken:
        error = str(broken)
    return Outcome(rows, error)


def expected(
    data: bytes,
    *,
    start: int = 0,
    end: int = INT64_MAX,
    aborted: Sequence[AbortedRange] = (),
    read_committed: bool = True,
) -> tuple[dict[str, list[Any]], int | None]:
    """Rows by the walk of `protocol.records`, and where the first broken batch begins.

    Bytes of a header key that are not UTF-8 are escapes there, and replaced in rows.
    """
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    position = 0
    last_offset = -1
    view = memoryview(data)
    while position < len(view):
        try:
            header = checked_header(view, position)
        except DecodeError:
            return rows, position
        if not (
            header.last_offset_delta >= 0
            and last_offset < header.base_offset <= INT64_MAX - 1 - header.last_offset_delta
            and header.records_count >= 0
        ):
            return rows, position
        last_offset = header.last_offset
        batch = view[position : position + header.size]
        is_out = header.is_control or (
            read_committed
            and header.is_transactional
            and any(
                entry.producer_id == header.producer_id
                and entry.first_offset <= header.base_offset <= entry.last_offset
                for entry in aborted
            )
        )
        if not is_out and header.last_offset >= start and header.base_offset < end:
            try:
                records = list(iterate_records(batch, max_size=BLOCK_MAX))
            except DecodeError:
                return rows, position
            offsets = [header.base_offset - 1, *(record.offset for record in records)]
            if any(after <= before for before, after in pairwise(offsets)):
                return rows, position
            if offsets[-1] > header.last_offset:
                return rows, position
            for record in records:
                stamp = (record.timestamp + 2**63) % 2**64 - 2**63
                if start <= record.offset < end and abs(stamp) > INT64_MAX // 1000:
                    return rows_before(rows, header.base_offset), position
                if not start <= record.offset < end:
                    continue
                rows["key"].append(record.key)
                rows["value"].append(record.value)
                rows["topic"].append("orders")
                rows["partition"].append(3)
                rows["offset"].append(record.offset)
                rows["timestamp"].append(stamp * 1000)
                rows["timestampType"].append(int(header.is_log_append_time))
                pairs = [{"key": shown(key), "value": value} for key, value in record.headers]
                rows["headers"].append(pairs or None)
                rows["leaderEpoch"].append(header.leader_epoch)
                rows["producerId"].append(header.producer_id)
                rows["transactional"].append(header.is_transactional)
                rows["tier"].append("bucket")
        position += header.size
    return rows, None


def shown(key: str) -> str:
    """A header key as rows have it."""
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def rows_before(rows: dict[str, list[Any]], offset: int) -> dict[str, list[Any]]:
    """Those of earlier batches."""
    count = sum(each < offset for each in rows["offset"])
    return {name: column[:count] for name, column in rows.items()}


_sizes = st.binary(max_size=70) | st.just(bytes(64)) | st.just(bytes(8192)) | st.just(b"x" * 70_000)
_headers = st.lists(st.tuples(st.text(max_size=70), st.none() | st.binary(max_size=70)), max_size=4)
_records = st.tuples(
    st.none() | _sizes,
    st.none() | _sizes,
    _headers,
    st.integers(-1, 2**45) | st.integers(-(2**53), 2**53) | st.just(0),
)


@st.composite
def logs(draw: st.DrawFn, batches_max: int = 6) -> bytes:
    """Up to `batches_max` batches as clients and the broker write them, with gaps and markers."""
    out = bytearray()
    offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(1, batches_max))):
        records = draw(st.lists(_records, min_size=1, max_size=6))
        producer_id = draw(st.sampled_from([-1, 1, 2]))
        out += build_batch(
            records,
            base_offset=offset,
            codec=draw(st.integers(0, 4)),
            producer_id=producer_id,
            transactional=producer_id > 0 and draw(st.booleans()),
            control=draw(st.integers(0, 9)) == 0,
            timestamp_type=draw(st.integers(0, 1)),
            leader_epoch=draw(st.integers(-1, 5)),
        )
        offset += len(records) + draw(st.sampled_from([0, 0, 5]))
    return bytes(out)
