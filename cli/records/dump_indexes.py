"""Entries of a segment's index files as rows, held against the log if that is beside them."""

import os
from collections.abc import Iterator
from struct import Struct
from typing import Final

from cli.records.dump_log_file import read_batches
from cli.records.dump_rows import Row
from protocol.records.batch import checked_header
from storage.types.log_files import LOG_SUFFIX, parse_log_file_name

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_TRANSACTION_ENTRY: Final = Struct(">hqqqq")


def read_offset_index(path: str) -> Iterator[Row]:
    """Entries of a `.index` file, held against the log if that is beside it."""
    base_offset = _base_offset(path)
    last_offsets = _last_offsets(path)
    for index, (relative, position) in enumerate(_entries(path, _OFFSET_ENTRY)):
        if index and relative == 0 and position == 0:
            return  # preallocated
        offset = base_offset + relative
        row: Row = {"offset": offset, "position": position}
        if last_offsets is not None and last_offsets.get(position) != offset:
            found = last_offsets.get(position)
            row["damage"] = (
                "no batch begins there" if found is None else f"batch there ends with {found}"
            )
        yield row
    yield from _cut_off(path, _OFFSET_ENTRY.size)


def read_time_index(path: str) -> Iterator[Row]:
    """Entries of a `.timeindex` file, held against the log if that is beside it."""
    base_offset = _base_offset(path)
    stamps = _stamps(path)
    previous = -1
    for index, (timestamp, relative) in enumerate(_entries(path, _TIME_ENTRY)):
        if index and timestamp == 0 and relative == 0:
            return  # preallocated
        offset = base_offset + relative
        row: Row = {"timestamp": timestamp, "offset": offset}
        if timestamp <= previous and index:
            row["damage"] = f"timestamp is not above {previous}"
        elif stamps is not None and stamps.get(offset, timestamp) != timestamp:
            row["damage"] = f"batch that ends there has max timestamp {stamps[offset]}"
        elif stamps is not None and offset not in stamps:
            row["damage"] = "no batch ends there"
        previous = timestamp
        yield row
    yield from _cut_off(path, _TIME_ENTRY.size)


def read_transaction_index(path: str) -> Iterator[Row]:
    """Entries of a `.txnindex` file."""
    for version, producer_id, first, last, stable in _entries(path, _TRANSACTION_ENTRY):
        row: Row = {
            "version": version,
            "producerId": producer_id,
            "firstOffset": first,
            "lastOffset": last,
            "lastStableOffset": stable,
        }
        if version != 0 or first > last:
            row["damage"] = "unknown version" if version else "ends before it begins"
        yield row
    yield from _cut_off(path, _TRANSACTION_ENTRY.size)


def _entries(path: str, entry: Struct) -> Iterator[tuple[int, ...]]:
    with open(path, "rb") as file:
        while data := file.read(entry.size * 4096):
            yield from entry.iter_unpack(data[: len(data) // entry.size * entry.size])


def _cut_off(path: str, size: int) -> Iterator[Row]:
    left = os.path.getsize(path) % size
    if left:
        yield {"damage": f"{left} bytes after the last entry"}


def _base_offset(path: str) -> int:
    parsed = parse_log_file_name(os.path.basename(path))
    return 0 if parsed is None else parsed.base_offset


def _log_beside(path: str) -> str | None:
    parsed = parse_log_file_name(os.path.basename(path))
    if parsed is None:
        return None
    name = f"{parsed.base_offset:020d}{LOG_SUFFIX}{parsed.stage}"
    log = os.path.join(os.path.dirname(path), name)
    return log if os.path.exists(log) else None


def _last_offsets(path: str) -> dict[int, int] | None:
    """Position of each batch in the log to its last offset."""
    log = _log_beside(path)
    if log is None:
        return None
    return {
        position: checked_header(batch).last_offset
        for position, batch, damage in read_batches(log)
        if damage is None
    }


def _stamps(path: str) -> dict[int, int] | None:
    """Last offset of each batch in the log to its max timestamp."""
    log = _log_beside(path)
    if log is None:
        return None
    headers = (checked_header(batch) for _, batch, damage in read_batches(log) if damage is None)
    return {header.last_offset: header.max_timestamp for header in headers}
