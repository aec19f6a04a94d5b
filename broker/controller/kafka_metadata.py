"""What a KRaft controller wrote down, as far as a broker that takes over its directory needs it.

A released Kafka keeps the cluster's metadata in the log of `__cluster_metadata-0`: record batches
like any other, whose values are

    frame version  unsigned varint, 1
    record type    unsigned varint        api key of the record
    version        unsigned varint
    record         by its type, flexible encoding

and in snapshots of it, `<end offset>-<epoch>.checkpoint`, of the same form. Read here, in offset
order:

    type  record             fields
       4  ConfigRecord       resource type int8; resource name, key, value: compact strings, the
                             value may be null
      15  ProducerIdsRecord  broker id int32, broker epoch int64, next producer id int64

The topics themselves are taken from the partition directories, which hold what there is to serve.

Source: Kafka, metadata/src/main/resources/common/metadata, MetadataRecordSerde.java.
"""

from dataclasses import dataclass, field
from posixpath import join
from struct import Struct
from struct import error as StructError
from typing import Final

from protocol.errors import DecodeError
from protocol.primitives import decode_compact_string, decode_unsigned_varint
from protocol.records.batch import iterate_batches
from protocol.records.record import iterate_records
from storage.filesystem import Filesystem
from storage.log_files import LOG_SUFFIX

METADATA_DIRECTORY: Final = "__cluster_metadata-0"
CHECKPOINT_SUFFIX: Final = ".checkpoint"
CONFIG_RECORD: Final = 4
PRODUCER_IDS_RECORD: Final = 15
BATCH_SIZE_MAX: Final = 8 * 1024 * 1024
_PRODUCER_IDS: Final = Struct(">iqq")


@dataclass(slots=True)
class KafkaMetadata:
    """Settings by (resource type, name), and the first producer id that was not given out."""

    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0

    def apply(self, value: bytes) -> None:
        """Take over one record; types that are not needed are passed over.

        Raises:
            DecodeError: The record is damaged.
        """
        try:
            self._apply(value)
        except (IndexError, StructError):
            raise DecodeError("metadata record is cut off") from None

    def _apply(self, value: bytes) -> None:
        frame_version, position = decode_unsigned_varint(value, 0)
        if frame_version != 1:
            raise DecodeError(f"metadata record has frame version {frame_version}")
        kind, position = decode_unsigned_varint(value, position)
        _, position = decode_unsigned_varint(value, position)
        if kind == CONFIG_RECORD:
            self._apply_config(value, position)
        elif kind == PRODUCER_IDS_RECORD:
            _, _, next_id = _PRODUCER_IDS.unpack_from(value, position)
            self.next_producer_id = max(self.next_producer_id, next_id)

    def _apply_config(self, value: bytes, position: int) -> None:
        resource_type = value[position]
        resource, position = decode_compact_string(value, position + 1)
        key, position = decode_compact_string(value, position)
        text, position = decode_compact_string(value, position)
        if resource is None or key is None:
            raise DecodeError("config record without a name")
        settings = self.configs.setdefault((resource_type, resource), {})
        if text is None:
            settings.pop(key, None)
        else:
            settings[key] = text


def read_kafka_metadata(filesystem: Filesystem, log_dir: str) -> KafkaMetadata | None:
    """Read a log directory's metadata log; None when it has none. Blocks for the disk.

    A damaged tail ends the reading: what came before it stands, as after a crash.

    Raises:
        DiskError: The disk refused.
    """
    directory = join(log_dir, METADATA_DIRECTORY)
    if not filesystem.exists(directory):
        return None
    names = sorted(entry.name for entry in filesystem.list_directory(directory))
    checkpoints = [name for name in names if name.endswith(CHECKPOINT_SUFFIX)]
    metadata = KafkaMetadata()
    start = 0
    if checkpoints:
        _replay(metadata, filesystem.read_bytes(join(directory, checkpoints[-1])), 0)
        start = int(checkpoints[-1].split("-", 1)[0])
    for name in names:
        if name.endswith(LOG_SUFFIX):
            _replay(metadata, filesystem.read_bytes(join(directory, name)), start)
    return metadata


def _replay(metadata: KafkaMetadata, data: bytes, start: int) -> None:
    view = memoryview(data)
    try:
        for position, header in iterate_batches(view, allow_partial=True):
            if header.is_control or header.last_offset < start:
                continue
            batch = view[position : position + header.size]
            for record in iterate_records(batch, max_size=BATCH_SIZE_MAX):
                if record.value is not None and record.offset >= start:
                    metadata.apply(record.value)
    except DecodeError:
        # Preallocated zeros, or a write that a crash cut off.
        return
