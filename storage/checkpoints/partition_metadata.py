"""Partition metadata: which incarnation of a topic a partition's directory belongs to (KIP-516).

File `partition.metadata`, text, no line end after the last line:

    version: 0
    topic_id: 0C3x4gJVQrCW3Cm3yuTUUg      22 characters, see `storage.types.uuid_text`

A topic that is deleted and created again gets another id; a directory with the old one is stray.

Source: Kafka, PartitionMetadata.java, PartitionMetadataFile.java.
"""

from typing import Final
from uuid import UUID

from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.types.uuid_text import NIL, format_uuid, parse_uuid

PARTITION_METADATA: Final = "partition.metadata"
VERSION: Final = 0


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """The file's bytes."""
    return f"version: {VERSION}\ntopic_id: {format_uuid(topic_id)}".encode()


def decode_partition_metadata(data: bytes, source: str) -> UUID:
    """The topic id in the file.

    Args:
        data: The whole file.
        source: Its path, for the error message.

    Raises:
        CorruptFileError: It does not parse, has another version, or the nil id.
    """
    try:
        lines = data.decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines)
        version = int(fields["version"])
        topic_id = parse_uuid(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise CorruptFileError(f"partition metadata {source} does not parse: {error}") from error
    if version != VERSION:
        raise CorruptFileError(f"partition metadata {source} has unknown version {version}")
    if topic_id == NIL:
        raise CorruptFileError(f"partition metadata {source} has no topic id")
    return topic_id


def read_partition_metadata(filesystem: Filesystem, path: str) -> UUID | None:
    """The topic id of a partition's directory; None when there is no file.

    Raises:
        CorruptFileError: It does not parse.
        DiskError: It cannot be read.
    """
    if not filesystem.exists(path):
        return None
    return decode_partition_metadata(filesystem.read_bytes(path), path)
