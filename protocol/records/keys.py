"""The keys of a batch's records, many at a time: what compaction has to know of most of them.

    block:  |length|0|time|offset|size|key|size|value|0|length|0|time|offset|size|key| ...
             `----------- step -------------------------'

Neighbours often have the same shape: a producer writes keys of one size and values of one size.
Where the next records have the first one's lengths, each byte of the shape is a column, `step`
bytes apart, and is compared as a whole; their keys are cut out by one `Struct`. Elsewhere a loop
takes one record after the other and makes nothing but the key.

What is not read here as `protocol.records.record` would read it is not read at all.
"""

from itertools import chain
from struct import iter_unpack
from typing import Final, NamedTuple

from protocol.errors import DecodeError
from protocol.records.record import read_headers
from protocol.records.varint import read_varint, read_varlong

RUN_MIN: Final = 8
"""Records of one shape that are worth being taken as a run."""

RUN_MAX: Final = 4096
"""Records read together: what is found out in vain is little, however large the block is."""

_STRIDE: Final = 32
"""Records taken singly before a run is looked for again; twice as many each time there is none."""

_STRIDE_MAX: Final = 1024

_ONE_BYTE_END: Final = 1 << 6
_ONE_BYTE: Final = bytes(range(0, 128, 2))
"""Offset deltas 0 .. 63 as varints."""

_TWO_BYTES_END: Final = 1 << 13
_LOW: Final = bytes(delta << 1 & 0x7F | 0x80 for delta in range(_TWO_BYTES_END))
_HIGH: Final = bytes(delta >> 6 for delta in range(_TWO_BYTES_END))
"""First and second byte of offset deltas 64 .. 8191 as varints."""

_COUNTING: Final = list(range(_TWO_BYTES_END))

_FLIP_TOP_BIT: Final = bytes(byte ^ 0x80 for byte in range(256))


class RecordKeys(NamedTuple):
    """What `read_keys` found, by index in the batch.

    Attributes:
        keys: Empty where a key is null.
        deltas: Offset - the batch's base offset.
        tombstones: Indexes of records with a null value, ascending.
        keyless: Indexes of records with a null key, ascending.
    """

    keys: list[bytes]
    deltas: list[int]
    tombstones: list[int]
    keyless: list[int]

    @property
    def is_without_gaps(self) -> bool:
        """Whether the deltas are 0, 1, 2 ..., as they are until compaction has taken some."""
        count = len(self.deltas)
        if count > len(_COUNTING):
            return self.deltas == list(range(count))
        return self.deltas == _COUNTING[:count]


def read_keys(block: bytes, count: int) -> RecordKeys:
    """The keys of a block of records.

    Args:
        block: Decompressed, as `records_block` gives it.
        count: Records in it, by the batch's header.

    Raises:
        DecodeError: The structure is damaged.
    """
    found = RecordKeys([], [], [], [])
    keys = found.keys
    position = 0
    stride = _STRIDE
    try:
        while (left := count - len(keys)) > 0:
            taken = 0
            if left >= RUN_MIN:
                taken, position = _read_run(block, position, left, found)
            if taken:
                stride = _STRIDE
            else:
                position = _read_singly(block, position, min(stride, left), found)
                stride = min(stride * 2, _STRIDE_MAX)
    except IndexError:
        raise DecodeError("record is cut off") from None
    if position != len(block):
        raise DecodeError(f"{len(block) - position} bytes after the last record")
    return found


def _read_singly(block: bytes, position: int, count: int, found: RecordKeys) -> int:
    """Take `count` records; returns the position after them."""
    keys, deltas, tombstones, keyless = found
    append_key = keys.append
    append_delta = deltas.append
    size = len(block)
    for _ in range(count):
        # Varints of one byte, and of two where usual, are read in place: a call costs more. Those
        # that are negative, by bit 0, are distinguished by `read_varint`'s way only.
        byte = block[position]
        if byte > 127:
            second = block[position + 1]
            if second > 127 or byte & 1:
                length, position = read_varint(block, position)
            else:
                length = (byte & 0x7F | second << 7) >> 1
                position += 2
        else:
            length = (byte >> 1) ^ -(byte & 1)
            position += 1
        end = position + length
        if length < 0 or end > size:
            raise DecodeError(f"record of {length} bytes, {size - position} are left")
        if block[position + 1] > 127:
            if block[position + 2] > 127:
                _, position = read_varlong(block, position + 1)
            else:
                position += 3
        else:
            position += 2
        byte = block[position]
        if byte > 127:
            second = block[position + 1]
            if second > 127 or byte & 1:
                delta, position = read_varint(block, position)
            else:
                delta = (byte & 0x7F | second << 7) >> 1
                position += 2
        else:
            delta = (byte >> 1) ^ -(byte & 1)
            position += 1
        byte = block[position]
        if byte > 127:
            length, position = read_varint(block, position)
        else:
            length = (byte >> 1) ^ -(byte & 1)
            position += 1
        if length >= 0:
            key_at = position
            position += length
            append_key(block[key_at:position])
        elif length == -1:
            keyless.append(len(keys))
            append_key(b"")
        else:
            raise DecodeError(f"record has a key of {length} bytes")
        append_delta(delta)
        byte = block[position]
        if byte > 127:
            second = block[position + 1]
            if second > 127 or byte & 1:
                length, position = read_varint(block, position)
            else:
                length = (byte & 0x7F | second << 7) >> 1
                position += 2
        else:
            length = (byte >> 1) ^ -(byte & 1)
            position += 1
        if length >= 0:
            position += length
        elif length == -1:
            tombstones.append(len(keys) - 1)
        else:
            raise DecodeError(f"record has a value of {length} bytes")
        if block[position]:
            position = _after_headers(block, position, end)
        else:
            position += 1
        # Also when a field reached beyond the record: nothing takes a position back.
        if position != end:
            raise DecodeError(f"record's length is off by {position - end} bytes")
    return position


def _after_headers(block: bytes, position: int, end: int) -> int:
    """Where the headers of a record end; see `read_headers`."""
    count = block[position]
    if count > 127 or count & 1:
        return read_headers(block, position, end)[1]
    start = position
    position += 1
    for _ in range(count >> 1):
        length = block[position]
        value_size_at = position + 1 + (length >> 1)
        value_size = block[value_size_at]
        if (
            length > 127
            or length & 1
            or value_size > 127
            or (value_size & 1 and value_size != 1)
            or not block[position + 1 : value_size_at].isascii()
        ):
            return read_headers(block, start, end)[1]
        position = value_size_at + 1 + (value_size >> 1)
    return position


def _read_run(block: bytes, position: int, left: int, found: RecordKeys) -> tuple[int, int]:
    """Take the records that have the shape of the one at `position`: (how many, position after).

    0 where they are fewer than `RUN_MIN`, or have something unusual in common.

    Raises:
        DecodeError, IndexError: The first one is damaged.
    """
    length, at = read_varint(block, position)
    step = at - position + length
    # Most that are no run are recognised by their lengths, and nothing more is done for them.
    if length <= 0 or _alike(block[position : position + RUN_MIN * step : step]) < RUN_MIN:
        return 0, position
    first = RecordKeys([], [], [], [])
    end = _read_singly(block, position, 1, first)
    (key,), (delta,), tombstones, keyless = first
    if keyless:
        return 0, position
    time_at = at + 1
    offset_at = _after_varint(block, time_at)
    key_size_at = _after_varint(block, offset_at)
    key_at = _after_varint(block, key_size_at)
    value_size_at = key_at + len(key)
    value_at = _after_varint(block, value_size_at)
    if value_at + max(read_varint(block, value_size_at)[0], 0) != end - 1:
        return 0, position  # it has headers

    count = min(left, RUN_MAX, (len(block) - position) // step)
    for byte_at in (
        *range(position, at),
        *range(key_size_at, key_at),
        *range(value_size_at, value_at),
        end - 1,
    ):
        count = _alike(block[byte_at : position + count * step : step])
    stop = position + count * step
    if (
        count < RUN_MIN
        or not _are_varints([block[i:stop:step] for i in range(time_at, offset_at)])
        or [block[i:stop:step] for i in range(offset_at, key_size_at)] != _offsets(delta, count)
    ):
        return 0, position
    if tombstones:
        found.tombstones.extend(range(len(found.keys), len(found.keys) + count))
    shape = f"{key_at - position}x{len(key)}s{end - value_size_at}x"
    found.keys.extend(chain.from_iterable(iter_unpack(shape, memoryview(block)[position:stop])))
    found.deltas.extend(_COUNTING[delta : delta + count])
    return count, stop


def _alike(column: bytes) -> int:
    """How many bytes from the first on are the same."""
    return len(column) - len(column.lstrip(column[:1]))


def _after_varint(block: bytes, position: int) -> int:
    while block[position] > 127:
        position += 1
    return position + 1


def _are_varints(columns: list[bytes]) -> bool:
    """Whether each row of the columns is one varint, and of no more than 63 bits."""
    return (
        len(columns) < 10
        and columns[-1].isascii()
        and all(column.translate(_FLIP_TOP_BIT).isascii() for column in columns[:-1])
    )


def _offsets(delta: int, count: int) -> list[bytes] | None:
    """The columns of `count` rising deltas; None where they have not all one or two bytes."""
    end = delta + count
    if delta >= 0 and end <= _ONE_BYTE_END:
        return [_ONE_BYTE[delta:end]]
    if delta >= _ONE_BYTE_END and end <= _TWO_BYTES_END:
        return [_LOW[delta:end], _HIGH[delta:end]]
    return None
