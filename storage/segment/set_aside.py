"""Segments set aside: files of sound batches that are not part of their log any more.

    <topic>-<partition>/
        00000000000000000000.log        the log, which now ends before a damage
        set-aside-1/                    what lay after it, byte by byte
            00000000000000000100.log
            00000000000000000100.index

They are for operators only: they count for no size, no retention and no index, and are deleted
with the partition. Each recovery that finds a damage makes a folder of its own, so that nothing is
overwritten. Kafka deletes such segments.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from storage.environment.filesystem import Filesystem
from storage.segment.segment import Segment
from storage.types.log_files import LOG_SUFFIX, SEGMENT_SUFFIXES, log_file_name, parse_log_file_name
from storage.types.topic_partition import TopicPartition

_PREFIX: Final = "set-aside-"

COPY_BYTES: Final = 1 << 20
"""Copied at a time."""


def number_of(folder_name: str) -> int | None:
    """Which of a partition's folders of this kind it is, from 1; None: it is none."""
    digits = folder_name.removeprefix(_PREFIX)
    is_one = digits != folder_name and digits.isascii() and digits.isdigit()
    return int(digits) if is_one else None


def folder_name(number: int) -> str:
    """The name of a folder; `number` counts from 1."""
    return f"{_PREFIX}{number}"


def set_aside(filesystem: Filesystem, folder: str, segments: Sequence[Segment]) -> None:
    """Move the files of segments of one partition into `folder`, which is made if it is missing.

    All of it is on disk when this returns. The last segment goes first: wherever this stops, the
    next start finds the same damage before what is left.

    Raises:
        DiskError: The disk refused; some files may have moved.
    """
    directory = segments[0].directory
    filesystem.mkdir(folder)
    filesystem.sync_directory(directory)
    for segment in reversed(segments):
        segment.close()
        # The log goes last: as long as it is in its old place, so is the segment.
        for kind in reversed(SEGMENT_SUFFIXES):
            name = log_file_name(segment.base_offset, kind)
            if filesystem.exists(f"{directory}/{name}"):
                filesystem.rename(f"{directory}/{name}", f"{folder}/{name}")
    # In this order, or a power cut could leave a file in neither.
    filesystem.sync_directory(folder)
    filesystem.sync_directory(directory)


def set_aside_end(
    filesystem: Filesystem, folder: str, segment: Segment, position: int, base_offset: int
) -> None:
    """Copy a segment from `position` on into a file of `folder`, which is made if it is missing.

    It is on disk when this returns. The segment is not changed.

    Args:
        filesystem: Where it is.
        folder: Of the partition.
        segment: One of its segments.
        position: Where a batch begins.
        base_offset: Of that batch; names the file.

    Raises:
        DiskError: The disk refused.
    """
    filesystem.mkdir(folder)
    source = segment.open_file()
    target = filesystem.open(f"{folder}/{log_file_name(base_offset, LOG_SUFFIX)}", create=True)
    for at in range(position, segment.size, COPY_BYTES):
        target.write_at(source.read_at(min(COPY_BYTES, segment.size - at), at), at - position)
    target.sync()
    target.close()
    filesystem.sync_directory(folder)
    filesystem.sync_directory(segment.directory)


def describe(
    filesystem: Filesystem, topic_partition: TopicPartition, folders: Iterable[str]
) -> str:
    """A sentence for the operator: how much lies there, and how it is got back.

    Raises:
        DiskError: A folder cannot be listed.
    """
    parts = []
    for folder in folders:
        files = [
            (name.base_offset, entry.size)
            for entry in filesystem.list_directory(folder)
            if (name := parse_log_file_name(entry.name)) is not None and name.kind == LOG_SUFFIX
        ]
        first = min((base_offset for base_offset, _ in files), default=0)
        parts.append(
            f"{folder} (segments={len(files)} bytes={sum(size for _, size in files)} "
            f"first_offset={first})"
        )
    return (
        f"Segments of {topic_partition} that lie after a damage are not part of the log and are "
        f"kept in {', '.join(parts)}. A replica fetches them again from the partition's leader. "
        "Where there was no other replica, `varve dump-log --print-data-log <folder>` shows their "
        "records, to be produced again; or stop the broker and move the files back beside the "
        "log, as long as it ends at or before their first offset. Remove the folder when it is "
        "not needed any more."
    )
