"""Metadata of a KRaft controller's log, as far as a broker that takes over its directory needs it.

A released Kafka keeps the cluster's metadata in the log of `__cluster_metadata-0`: record batches
like any other, whose values are

    frame version  unsigned varint, 1
    record type    unsigned varint        api key of the record
    version        unsigned varint
    record         by its type, flexible encoding

and in snapshots of it, `<end offset>-<epoch>.checkpoint`, of the same form. Read here, in offset
order:

    type  record                 fields
       2  TopicRecord            name compact string, topic id uuid
       3  PartitionRecord        partition int32, topic id uuid; replicas, ISR, removing, adding:
                                 compact arrays of int32; leader, leader epoch, partition epoch
                                 int32; from version 1 the directories, a compact array of uuids
       4  ConfigRecord           resource type int8; resource name, key, value: compact strings,
                                 the value may be null
       5  PartitionChangeRecord  partition int32, topic id uuid; tagged fields, of them 2 replicas,
                                 8 directories
       9  RemoveTopicRecord      topic id uuid
      15  ProducerIdsRecord      broker id int32, broker epoch int64, next producer id int64

The topics themselves are taken from the partition directories, which hold what there is to serve;
what is read here of topics and partitions shows what is missing there.

Source: Kafka, metadata/src/main/resources/common/metadata, MetadataRecordSerde.java.
"""

from dataclasses import dataclass, field
from posixpath import join
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple
from uuid import UUID

from protocol.errors import DecodeError
from protocol.primitives import decode_compact_string, decode_unsigned_varint
from protocol.records.batch import iterate_batches
from protocol.records.record import iterate_records
from storage.environment.filesystem import Filesystem
from storage.types.log_files import LOG_SUFFIX

METADATA_DIRECTORY: Final = "__cluster_metadata-0"
CHECKPOINT_SUFFIX: Final = ".checkpoint"
TOPIC_RECORD: Final = 2
PARTITION_RECORD: Final = 3
CONFIG_RECORD: Final = 4
PARTITION_CHANGE_RECORD: Final = 5
REMOVE_TOPIC_RECORD: Final = 9
PRODUCER_IDS_RECORD: Final = 15
TOPIC_RESOURCE: Final = 2
BATCH_SIZE_MAX: Final = 8 * 1024 * 1024
_PRODUCER_IDS: Final = Struct(">iqq")
_PARTITION: Final = Struct(">i16s")
_EPOCHS: Final = Struct(">iii")
_TAG_REPLICAS: Final = 2
_TAG_DIRECTORIES: Final = 8


class KafkaReplicas(NamedTuple):
    """Replicas of a partition: node ids, and the log directory of each; empty if unknown."""

    replicas: tuple[int, ...]
    directories: tuple[UUID, ...]


@dataclass(slots=True)
class KafkaMetadata:
    """What the log says.

    Attributes:
        configs: Settings by (resource type, name).
        next_producer_id: The first that was not given out.
        topics: Their ids by name.
        partitions: By topic id, then index.
    """

    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    topics: dict[str, UUID] = field(default_factory=dict)
    partitions: dict[UUID, dict[int, KafkaReplicas]] = field(default_factory=dict)

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
        version, position = decode_unsigned_varint(value, position)
        if kind == CONFIG_RECORD:
            self._apply_config(value, position)
        elif kind == TOPIC_RECORD:
            name, position = decode_compact_string(value, position)
            if name is None:
                raise DecodeError("topic record without a name")
            self.topics[name] = _uuid(value, position)
        elif kind == REMOVE_TOPIC_RECORD:
            self._remove(_uuid(value, position))
        elif kind == PARTITION_RECORD:
            self._apply_partition(value, position, version)
        elif kind == PARTITION_CHANGE_RECORD:
            self._apply_change(value, position)
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

    def _remove(self, topic_id: UUID) -> None:
        self.partitions.pop(topic_id, None)
        for name in [name for name, one in self.topics.items() if one == topic_id]:
            del self.topics[name]
            self.configs.pop((TOPIC_RESOURCE, name), None)

    def _apply_partition(self, value: bytes, position: int, version: int) -> None:
        index, topic_id = _PARTITION.unpack_from(value, position)
        replicas, position = _int32s(value, position + _PARTITION.size)
        for _ in range(3):
            _, position = _int32s(value, position)
        _EPOCHS.unpack_from(value, position)
        position += _EPOCHS.size
        directories = _uuids(value, position) if version >= 1 else ()
        partitions = self.partitions.setdefault(UUID(bytes=topic_id), {})
        partitions[index] = KafkaReplicas(replicas, directories)

    def _apply_change(self, value: bytes, position: int) -> None:
        index, topic_id = _PARTITION.unpack_from(value, position)
        known = self.partitions.get(UUID(bytes=topic_id), {})
        if index not in known:
            return
        replicas, directories = known[index]
        count, position = decode_unsigned_varint(value, position + _PARTITION.size)
        for _ in range(count):
            tag, position = decode_unsigned_varint(value, position)
            size, position = decode_unsigned_varint(value, position)
            if tag == _TAG_REPLICAS:
                replicas, _ = _int32s(value, position)
            elif tag == _TAG_DIRECTORIES:
                directories = _uuids(value, position)
            position += size
        known[index] = KafkaReplicas(replicas, directories)


def _uuid(value: bytes, position: int) -> UUID:
    raw = value[position : position + 16]
    if len(raw) != 16:
        raise DecodeError("metadata record is cut off")
    return UUID(bytes=raw)


def _uuids(value: bytes, position: int) -> tuple[UUID, ...]:
    size, position = decode_unsigned_varint(value, position)
    return tuple(_uuid(value, position + 16 * i) for i in range(_count(value, size, 16)))


def _int32s(value: bytes, position: int) -> tuple[tuple[int, ...], int]:
    size, position = decode_unsigned_varint(value, position)
    array = Struct(f">{_count(value, size, 4)}i")
    return array.unpack_from(value, position), position + array.size


def _count(value: bytes, size: int, item_size: int) -> int:
    """Elements of a compact array, null being none; more than fit cannot be meant."""
    count = max(size - 1, 0)
    if count * item_size > len(value):
        raise DecodeError(f"metadata record has an array of {count}")
    return count


def read_kafka_metadata(filesystem: Filesystem, log_dir: str) -> KafkaMetadata | None:
    """Read a log directory's metadata log; None when it has none. Blocks for the disk.

    A damaged tail ends the reading: what came before it stands, as after a crash. A log whose
    beginning is gone, with no snapshot of it, counts as none: its content is unknown.

    Raises:
        DiskError: The disk refused.
    """
    directory = join(log_dir, METADATA_DIRECTORY)
    if not filesystem.exists(directory):
        return None
    names = sorted(entry.name for entry in filesystem.list_directory(directory))
    checkpoints = [name for name in names if name.endswith(CHECKPOINT_SUFFIX)]
    logs = [name for name in names if name.endswith(LOG_SUFFIX)]
    if not checkpoints and (not logs or int(logs[0].removesuffix(LOG_SUFFIX)) > 0):
        return None
    metadata = KafkaMetadata()
    start = 0
    if checkpoints:
        _replay(metadata, filesystem.read_bytes(join(directory, checkpoints[-1])), 0)
        start = int(checkpoints[-1].split("-", 1)[0])
    for name in logs:
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
