"""What `protocol.quick` says in C of a plain Produce, by the general code."""

import contextlib
import struct

from broker.transactions.partitions.transactional_produce import is_transactional
from protocol.errors import DecodeError
from protocol.hot import produce
from protocol.hot.produce import PlainProduce
from protocol.quick import is_one_batch


def read_plain_produce(data: memoryview, position: int, by_id: bool) -> PlainProduce | None:
    """As `protocol.quick.read_plain_produce` in a build."""
    with contextlib.suppress(DecodeError, IndexError, struct.error):
        found = produce._decode_flexible(data, position, by_id)
        parts = [(topic, *part) for topic in found.topics for part in topic.partitions]
        if len(parts) == 1 and found.transactional_id is None:
            ((topic, index, records),) = parts
            if records and is_one_batch(records, 9) and not is_transactional(records):
                name = topic.topic_id if by_id else topic.name or ""
                return found.acks, found.timeout_ms, name, index, records
    return None
