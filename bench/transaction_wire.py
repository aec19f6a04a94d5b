"""Requests of transactional producers, framed by hand; see `bench.wire`.

Transaction version 2 begins with Produce v12, TxnOffsetCommit v5 and EndTxn v5: sending one of the
first two registers what it touches, and the answer to EndTxn brings the next epoch. With the older
versions here a producer registers everything itself and keeps its epoch.

Source: Kafka's protocol guide; KIP-98, KIP-447, KIP-890.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench import flexible, wire
from bench.flexible import NO_TAGS, answer_of

ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 24, 25, 26, 28
ISOLATION_COMMITTED = 1
_CONTROL_BIT, _TRANSACTIONAL_BIT = 0x20, 0x10


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one transaction version."""

    produce: int
    end_txn: int
    txn_offset_commit: int

    @property
    def registers_itself(self) -> bool:
        """Whether producing adds the partition to the transaction."""
        return self.produce >= 12


TV1, TV2 = Versions(11, 4, 4), Versions(12, 5, 5)


@dataclass(frozen=True, slots=True)
class Producer:
    """Who a transactional request is from."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1

    def encoded(self) -> bytes:
        """The three fields as every transactional request has them."""
        identity = struct.pack(">qh", self.producer_id, self.epoch)
        return flexible.string(self.transactional_id) + identity


def init_producer_id_frame(transactional_id: str, timeout_ms: int, number: int) -> bytes:
    """InitProducerId v4 of a producer that has just started."""
    body = flexible.string(transactional_id) + struct.pack(">iqh", timeout_ms, -1, -1) + NO_TAGS
    return wire.frame(wire.INIT_PRODUCER_ID, 4, number, body, flexible=True)


def read_producer_id(answer: bytes) -> tuple[int, int, int]:
    """Error code, producer id and epoch: InitProducerId v4, EndTxn v5."""
    reader = answer_of(answer)
    reader.int32()
    return reader.int16(), reader.int64(), reader.int16()


def end_txn_frame(producer: Producer, versions: Versions, number: int, *, commit: bool) -> bytes:
    """EndTxn."""
    body = producer.encoded() + struct.pack(">b", commit) + NO_TAGS
    return wire.frame(END_TXN, versions.end_txn, number, body, flexible=True)


def error_after_throttle(answer: bytes) -> int:
    """Error code of an answer that has it after the throttle time: EndTxn, AddOffsetsToTxn."""
    reader = answer_of(answer)
    reader.int32()
    return reader.int16()


def transactional_batch(
    values: Iterable[bytes], producer: Producer, base_sequence: int, timestamp_ms: int
) -> bytes:
    """A batch of records of one producer, marked as part of a transaction."""
    return wire.record_batch(
        list(values),
        timestamp_ms=timestamp_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=base_sequence,
        attributes=_TRANSACTIONAL_BIT,
    )


def produce_frame(
    producer: Producer,
    topic: str,
    batches: Mapping[int, bytes],
    versions: Versions,
    number: int,
) -> bytes:
    """One Produce request with a batch for every partition, acks=all."""
    partitions = (
        struct.pack(">i", index) + flexible.blob(batch) + NO_TAGS
        for index, batch in batches.items()
    )
    body = (
        flexible.string(producer.transactional_id)
        + struct.pack(">hi", -1, 30_000)
        + flexible.array([flexible.string(topic) + flexible.array(partitions) + NO_TAGS])
        + NO_TAGS
    )
    return wire.frame(wire.PRODUCE, versions.produce, number, body, flexible=True)


def produce_errors(answer: bytes) -> dict[int, int]:
    """Partition to error code, 0 included (Produce v9 to v12)."""
    reader = answer_of(answer)
    found = {}
    for _ in reader.compact_times():
        reader.compact_string()
        for _ in reader.compact_times():
            index = reader.int32()
            found[index] = reader.int16()
            reader.take(24)  # base offset, append time, log start offset
            for _ in reader.compact_times():
                reader.int32()
                reader.compact_string()
                reader.tags()
            reader.compact_string()
            reader.tags()
        reader.tags()
    return found


def add_partitions_frame(
    producer: Producer, topic: str, partitions: Iterable[int], number: int
) -> bytes:
    """AddPartitionsToTxn v3: the last one that is a client's."""
    topics = flexible.array([flexible.string(topic) + flexible.int32s(partitions) + NO_TAGS])
    body = producer.encoded() + topics + NO_TAGS
    return wire.frame(ADD_PARTITIONS_TO_TXN, 3, number, body, flexible=True)


def add_offsets_frame(producer: Producer, group: str, number: int) -> bytes:
    """AddOffsetsToTxn v3."""
    body = producer.encoded() + flexible.string(group) + NO_TAGS
    return wire.frame(ADD_OFFSETS_TO_TXN, 3, number, body, flexible=True)


def txn_offset_commit_frame(
    producer: Producer,
    group: str,
    topic: str,
    offsets: Mapping[int, int],
    versions: Versions,
    number: int,
) -> bytes:
    """TxnOffsetCommit of a consumer that is no member."""
    partitions = (
        struct.pack(">iqi", index, offset, -1) + flexible.string("") + NO_TAGS
        for index, offset in offsets.items()
    )
    body = (
        flexible.string(producer.transactional_id)
        + flexible.string(group)
        + struct.pack(">qhi", producer.producer_id, producer.epoch, -1)
        + flexible.string("")
        + flexible.string(None)
        + flexible.array([flexible.string(topic) + flexible.array(partitions) + NO_TAGS])
        + NO_TAGS
    )
    return wire.frame(TXN_OFFSET_COMMIT, versions.txn_offset_commit, number, body, flexible=True)


def is_control(batch: memoryview) -> bool:
    """Whether a batch holds a marker rather than records of a client."""
    attributes: int
    (attributes,) = struct.unpack_from(">h", batch, 21)
    return bool(attributes & _CONTROL_BIT)
