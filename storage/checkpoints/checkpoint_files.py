"""Checkpoint files: small text tables, replaced as a whole.

    0                  version
    2                  number of entries
    events 0 1874      one entry a line, fields separated by a space; every line ends with LF
    events 1 1902

In a log directory (entries `topic partition offset`):

    recovery-point-offset-checkpoint   first offset not known to be on disk
    log-start-offset-checkpoint        first offset a client may read
    replication-offset-checkpoint      high watermark
    cleaner-offset-checkpoint          first offset the cleaner has not cleaned
    remote-offset-checkpoint           last offset copied to remote storage; Kafka has none

The first of them may have a row of no partition, `NO_GAPS_ABOVE`: where logs have gaps between two
segments, those lie below the recovery points. It is a row of that very file because whoever else
writes it, as Kafka and releases of Varve that did not know it, leaves out what it has no log of:
then that is not known any more.

In a partition's directory: `leader-epoch-checkpoint` (entries `epoch start-offset`).

Written to `<name>.tmp`, synced, renamed over the old one, directory synced. A file that does not
parse raises `CorruptFileError`; what to fall back to is the caller's to know.

Source: Kafka, CheckpointFile.java, OffsetCheckpointFile.java, LeaderEpochCheckpointFile.java.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.types.topic_partition import TopicPartition

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
REMOTE_OFFSET_CHECKPOINT: Final = "remote-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

NO_GAPS_ABOVE: Final = TopicPartition("varve:no-gaps-above", 0)
"""Its row has a 0; no topic can have the name."""

VERSION: Final = 0
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


def encode_table(rows: Sequence[str]) -> bytes:
    """A checkpoint file with these entries."""
    return "\n".join((str(VERSION), str(len(rows)), *rows, "")).encode()


def decode_table(data: bytes, source: str, columns: int) -> list[list[str]]:
    """The entries of a checkpoint file, split into fields.

    An empty file has no entries: Kafka creates it so.

    Args:
        data: The whole file.
        source: Its path, for the error message.
        columns: Fields every entry must have.

    Raises:
        CorruptFileError: Other version, entries missing or left over, a line of another shape.
    """
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"checkpoint {source} is not text") from error
    if not lines:
        return []
    if parse_number(lines[0], source) != VERSION:
        raise CorruptFileError(f"checkpoint {source} has unknown version {lines[0]!r}")
    if len(lines) == 1:
        return []
    count = parse_number(lines[1], source)
    rows = [line.split() for line in lines[2:]]
    if len(rows) != count:
        raise CorruptFileError(f"checkpoint {source} claims {count} entries and has {len(rows)}")
    for row, line in zip(rows, lines[2:], strict=True):
        if len(row) != columns:
            raise CorruptFileError(f"checkpoint {source} has a malformed line: {line[:100]!r}")
    return rows


def parse_number(text: str, source: str, maximum: int = _INT64_MAX) -> int:
    """A number of 0 .. `maximum` in plain digits.

    Raises:
        CorruptFileError: Anything else.
    """
    # isdecimal alone would also take digits of other scripts; the length bounds int()'s work.
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > maximum:
        raise CorruptFileError(f"checkpoint {source} has {text[:100]!r} where a number belongs")
    return int(text)


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint's bytes."""
    return encode_table([f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()])


def decode_offsets(data: bytes, source: str) -> dict[TopicPartition, int]:
    """The offsets in an offset checkpoint.

    Raises:
        CorruptFileError: It does not parse.
    """
    return {
        TopicPartition(topic, parse_number(partition, source, _INT32_MAX)): parse_number(
            offset, source
        )
        for topic, partition, offset in decode_table(data, source, 3)
    }


def read_offsets(filesystem: Filesystem, path: str) -> dict[TopicPartition, int]:
    """Read an offset checkpoint; a missing file has no entries.

    Raises:
        CorruptFileError: It does not parse.
        DiskError: It cannot be read.
    """
    if not filesystem.exists(path):
        return {}
    return decode_offsets(filesystem.read_bytes(path), path)


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """A leader epoch checkpoint's bytes, from (epoch, start offset)."""
    return encode_table([f"{epoch} {start}" for epoch, start in entries])


def decode_epochs(data: bytes, source: str) -> list[tuple[int, int]]:
    """(epoch, start offset) pairs of a leader epoch checkpoint, as they stand there.

    Raises:
        CorruptFileError: It does not parse, or its last line has no end: it is written in place,
            and a power cut can leave a number without its last digits.
    """
    rows = decode_table(data, source, 2)
    if rows and not data.endswith(b"\n"):
        raise CorruptFileError(f"checkpoint {source} ends within a line")
    return [
        (parse_number(epoch, source, _INT32_MAX), parse_number(start, source))
        for epoch, start in rows
    ]
