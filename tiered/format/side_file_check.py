"""Check of a closed segment's side files by themselves.

What they say of the log is compared with it by `segment_check`, which walks the log once.

    file               what is checked here
    offset index       whole entries, ascending in both fields, none negative
    time index         whole entries, ascending in both fields, none negative
    transaction index  whole entries of version 0, markers ascending and within the segment
    producer snapshot  its CRC and its count
    leader epochs      parse, ascend, and give the epochs that the metadata gives

The two sparse indexes can be made again from the log (`rebuildable`); the others cannot, without
the log before the segment.
"""

from collections.abc import Sequence
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

from storage.checkpoints.checkpoint_files import decode_epochs
from storage.errors import CorruptFileError
from storage.index.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from storage.index.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from storage.index.transaction_index import ENTRY_SIZE as TRANSACTION_ENTRY_SIZE
from storage.index.transaction_index import VERSION as TRANSACTION_VERSION
from storage.producers.snapshot import decode_snapshot
from tiered.errors import CorruptSegmentError
from tiered.segment_metadata import RemoteLogSegmentMetadata

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
"""Stands for the path in errors: the epochs come as bytes."""

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_TRANSACTION_ENTRY: Final = Struct(">hqqqq")


class AbortEntry(NamedTuple):
    """What of a transaction index entry can be compared with the log: its marker."""

    producer_id: int
    last_offset: int


def offset_index_entries(data: bytes, path: str, base_offset: int) -> list[tuple[int, int]]:
    """(last offset, position) of an offset index; CorruptSegmentError when it cannot be right."""
    _check_size(data, OFFSET_ENTRY_SIZE, path, rebuildable=True)
    entries = list(_OFFSET_ENTRY.iter_unpack(data))
    at = _first_not_ascending(entries)
    if at is not None:
        raise CorruptSegmentError(
            path, at * OFFSET_ENTRY_SIZE, "entries do not ascend", rebuildable=True
        )
    return [(base_offset + relative, position) for relative, position in entries]


def time_index_entries(data: bytes, path: str, base_offset: int) -> list[tuple[int, int]]:
    """(timestamp, offset) of a time index; CorruptSegmentError when it cannot be right."""
    _check_size(data, TIME_ENTRY_SIZE, path, rebuildable=True)
    entries = list(_TIME_ENTRY.iter_unpack(data))
    at = _first_not_ascending(entries)
    if at is not None:
        raise CorruptSegmentError(
            path, at * TIME_ENTRY_SIZE, "entries do not ascend", rebuildable=True
        )
    return [(timestamp, base_offset + relative) for timestamp, relative in entries]


def _first_not_ascending(entries: Sequence[tuple[int, int]]) -> int | None:
    if entries and min(entries[0]) < 0:
        return 0
    for at, (before, after) in enumerate(pairwise(entries), 1):
        if before[0] >= after[0] or before[1] >= after[1]:
            return at
    return None


def transaction_index_entries(
    data: bytes, path: str, metadata: RemoteLogSegmentMetadata
) -> list[AbortEntry]:
    """The markers in a transaction index; CorruptSegmentError when it cannot be right."""
    _check_size(data, TRANSACTION_ENTRY_SIZE, path, rebuildable=False)
    if data and metadata.txn_index_empty:
        problem = "there are entries, and the metadata says there are none"
        raise CorruptSegmentError(path, 0, problem, rebuildable=False)
    entries: list[AbortEntry] = []
    before = metadata.start_offset - 1
    stable_before = 0
    for at, fields in enumerate(_TRANSACTION_ENTRY.iter_unpack(data)):
        version, producer_id, first, last, stable = fields
        problem = ""
        if version != TRANSACTION_VERSION:
            problem = f"unknown version {version}"
        elif last <= before or last > metadata.end_offset:
            problem = f"a marker at {last}, after {before}, in a segment to {metadata.end_offset}"
        elif not 0 <= first <= last:
            problem = f"a transaction of {first} .. {last}"
        elif not stable_before <= stable <= last + 1:
            problem = f"a last stable offset of {stable} after {stable_before}"
        if problem:
            position = at * TRANSACTION_ENTRY_SIZE
            raise CorruptSegmentError(path, position, problem, rebuildable=False)
        before, stable_before = last, stable
        entries.append(AbortEntry(producer_id, last))
    return entries


def check_producer_snapshot(data: bytes, path: str) -> None:
    """CorruptSegmentError when a snapshot of producers fails its CRC, or is cut off."""
    try:
        decode_snapshot(data, path)
    except CorruptFileError as error:
        raise CorruptSegmentError(path, -1, str(error), rebuildable=False) from error


def check_leader_epochs(data: bytes, metadata: RemoteLogSegmentMetadata) -> int:
    """Compare the checkpoint with the metadata.

    DeleteRecords into a segment makes the leader forget the epochs of what was deleted. The first
    one that it still knows then begins within the segment, while the metadata may let it begin with
    the segment, so that every offset has one.

    Returns:
        From which offset on the epochs are known.

    Raises:
        CorruptSegmentError: Their epochs differ.
    """
    try:
        entries = decode_epochs(data, LEADER_EPOCHS)
    except CorruptFileError as error:
        raise CorruptSegmentError(LEADER_EPOCHS, -1, str(error), rebuildable=False) from error
    if _first_not_ascending(entries) is not None:
        raise CorruptSegmentError(LEADER_EPOCHS, -1, "epochs do not ascend", rebuildable=False)
    first, last = metadata.start_offset, metadata.end_offset
    before = [(epoch, first) for epoch, start in entries if start <= first]
    within = [entry for entry in entries if first < entry[1] <= last]
    known = before[-1:] + within
    expected = [(entry.epoch, entry.offset) for entry in metadata.segment_leader_epochs]
    if not known or expected not in (known, [(known[0][0], first), *known[1:]]):
        problem = f"the segment's epochs are {known}, and not {expected}"
        raise CorruptSegmentError(LEADER_EPOCHS, -1, problem[:500], rebuildable=False)
    return known[0][1]


def _check_size(data: bytes, entry_size: int, path: str, *, rebuildable: bool) -> None:
    rest = len(data) % entry_size
    if rest:
        problem = f"{rest} bytes are left after whole entries of {entry_size}"
        raise CorruptSegmentError(path, len(data) - rest, problem, rebuildable=rebuildable)
