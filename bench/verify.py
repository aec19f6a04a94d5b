"""The untimed pass: whatever was measured is read back and checked, byte for byte.

A fast broker that loses, reorders or damages scores nothing.
"""

import socket
import struct
import time
from dataclasses import dataclass

from fastcrc.crc32 import iscsi as crc32c

from bench import transaction_wire, wire


class VerificationError(AssertionError):
    """What was read back is not what was acknowledged."""


@dataclass(slots=True)
class Verified:
    """What a pass over one partition found."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0


def verify_partition(
    connection: socket.socket,
    topic: str,
    partition: int,
    *,
    expected_records: int | None = None,
    value: bytes | None = None,
    start_offset: int = 0,
    end_offset: int | None = None,
    empty_answers_max: int = 0,
) -> Verified:
    """Fetch a partition and check every batch's CRC-32C and the continuity of offsets.

    Args:
        connection: To the partition's leader.
        topic: Topic name.
        partition: Partition index.
        expected_records: How many records were acknowledged; must all be there, and no other.
        value: A value that the last record of every batch must end with (its header count, one
            zero byte, follows it).
        start_offset: Where to begin.
        end_offset: Where to stop (exclusive); the log end offset when None.
        empty_answers_max: So many answers in a row may hold nothing: remote storage may be slow.

    Raises:
        VerificationError: Naming topic, partition and offset.
    """
    if end_offset is None:
        end_offset = wire.list_offset(connection, topic, partition)
    found = Verified()
    offset = start_offset
    empty_answers = 0
    where = f"{topic}-{partition}"
    while offset < end_offset:
        connection.sendall(wire.fetch_frame(topic, partition, offset, max_bytes=8 << 20))
        answer = wire.parse_fetch(wire.receive(connection))
        if answer.error_code:
            raise VerificationError(f"{where}@{offset}: Fetch error {answer.error_code}")
        before = offset
        for base_offset, count, batch in wire.whole_batches(answer.records):
            last_offset_delta: int
            (crc, _attributes, last_offset_delta) = struct.unpack_from(">IhI", batch, 17)
            if base_offset != offset or last_offset_delta != count - 1:
                raise VerificationError(
                    f"{where}@{offset}: got a batch {base_offset}+{last_offset_delta + 1}"
                )
            if crc32c(batch[21:]) != crc:
                raise VerificationError(f"{where}@{offset}: CRC-32C does not match")
            if value is not None and bytes(batch[-len(value) - 1 : -1]) != value:
                raise VerificationError(f"{where}@{offset}: other bytes than were sent")
            offset += count
            found.batches += 1
            found.records += count
            found.size_bytes += len(batch)
        empty_answers = empty_answers + 1 if offset == before else 0
        if empty_answers > empty_answers_max:
            raise VerificationError(f"{where}@{offset}: nothing there, log end is {end_offset}")
    if expected_records is not None and found.records != expected_records:
        raise VerificationError(
            f"{where}: {found.records} records, {expected_records} were acknowledged"
        )
    return found


def verify_committed(
    connection: socket.socket,
    topic: str,
    partition: int,
    expected_records: int,
    *,
    timeout_s: float = 10.0,
) -> None:
    """Read a partition as `read_committed` does: what was acknowledged, and no open transaction.

    Only for topics in which every transaction was committed. Markers may still be on their way.

    Raises:
        VerificationError: Naming topic and partition.
    """
    where = f"{topic}-{partition}"
    deadline = time.monotonic() + timeout_s
    offset = records = 0
    while offset < (end := wire.list_offset(connection, topic, partition)):
        connection.sendall(
            wire.fetch_frame(
                *(topic, partition, offset),
                max_bytes=8 << 20,
                max_wait_ms=10,
                isolation_level=transaction_wire.ISOLATION_COMMITTED,
            )
        )
        before = offset
        answer = wire.parse_fetch(wire.receive(connection))
        for base_offset, count, batch in wire.whole_batches(answer.records):
            if base_offset != offset:
                raise VerificationError(f"{where}@{offset}: got a batch at {base_offset}")
            offset += count
            if not transaction_wire.is_control(batch):
                records += count
        if offset == before and time.monotonic() > deadline:
            raise VerificationError(f"{where}@{offset}: an open transaction, log end is {end}")
    if records != expected_records:
        raise VerificationError(
            f"{where}: {records} committed records, {expected_records} were acknowledged"
        )
