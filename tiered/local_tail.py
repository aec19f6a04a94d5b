"""The local log of a partition whose whole history is in remote storage: empty, at the end of it.

    <end offset>.log           empty: the next record's segment
    <end offset>.snapshot      producers as of the end, as stored with the last remote segment
    leader-epoch-checkpoint    of the whole history, from the log start on
    partition.metadata         the topic's id

Where the log starts is in the log directory's checkpoint. Nothing here is synced but the leader
epochs: what lays it marks the directory as closed cleanly when all is done.

A transaction that was open at the end can never be ended by who began it: what it wrote afterwards
is lost, and so is its coordinator's memory. `abort_open_transactions` ends it.
"""

from collections.abc import Sequence
from posixpath import join
from typing import NamedTuple
from uuid import UUID

from protocol.records.control import build_end_transaction_marker
from storage.append_origin import AppendOrigin
from storage.checkpoints import LEADER_EPOCH_CHECKPOINT, encode_epochs
from storage.filesystem import Filesystem
from storage.log import Log
from storage.log_files import LOG_SUFFIX, log_file_name
from storage.partition_metadata import PARTITION_METADATA, encode_partition_metadata
from storage.producer_snapshot import SNAPSHOT_SUFFIX


class LocalTail(NamedTuple):
    """What is known at the end of the remote part.

    Attributes:
        topic_id: Of the topic.
        end_offset: The next record's offset.
        leader_epochs: (epoch, start offset), ascending.
        producer_snapshot: A snapshot file's bytes; empty: nothing is known of producers.
    """

    topic_id: UUID
    end_offset: int
    leader_epochs: Sequence[tuple[int, int]]
    producer_snapshot: bytes


def lay_tail(filesystem: Filesystem, directory: str, tail: LocalTail) -> None:
    """Make a partition's directory with the files above; it must not be there. Blocks.

    Raises:
        DiskError: The disk refused.
    """
    filesystem.mkdir(directory)
    _write(filesystem, join(directory, log_file_name(tail.end_offset, LOG_SUFFIX)), b"")
    if tail.producer_snapshot:
        name = log_file_name(tail.end_offset, SNAPSHOT_SUFFIX)
        _write(filesystem, join(directory, name), tail.producer_snapshot)
    _write(
        filesystem, join(directory, PARTITION_METADATA), encode_partition_metadata(tail.topic_id)
    )
    filesystem.replace_bytes(
        join(directory, LEADER_EPOCH_CHECKPOINT), encode_epochs(tail.leader_epochs)
    )


def abort_open_transactions(log: Log, *, leader_epoch: int, now_ms: int) -> int:
    """Write an abort marker for every transaction that is open; returns how many there were.

    Raises:
        DiskError: The disk refused.
    """
    open_ones = [
        entry for entry in log.producer_state.active_producers() if entry.txn_first_offset >= 0
    ]
    for entry in open_ones:
        marker = build_end_transaction_marker(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            commit=False,
            coordinator_epoch=max(entry.coordinator_epoch, 0),
            timestamp_ms=now_ms,
        )
        log.append_as_leader(
            memoryview(marker),
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
        )
    log.update_high_watermark(log.log_end_offset)
    return len(open_ones)


def _write(filesystem: Filesystem, path: str, data: bytes) -> None:
    file = filesystem.open(path, create=True)
    try:
        if data:
            file.write_at(data, 0)
    finally:
        file.close()
