"""Producer snapshots, checkpoints and notes of a data directory as rows."""

from collections.abc import Iterator

from cli.records.dump_rows import Row
from storage.checkpoints.checkpoint_files import decode_epochs, decode_offsets
from storage.checkpoints.clean_shutdown import read_broker_epoch
from storage.checkpoints.meta_properties import decode_meta_properties
from storage.checkpoints.partition_metadata import decode_partition_metadata
from storage.errors import StorageError
from storage.producers.snapshot import decode_snapshot
from storage.types.uuid_text import format_uuid


def _whole(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def read_snapshot(path: str) -> Iterator[Row]:
    """Producers of a `.snapshot` file."""
    try:
        entries = decode_snapshot(_whole(path), path)
    except StorageError as error:
        yield {"damage": str(error)}
        return
    for entry in entries:
        yield {
            "producerId": entry.producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.txn_first_offset,
            "lastTimestamp": entry.last_timestamp,
            "lastSequence": entry.last_sequence,
            "lastOffset": entry.last_data_offset,
            "offsetDelta": entry.last_offset_delta,
        }


def read_offset_checkpoint(path: str) -> Iterator[Row]:
    """Entries of one of the checkpoints of offsets."""
    try:
        for tp, offset in decode_offsets(_whole(path), path).items():
            yield {"topic": tp.topic, "partition": tp.partition, "offset": offset}
    except StorageError as error:
        yield {"damage": str(error)}


def read_epoch_checkpoint(path: str) -> Iterator[Row]:
    """Entries of a `leader-epoch-checkpoint`."""
    try:
        for epoch, start_offset in decode_epochs(_whole(path), path):
            yield {"epoch": epoch, "startOffset": start_offset}
    except StorageError as error:
        yield {"damage": str(error)}


def read_partition_metadata_file(path: str) -> Iterator[Row]:
    """The topic id."""
    try:
        yield {"topicId": format_uuid(decode_partition_metadata(_whole(path), path))}
    except StorageError as error:
        yield {"damage": str(error)}


def read_meta_properties_file(path: str) -> Iterator[Row]:
    """The directory's owner."""
    try:
        meta = decode_meta_properties(_whole(path), path)
    except StorageError as error:
        yield {"damage": str(error)}
        return
    directory_id = None if meta.directory_id is None else format_uuid(meta.directory_id)
    yield {
        "clusterId": meta.cluster_id,
        "nodeId": meta.node_id,
        "directoryId": directory_id,
        **meta.other,
    }


def read_clean_shutdown_file(path: str) -> Iterator[Row]:
    """The broker epoch."""
    yield {"brokerEpoch": read_broker_epoch(_whole(path))}
