"""The bytes of the commonest requests and answers, each read or written by one call.

Most Produce and Fetch requests name one partition, and have nothing unusual. Read field by field,
each look at a view makes an object, which together is a quarter of what the broker's own code does
for such a request. So this module is there twice: here, and in C (`native/quick.c`), which a build
puts in its place (`native.modules.IN_C`). A request of another shape is None to both, and so is one
that is wrong: the general code reads it, and says what is the matter. What nothing but C does
quicker than the general code is always None here.

Both take any contiguous buffer, and keep nothing of it but the slices that they return.
"""

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from protocol.hot.fetch_request import FetchFields

_HEADER: Final = Struct(">hhih")
_HEADER_SIZE: Final = 10
_FRAME: Final = Struct(">ii")
_FRAME_TAGS: Final = Struct(">iib")
_BATCH_LENGTH: Final = Struct(">i")
_BATCH_HEADER_SIZE: Final = 61
_ZSTD: Final = 4
_ZSTD_FROM_VERSION: Final = 7


def split_frames(
    data: memoryview, at: int, end: int, size_min: int, size_max: int, count_max: int
) -> tuple[list[memoryview], int] | None:
    """Find whole frames, each with its size of four bytes before it.

    Args:
        data: Bytes that were received.
        at: Where the first frame's size is.
        end: Where they end.
        size_min: Bytes of the smallest frame.
        size_max: Of the largest.
        count_max: Most frames.

    Returns:
        Slices, without their sizes, and where the next size is. They end before a size that is out
        of range. None: there is none, or this is not C.
    """


def read_header(frame: memoryview, client_id: bytes) -> tuple[int, int, int, int, int, int] | None:
    """Read a request's header, whose client id probably is that of the request before.

    Args:
        frame: A request without its size.
        client_id: What it probably has, encoded.

    Returns:
        API key, version, correlation id, length of the client id (-1: null); where the client id
        ends, and the byte there, -1 if the frame ends, too. Those two are -1 if the client id is
        another one, or empty, or null. None if the frame is shorter than that.
    """
    if len(frame) < _HEADER_SIZE:
        return None
    key, version, correlation_id, length = _HEADER.unpack_from(frame)
    end = _HEADER_SIZE + length
    if 0 < length == len(client_id) and frame[_HEADER_SIZE:end] == client_id:
        following = frame[end] if end < len(frame) else -1
        return key, version, correlation_id, length, end, following
    return key, version, correlation_id, length, -1, -1


def read_produce(
    data: memoryview, position: int, by_id: bool
) -> tuple[str | None, int, int, str | bytes, int, memoryview] | None:
    """Read the body of a Produce of version 9 or later that has one partition and no tagged field.

    Args:
        data: The frame.
        position: Where the body begins.
        by_id: Version 13 or later: a topic id instead of a name.

    Returns:
        Transactional id, acks, timeout in ms, topic name or id, partition, records. None: it has
        another shape, or is damaged, or this is not C.
    """


def read_plain_produce(
    data: memoryview, position: int, by_id: bool
) -> tuple[int, int, str | bytes, int, memoryview] | None:
    """As `read_produce`, where the records are one whole batch outside of a transaction.

    Args:
        data: As there; it has no transactional id either.
        position: As there.
        by_id: As there.

    Returns:
        Acks, timeout in ms, topic name or id, partition, records. None: as there.
    """


def read_fetch(data: memoryview, position: int, version: int) -> "FetchFields | None":
    """Read the body of a Fetch of version 12 or later that has no more than one partition.

    It forgets none, and has no tagged field but, at its end, a follower's replica state.

    Args:
        data: The frame.
        position: Where the body begins.
        version: Of the request.

    Returns:
        See `protocol.hot.fetch_request.FetchFields`. None: it has another shape, or is damaged, or
        this is not C.
    """


def read_fetched(
    data: memoryview,
) -> tuple[int, int, int, bytes, int, int, int, int, memoryview] | None:
    """Read the body of a Fetch response, version 13 or later, of one partition.

    It has neither aborted transactions nor tagged fields.

    Args:
        data: The body.

    Returns:
        Throttle time, error code, session id, topic id, and of the partition: index, error code,
        high watermark, log start offset, records. None: as above.
    """


def is_one_batch(records: memoryview, version: int) -> bool:
    """Whether the records of a Produce are one whole batch, as far as its length and magic say.

    Args:
        records: Of one partition.
        version: Of the request: before 7 there is no zstd.
    """
    return (
        len(records) >= _BATCH_HEADER_SIZE
        and _BATCH_LENGTH.unpack_from(records, 8)[0] + 12 == len(records)
        and records[16] == 2
        and (version >= _ZSTD_FROM_VERSION or records[22] & 7 != _ZSTD)
    )


def plain_batch(
    records: memoryview, size_max: int, earliest: int, latest: int
) -> tuple[int, ...] | None:
    """Judge a client's batch that is alone, by its header and its sum.

    Args:
        records: The batch.
        size_max: Most bytes.
        earliest: Least base timestamp, ms; there may be none (-1).
        latest: Greatest maximal timestamp, ms.

    Returns:
        The thirteen fields of its header. None: `storage.log.validator` refuses it, or would
        rewrite it, or this is not C.
    """


place_batch: Final[Callable[[memoryview, int, int, int, int], None]] = Struct(">qii").pack_into
"""Give a batch its place in the log: (records, position, base offset, length, leader epoch).

These are the first fields of its header, before the bytes of its sum. The records are writable; a
number that its field cannot hold is an exception.
"""


def encode_produced(
    topic: str | bytes,
    index: int,
    error_code: int,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
    throttle_time_ms: int,
) -> bytes | None:
    """Encode the body of a Produce response, version 9 or later, of one partition without text.

    Args:
        topic: Name, or id from version 13.
        index: Partition.
        error_code: And the others: as in `protocol.hot.produce.ProducePartitionResponse`.
        base_offset: See there.
        log_append_time_ms: See there.
        log_start_offset: See there.
        throttle_time_ms: For how long a quota held the request back.

    Returns:
        The body. None: a long name, or a number that its field cannot hold, or this is not C.
    """


def encode_fetched(
    topic: str | bytes,
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
    index: int,
    partition_error_code: int,
    high_watermark: int,
    last_stable_offset: int,
    log_start_offset: int,
    aborted: int,
    preferred_read_replica: int,
    length: int,
) -> bytes | None:
    """Encode the body of a Fetch response, version 12 or later, of one partition.

    Args:
        topic: Name, or id from version 13.
        throttle_time_ms: For how long a quota held the request back.
        error_code: Of the whole request.
        session_id: 0 when there is no session.
        index: Partition; what follows is as in `protocol.hot.fetch_encode.FetchPartitionResponse`.
        partition_error_code: See there.
        high_watermark: See there.
        last_stable_offset: See there.
        log_start_offset: See there.
        aborted: 0: null; 1: none.
        preferred_read_replica: See there.
        length: Bytes of the records, which follow, and then three zeros; if 0, all is here.

    Returns:
        What lies before the records. None: a long name, or a number that its field cannot hold, or
        this is not C.
    """


def frame_bytes(correlation_id: int, has_tags: bool, first: bytes, rest_size: int) -> bytes:
    """Put size, correlation id and perhaps an empty tag section before a response's body.

    Args:
        correlation_id: Of the request.
        has_tags: The header of the response is a flexible one.
        first: The body, or what it begins with.
        rest_size: Bytes of the body that follow.
    """
    size = len(first) + rest_size
    if has_tags:
        return _FRAME_TAGS.pack(size + 5, correlation_id, 0) + first
    return _FRAME.pack(size + 4, correlation_id) + first


__all__ = [
    "encode_fetched",
    "encode_produced",
    "frame_bytes",
    "is_one_batch",
    "place_batch",
    "plain_batch",
    "read_fetch",
    "read_fetched",
    "read_header",
    "read_plain_produce",
    "read_produce",
    "split_frames",
]
