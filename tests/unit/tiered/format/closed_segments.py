"""Closed segments for tests: whole, with every side file, as Varve's own log writes them."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from protocol.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, crc32c
from storage.checkpoints.checkpoint_files import encode_epochs
from storage.environment.filesystem import Filesystem
from storage.producers.entry import ProducerEntry
from tests.fakes.producer_snapshots import encode_snapshot
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    TopicIdPartition,
)
from tiered.tier import SegmentFiles, SideFile, TopicFacts

TOPIC = TopicIdPartition(UUID(int=0xFBFFEE << 104), "orders.eu-west", 3)
FACTS = TopicFacts(8, {"retention.ms": "1000", "remote.storage.enable": "true"}, "cluster-1")
FIRST_TIME_MS = 1_700_000_000_000


def metadata(*, start_offset: int = 0, end_offset: int = 99) -> RemoteLogSegmentMetadata:
    """Of some segment."""
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(TOPIC, UUID(int=77 << 64 | 5)),
        start_offset=start_offset,
        end_offset=end_offset,
        max_timestamp_ms=FIRST_TIME_MS,
        broker_id=1,
        event_timestamp_ms=FIRST_TIME_MS + 5,
        segment_size_bytes=1000,
        segment_leader_epochs=(SegmentEpoch(0, start_offset),),
    )


def batch(
    base_offset: int,
    count: int,
    payload: bytes,
    *,
    epoch: int = 0,
    max_timestamp: int = FIRST_TIME_MS,
    attributes: int = 0,
    producer_id: int = -1,
) -> bytes:
    """A batch whose sum fits; what it holds are no records, as nobody here looks at them."""
    size = HEADER_SIZE + len(payload)
    fields = [
        *(base_offset, size - LOG_OVERHEAD, epoch, 2, 0, attributes, count - 1),
        *(max_timestamp, max_timestamp, producer_id, -1, -1, count),
    ]
    whole = bytearray(HEADER.pack(*fields) + payload)
    fields[4] = crc32c(bytes(whole[21:]))
    HEADER.pack_into(whole, 0, *fields)
    return bytes(whole)


@dataclass
class Segment:
    """A segment's bytes, which a test may spoil before it writes them.

    Attributes:
        metadata: As a copier would begin with.
        batches: (position, last offset) of each batch.
        parts: Its side files.
    """

    metadata: RemoteLogSegmentMetadata
    log: bytearray
    batches: list[tuple[int, int]]
    parts: dict[SideFile, bytearray]

    def write(self, filesystem: Filesystem, directory: str) -> SegmentFiles:
        """Write the files, and say where."""
        filesystem.mkdir(directory)
        stem = f"{directory}/{self.metadata.start_offset:020d}"

        def put(suffix: str, data: bytearray) -> str:
            path = stem + suffix
            file = filesystem.open(path, create=True)
            file.truncate(0)
            file.write_at(data, 0)
            file.close()
            return path

        transactions = self.parts.get(SideFile.TRANSACTION)
        return SegmentFiles(
            log=put(".log", self.log),
            offset_index=put(".index", self.parts[SideFile.OFFSET]),
            time_index=put(".timeindex", self.parts[SideFile.TIMESTAMP]),
            producer_snapshot=put(".snapshot", self.parts[SideFile.PRODUCER_SNAPSHOT]),
            transaction_index=None if transactions is None else put(".txnindex", transactions),
            leader_epochs=bytes(self.parts[SideFile.LEADER_EPOCH]),
        )


def make_segment(
    payloads: Sequence[bytes],
    *,
    start_offset: int = 1000,
    records: int = 10,
    index_every: int = 2,
    abort_at: int | None = None,
    second_epoch_at: int | None = None,
    codec: int = 0,
    copy_id: int = 1,
) -> Segment:
    """A segment of one batch a payload.

    Args:
        payloads: What the batches hold.
        start_offset: Of the first.
        records: Offsets a batch.
        index_every: An index entry for each second, third ... batch.
        abort_at: Which batch is an abort marker of producer 7, whose transaction was all before.
        second_epoch_at: From which batch on the epoch is 4, not 2.
        codec: The batches say they are compressed so.
        copy_id: Of this attempt to copy it.
    """
    log = bytearray()
    batches: list[tuple[int, int]] = []
    offsets, times, transactions = bytearray(), bytearray(), bytearray()
    epochs = [SegmentEpoch(2, start_offset)]
    offset = start_offset
    newest = last_time = -1
    newest_offset = start_offset
    for number, payload in enumerate(payloads):
        if number == second_epoch_at:
            epochs.append(SegmentEpoch(4, offset))
        is_abort = number == abort_at
        time = FIRST_TIME_MS + (number if number % 3 else number * 2)
        last = offset + (1 if is_abort else records) - 1
        if number % index_every == index_every - 1:
            offsets += struct.pack(">ii", last - start_offset, len(log))
        if time > newest:
            newest, newest_offset = time, last
        if number % index_every == index_every - 1 and newest > last_time:
            times += struct.pack(">qi", newest, newest_offset - start_offset)
            last_time = newest
        if is_abort:
            transactions += struct.pack(">hqqqq", 0, 7, start_offset - 5, last, last + 1)
        batches.append((len(log), last))
        log += batch(
            offset,
            last - offset + 1,
            payload,
            epoch=epochs[-1].epoch,
            max_timestamp=time,
            attributes=0x30 if is_abort else codec,
            producer_id=7 if is_abort else -1,
        )
        offset = last + 1
    if newest > last_time:
        times += struct.pack(">qi", newest, newest_offset - start_offset)
    parts = {
        SideFile.OFFSET: offsets,
        SideFile.TIMESTAMP: times,
        SideFile.PRODUCER_SNAPSHOT: bytearray(
            encode_snapshot([ProducerEntry(7, 0, -1, FIRST_TIME_MS, -1)])
        ),
        SideFile.LEADER_EPOCH: bytearray(encode_epochs(epochs)),
    }
    if abort_at is not None:
        parts[SideFile.TRANSACTION] = transactions
    told = replace(
        metadata(start_offset=start_offset, end_offset=offset - 1),
        segment_id=RemoteLogSegmentId(TOPIC, UUID(int=copy_id)),
        max_timestamp_ms=newest,
        segment_size_bytes=len(log),
        segment_leader_epochs=tuple(epochs),
        txn_index_empty=abort_at is None,
    )
    return Segment(told, log, batches, parts)
