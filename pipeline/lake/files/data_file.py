"""A Parquet file of a table: its name, and what a commit has to know of it.

A name says what is inside, so that repeated work of a stored plan makes the same files:

    <folder>[<field>=<value>/...]
        part-<topic>-<topic id>-<partition>-<start>-<end>-<fingerprint>-<n>.parquet

    topic         at most its first 100 characters
    topic id      8 hexadecimal digits: a recreated topic begins again at offset 0
    start, end    of the task that wrote it, 20 digits each
    fingerprint   of all that decides what the bytes are (`pipeline.lake.batch.batch_plan`)
    n             a task may write several

and of a table that is kept by key, which has files per key bucket and each of them sorted by key:

    <folder>part-<topic>-<topic id>-bucket-<bucket>-<batch>-<fingerprint>-<n>.parquet

    bucket        5 digits
    batch         that rewrote all files of the bucket, 20 digits
    n             ascending: the keys of a file are above those of the one before

Files that `varve pipeline maintain` has put together hold rows of many tasks and are named

        compact-<topic>-<topic id>-<attempt>-<n>.parquet

    attempt       32 hexadecimal digits, another one each time: a name that was ever left behind
                  is never taken again, so removing what was left cannot meet a new file
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

TOPIC_CHARACTERS: Final = 100
"""Of a name, which must fit the 255 bytes of a file system."""

SEVERAL: Final = -1
"""For a partition, of a file with rows of more than one."""

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"


class DataFile(NamedTuple):
    """One file; travels from a task to the commit.

    Attributes:
        key: Below the table's folder.
        size: Bytes.
        rows: In it.
        partition: Of the topic; -1: of several.
        first_offset, last_offset: Of its rows, both inclusive.
        min_timestamp_us, max_timestamp_us: Of its rows.
        values: Of the fields the table is partitioned by, as text, in the table's order.
    """

    key: str
    size: int
    rows: int
    partition: int
    first_offset: int
    last_offset: int
    min_timestamp_us: int
    max_timestamp_us: int
    values: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For a commit object."""
        return {**self._asdict(), "values": dict(self.values)}


def data_file_from_json(found: Mapping[str, Any]) -> DataFile:
    """Decode what `as_json` gave; KeyError, TypeError or ValueError where it is something else."""
    numbers = {name: int(found[name]) for name in DataFile._fields if name not in ("key", "values")}
    values = tuple((str(name), str(value)) for name, value in found["values"].items())
    return DataFile(key=str(found["key"]), values=values, **numbers)


_NAME: Final = re.compile(
    r"part-.+-(?P<id>[0-9a-f]{8})-(?P<partition>\d+)-(?P<start>\d{20})-(?P<end>\d{20})"
    r"-(?P<fingerprint>[0-9a-f]{8})-\d+\.parquet"
)


class NamedRange(NamedTuple):
    """The rows of a file, by its name; exclusive end."""

    topic_id_start: str
    partition: int
    start: int
    end: int
    fingerprint: str


def range_of(key: str) -> NamedRange | None:
    """Parse a file's name; None: it is not one of a job's."""
    match = _NAME.fullmatch(key.rpartition("/")[2])
    if match is None:
        return None
    partition, start, end = (int(match[name]) for name in ("partition", "start", "end"))
    return NamedRange(match["id"], partition, start, end, match["fingerprint"])


_BUCKET_NAME: Final = re.compile(
    r"part-.+-(?P<id>[0-9a-f]{8})-bucket-(?P<bucket>\d{5})-(?P<batch>\d{20})"
    r"-(?P<fingerprint>[0-9a-f]{8})-(?P<number>\d+)\.parquet"
)


class NamedBucket(NamedTuple):
    """The rows of a keyed table's file, by its name."""

    topic_id_start: str
    bucket: int
    batch: int
    fingerprint: str
    number: int


def bucket_of(key: str) -> NamedBucket | None:
    """Parse a file's name; None: it is not one of a keyed table's."""
    match = _BUCKET_NAME.fullmatch(key.rpartition("/")[2])
    if match is None:
        return None
    bucket, batch, number = (int(match[name]) for name in ("bucket", "batch", "number"))
    return NamedBucket(match["id"], bucket, batch, match["fingerprint"], number)


class Names(Protocol):
    """Names of files that are written together."""

    @property
    def partition(self) -> int:
        """Of the topic, that all rows are of; -1: of several."""
        ...

    def key(self, values: tuple[tuple[str, str], ...], number: int) -> str:
        """Of file `number`, in the folder of the values it is partitioned by."""
        ...


class BucketNames(NamedTuple):
    """`Names` of the files of one key bucket, as one batch writes it."""

    folder: str
    topic: str
    topic_id: UUID
    bucket: int
    batch: int
    fingerprint: str

    @property
    def partition(self) -> int:
        """Keys of a bucket may come from any partition."""
        return -1

    def key(self, values: tuple[tuple[str, str], ...], number: int) -> str:
        """Of file `number`; keyed tables are not partitioned."""
        assert not values
        return (
            f"{self.folder}part-{self.topic[:TOPIC_CHARACTERS]}-{self.topic_id.hex[:8]}"
            f"-bucket-{self.bucket:05d}-{self.batch:020d}-{self.fingerprint}-{number:05d}.parquet"
        )


_COMPACTED: Final = re.compile(r"compact-.+-(?P<id>[0-9a-f]{8})-[0-9a-f]{32}-\d+\.parquet")


def incarnation_of(key: str) -> str | None:
    """The first 8 digits of the id of the topic that a file has rows of; None: not a job's file."""
    match = _COMPACTED.fullmatch(key.rpartition("/")[2])
    if match is not None:
        return match["id"]
    named = range_of(key) or bucket_of(key)
    return None if named is None else named.topic_id_start


def is_compacted(key: str) -> bool:
    """Whether a file was put together of others."""
    return _COMPACTED.fullmatch(key.rpartition("/")[2]) is not None


def folders_of(folder: str, values: tuple[tuple[str, str], ...]) -> str:
    """In front of a file's name: the table's folder, and one per value it is partitioned by."""
    return folder + "".join(f"{name}={value or NO_VALUE}/" for name, value in values)


class CompactedNames(NamedTuple):
    """`Names` of the files that one task of `maintain` writes."""

    folder: str
    topic: str
    topic_id_start: str
    attempt: str
    partition: int = SEVERAL

    def key(self, values: tuple[tuple[str, str], ...], number: int) -> str:
        """Of the task's file `number`, in the folder of the values it is partitioned by."""
        return (
            f"{folders_of(self.folder, values)}compact-{self.topic[:TOPIC_CHARACTERS]}"
            f"-{self.topic_id_start}-{self.attempt}-{number:03d}.parquet"
        )


class FileNames(NamedTuple):
    """`Names` of the files of one task."""

    folder: str
    topic: str
    topic_id: UUID
    partition: int
    start: int
    end: int
    fingerprint: str

    def key(self, values: tuple[tuple[str, str], ...], number: int) -> str:
        """Of the task's file `number`, in the folder of the values it is partitioned by."""
        return (
            f"{folders_of(self.folder, values)}part-{self.topic[:TOPIC_CHARACTERS]}"
            f"-{self.topic_id.hex[:8]}-{self.partition}-{self.start:020d}-{self.end:020d}"
            f"-{self.fingerprint}-{number:03d}.parquet"
        )
