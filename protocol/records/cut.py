"""Cut a batch down to some of its records, without making records of them.

    |r0|r1|r2|r3|r4|   keep 1, 2, 4   ->   |r1|r2|r4|

Offset deltas stay, as the base offset does. Time deltas count from the first record that is left,
or from the delete horizon; where that is where they counted from before, a record is copied as it
is, else its length and its time are written anew.
"""

from collections.abc import Sequence

from protocol.errors import DecodeError
from protocol.records.batch import BatchHeader
from protocol.records.builder import encode_headers, reassemble
from protocol.records.record import read_headers
from protocol.records.varint import encode_varint, read_varint, read_varlong


def cut_batch(
    header: BatchHeader, block: bytes, kept: Sequence[int], *, delete_horizon_ms: int | None = None
) -> bytearray | None:
    """What `rebuild_batch` makes of the records with these indexes, byte for byte.

    Args:
        header: Header of the batch as it was.
        block: Its records, decompressed.
        kept: Indexes of those that stay, ascending, at least one.
        delete_horizon_ms: From when tombstones may go. None: as it was.

    Returns:
        None where a record that stays is not in the form in which it would be written: a number in
        more bytes than it needs, or attributes. It has to be built anew.

    Raises:
        DecodeError: The structure is damaged.
    """
    try:
        return _cut(header, block, kept, delete_horizon_ms)
    except IndexError:
        raise DecodeError("record is cut off") from None


def _cut(
    header: BatchHeader, block: bytes, kept: Sequence[int], delete_horizon_ms: int | None
) -> bytearray | None:
    if delete_horizon_ms is None:
        delete_horizon_ms = header.delete_horizon_ms
    is_append_time = header.is_log_append_time
    old_base = header.base_timestamp
    base = delete_horizon_ms
    latest = header.max_timestamp if is_append_time else None
    pieces: list[bytes] = []
    position = 0
    following = 0
    for index in kept:
        position = _skip(block, position, index - following)
        following = index + 1
        start = position
        length = block[position]
        if length < 128:
            length = (length >> 1) ^ -(length & 1)
            position += 1
        else:
            length, position = read_varint(block, position)
            if not block[position - 1]:
                return None
        end = position + length
        if block[position]:
            return None
        delta = block[position + 1]
        if delta < 128:
            delta = (delta >> 1) ^ -(delta & 1)
            position += 2
        else:
            delta, position = read_varlong(block, position + 1)
            if not block[position - 1]:
                return None
        rest = position
        for _ in range(2):
            # The offset's delta, then the key.
            length = block[position]
            if length < 128:
                length = (length >> 1) ^ -(length & 1)
                position += 1
            else:
                length, position = read_varint(block, position)
                if not block[position - 1]:
                    return None
        if length > 0:
            position += length
        length = block[position]
        if length < 128:
            length = (length >> 1) ^ -(length & 1)
            position += 1
        else:
            length, position = read_varint(block, position)
            if not block[position - 1]:
                return None
        if length > 0:
            position += length
        if block[position]:
            headers_at = position
            headers, position = read_headers(block, position, end)
            if encode_headers(headers) != block[headers_at:position]:
                return None
        else:
            position += 1
        if position != end:
            raise DecodeError(f"record's length is off by {position - end} bytes")

        timestamp = header.max_timestamp if is_append_time else old_base + delta
        if base is None:
            base = timestamp
        if latest is None or timestamp > latest:
            latest = timestamp
        if timestamp - base == delta:
            pieces.append(block[start:end])
        else:
            time = encode_varint(timestamp - base)
            pieces.append(
                encode_varint(1 + len(time) + end - rest) + b"\0" + time + block[rest:end]
            )
    assert base is not None, "nothing is kept"
    assert latest is not None
    return reassemble(
        header,
        b"".join(pieces),
        len(kept),
        codec=header.codec,
        has_horizon=delete_horizon_ms is not None,
        base_timestamp=base,
        max_timestamp=latest,
    )


def _skip(block: bytes, position: int, count: int) -> int:
    """The position after `count` records."""
    for _ in range(count):
        length = block[position]
        if length < 128:
            position += 1 + (length >> 1)
        else:
            second = block[position + 1]
            if second < 128:
                position += 2 + ((length & 0x7F | second << 7) >> 1)
            else:
                length, position = read_varint(block, position)
                position += length
    return position
