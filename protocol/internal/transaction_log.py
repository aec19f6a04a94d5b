"""Records of `__transaction_state`: how far each transactional id has come.

Keys and values begin with their own version (int16). Big-endian; `string` is an int16 length and
UTF-8, an array an int32 count (-1: null). In a flexible value (version 1) both become `compact`: an
unsigned varint of length + 1 (0: null), and tagged fields close every struct.

Key (version 0):

    size  field
       2  version
       *  transactional id       string

Value (0 is written below transaction.version 1, else 1):

    size  field                  versions
       2  version
       8  producer id            0-
       2  producer epoch         0-
       4  transaction timeout    0-       ms
       1  state                  0-       see `broker.transactions.coordinator.transaction_state`
       *  topics                 0-       array or null; null when the state is Empty
       *    name                 0-       string
       *    partitions           0-       array of int32
       8  last update            0-       ms since 1970
       8  start                  0-       ms since 1970, -1: none begun
       8  previous producer id   1-       tagged, tag 0; absent: -1
       8  next producer id       1-       tagged, tag 1; absent: -1
       2  client's version       1-       tagged, tag 2; absent: 0, a transaction.version
       2  next producer epoch    1-       tagged, tag 3; absent: -1 (KIP-939)

A record without a value is a tombstone: the transactional id has expired.

Kafka 4.2 knows the tags 0 and 1, reads them, and never writes them. Without them the producer id
that was promised at the end of a transaction's last epoch is forgotten by a crash between its two
records, so they are written here.

Source: Kafka, transaction-coordinator/src/main/resources/common/message, TransactionLog.scala.
"""

from collections.abc import Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.primitives import (
    decode_compact_string,
    decode_string,
    decode_unsigned_varint,
    encode_compact_string,
    encode_string,
    encode_unsigned_varint,
    skip_tagged_fields,
)

VALUE_VERSION_MAX = 1
FLEXIBLE_VALUE_VERSION = 1

_KEY_VERSION = 0
_NO_PRODUCER = -1
_VALUE = Struct(">hqhib")
_TIMES = Struct(">qq")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_NO_TAGS = b"\x00"
_NO_TOPICS = b"\x00"
_NO_TOPICS_V0 = b"\xff\xff\xff\xff"
_ARRAYS = tuple(Struct(f">{count}i") for count in range(9))


class TransactionLogValue(NamedTuple):
    """A transactional id after one transition; times are ms since 1970 UTC.

    Attributes:
        producer_id: Who writes.
        producer_epoch: In which of its lives.
        transaction_timeout_ms: How long a transaction may stay open.
        state: The id of a state.
        partitions: Indexes by topic; None when the state is Empty.
        last_update_timestamp_ms: Of this transition.
        start_timestamp_ms: When the transaction began; -1 when there is none.
        previous_producer_id: The one before `producer_id`, whose last answer may have been lost.
        next_producer_id: The one that takes over when this transaction has ended; -1: the same.
        client_transaction_version: The transaction.version that the client spoke.
        next_producer_epoch: With `next_producer_id`, in two-phase commit; never set by us.
    """

    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    state: int
    partitions: Mapping[str, Sequence[int]] | None
    last_update_timestamp_ms: int
    start_timestamp_ms: int
    previous_producer_id: int = _NO_PRODUCER
    next_producer_id: int = _NO_PRODUCER
    client_transaction_version: int = 0
    next_producer_epoch: int = _NO_PRODUCER


def encode_transaction_log_key(transactional_id: str) -> bytes:
    """Key of a transactional id, version 0.

    Raises:
        ValueError: It is longer than 32,767 bytes.
    """
    return b"\x00\x00" + encode_string(transactional_id)


def decode_transaction_log_key(data: bytes) -> str | None:
    """The transactional id; None when the version belongs to another kind of record.

    Raises:
        DecodeError: The bytes end too early or hold a bad string.
    """
    try:
        (version,) = _INT16.unpack_from(data)
        if version != _KEY_VERSION:
            return None
        transactional_id, _ = decode_string(data, 2)
    except StructError:
        raise DecodeError("key ends too early") from None
    if transactional_id is None:
        raise DecodeError("null where a transactional id is needed")
    return transactional_id


def encode_transaction_log_value(value: TransactionLogValue, version: int) -> bytes:
    """A value in the version that the cluster's transaction.version asks for.

    Version 0 has no room for tagged fields: they are dropped.

    Raises:
        ValueError: The version is not known, or a topic's name does not fit.
    """
    return encode_with_topics(
        version,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        value.state,
        encode_topics(value.partitions, version),
        value.last_update_timestamp_ms,
        value.start_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.client_transaction_version,
        value.next_producer_epoch,
    )


def encode_topics(partitions: Mapping[str, Sequence[int]] | None, version: int) -> bytes:
    """The part of a value that several records of one transaction have in common.

    Raises:
        ValueError: The version is not known, or a topic's name does not fit.
    """
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise ValueError(f"value version {version} is not known")
    if version >= FLEXIBLE_VALUE_VERSION:
        if partitions is None:
            return _NO_TOPICS
        pieces = [encode_unsigned_varint(len(partitions) + 1)]
        for topic, indexes in partitions.items():
            pieces += (
                encode_compact_string(topic),
                encode_unsigned_varint(len(indexes) + 1),
                _pack_indexes(indexes),
                _NO_TAGS,
            )
    else:
        if partitions is None:
            return _NO_TOPICS_V0
        pieces = [_INT32.pack(len(partitions))]
        for topic, indexes in partitions.items():
            pieces += (encode_string(topic), _INT32.pack(len(indexes)), _pack_indexes(indexes))
    return b"".join(pieces)


def encode_with_topics(
    version: int,
    producer_id: int,
    producer_epoch: int,
    transaction_timeout_ms: int,
    state: int,
    topics: bytes,
    last_update_timestamp_ms: int,
    start_timestamp_ms: int,
    previous_producer_id: int = _NO_PRODUCER,
    next_producer_id: int = _NO_PRODUCER,
    client_transaction_version: int = 0,
    next_producer_epoch: int = _NO_PRODUCER,
) -> bytes:
    """As `encode_transaction_log_value`, with the partitions out of `encode_topics`."""
    head = _VALUE.pack(version, producer_id, producer_epoch, transaction_timeout_ms, state)
    times = _TIMES.pack(last_update_timestamp_ms, start_timestamp_ms)
    if version < FLEXIBLE_VALUE_VERSION:
        return b"".join((head, topics, times))
    if previous_producer_id == next_producer_id == next_producer_epoch == _NO_PRODUCER:
        tags = _VERSION_TAGS.get(client_transaction_version)
        if tags is not None:
            return b"".join((head, topics, times, tags))
    fields = []
    if previous_producer_id != _NO_PRODUCER:
        fields.append(b"\x00\x08" + _INT64.pack(previous_producer_id))
    if next_producer_id != _NO_PRODUCER:
        fields.append(b"\x01\x08" + _INT64.pack(next_producer_id))
    if client_transaction_version:
        fields.append(b"\x02\x02" + _INT16.pack(client_transaction_version))
    if next_producer_epoch != _NO_PRODUCER:
        fields.append(b"\x03\x02" + _INT16.pack(next_producer_epoch))
    return b"".join((head, topics, times, bytes((len(fields),)), *fields))


_VERSION_TAGS = {0: b"\x00", 1: b"\x01\x02\x02\x00\x01", 2: b"\x01\x02\x02\x00\x02"}
"""All tagged fields of nearly all values: the client's version, or none."""


def _pack_indexes(indexes: Sequence[int]) -> bytes:
    count = len(indexes)
    packer = _ARRAYS[count] if count < len(_ARRAYS) else Struct(f">{count}i")
    return packer.pack(*indexes)


def decode_transaction_log_value(data: bytes) -> TransactionLogValue:
    """Read a value of any version.

    Raises:
        DecodeError: The version is not known, or the bytes do not fit it.
    """
    try:
        return _decode_value(data)
    except (StructError, IndexError):
        raise DecodeError("value ends too early") from None


def _decode_value(data: bytes) -> TransactionLogValue:
    (version,) = _INT16.unpack_from(data)
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise DecodeError(f"value version {version} is not known")
    flexible = version >= FLEXIBLE_VALUE_VERSION
    _, producer_id, epoch, timeout_ms, state = _VALUE.unpack_from(data)
    partitions, position = _decode_topics(data, _VALUE.size, flexible=flexible)
    last_update_ms, start_ms = _TIMES.unpack_from(data, position)
    fixed = (producer_id, epoch, timeout_ms, state, partitions, last_update_ms, start_ms)
    if not flexible:
        return TransactionLogValue(*fixed)
    return TransactionLogValue(*fixed, *_decode_tags(data, position + _TIMES.size))


def _decode_topics(
    data: bytes, position: int, *, flexible: bool
) -> tuple[dict[str, list[int]] | None, int]:
    count, position = _count(data, position, flexible=flexible)
    if count is None:
        return None, position
    topics: dict[str, list[int]] = {}
    for _ in range(count):
        if flexible:
            name, position = decode_compact_string(data, position)
        else:
            name, position = decode_string(data, position)
        size, position = _count(data, position, flexible=flexible)
        if name is None or size is None:
            raise DecodeError("null where a topic is needed")
        if position + 4 * size > len(data):
            raise DecodeError(f"{size} partitions in {len(data) - position} bytes")
        topics.setdefault(name, []).extend(Struct(f">{size}i").unpack_from(data, position))
        position += 4 * size
        if flexible:
            position = skip_tagged_fields(data, position)
    return topics, position


def _count(data: bytes, position: int, *, flexible: bool) -> tuple[int | None, int]:
    if flexible:
        count, position = decode_unsigned_varint(data, position)
        count -= 1
    else:
        (count,) = _INT32.unpack_from(data, position)
        position += 4
    if count == -1:
        return None, position
    # Every element takes more than one byte, so a longer array cannot be true.
    if not 0 <= count <= len(data) - position:
        raise DecodeError(f"array of {count} elements")
    return count, position


def _decode_tags(data: bytes, position: int) -> tuple[int, int, int, int]:
    previous_id = next_id = next_epoch = _NO_PRODUCER
    client_version = 0
    count, position = decode_unsigned_varint(data, position)
    for _ in range(count):
        tag, position = decode_unsigned_varint(data, position)
        size, position = decode_unsigned_varint(data, position)
        content = data[position : position + size]
        position += size
        if position > len(data):
            raise DecodeError("tagged field reaches beyond the end")
        if tag in _TAG_SIZES and size != _TAG_SIZES[tag]:
            raise DecodeError(f"tagged field {tag} of {size} bytes")
        match tag:
            case 0:
                (previous_id,) = _INT64.unpack(content)
            case 1:
                (next_id,) = _INT64.unpack(content)
            case 2:
                (client_version,) = _INT16.unpack(content)
            case 3:
                (next_epoch,) = _INT16.unpack(content)
            case _:
                pass
    return previous_id, next_id, client_version, next_epoch


_TAG_SIZES = {0: 8, 1: 8, 2: 2, 3: 2}
