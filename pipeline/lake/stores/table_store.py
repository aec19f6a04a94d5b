"""Interface of the store of a table's files, as far as the job itself writes them.

Beside data files these are plans (`_varve/plans/...`) and, for Parquet tables, commits. Unlike the
tier's object store it has one conditional call: a commit is an object that only one writer can put.

    directory   link(2) of a file that is already on the disk
    S3          If-None-Match: *

Names that begin with `_` are no data to Delta, Iceberg and Spark.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class StoredFile(NamedTuple):
    """One file below the table; `key` is relative to it."""

    key: str
    size: int
    modified_ms: int


class TableStore(Protocol):
    """Blocking calls; see the module. Every failure is a TableUnavailableError, but `get`'s None.

    Attributes:
        uri: Of the table's folder, without a `/` at the end.
    """

    uri: str

    def scratch_path(self, key: str) -> str:
        """A local path to write a file to that `publish` then takes as `key`."""
        ...

    def publish(self, path: str, key: str) -> int:
        """Let a local file appear whole as `key`, durably; replaces. Returns its bytes."""
        ...

    def discard(self, path: str) -> None:
        """Remove a scratch file that will not be published; a missing one is fine."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """A small file, whole and durable; replaces."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Put it unless `key` is there; whether `data` is what is there now."""
        ...

    def get(self, key: str) -> bytes | None:
        """A whole small file, None when there is none."""
        ...

    def read(self, key: str, start: int, length: int) -> bytes | None:
        """A part of a file, shorter where the file ends; None when there is no file."""
        ...

    def local(self, key: str) -> AbstractContextManager[str | None]:
        """A local path at which a file of any size is while the context lasts; None: no such."""
        ...

    def size(self, key: str) -> int | None:
        """Bytes of a file, None when there is none."""
        ...

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredFile]:
        """Files whose key begins with `prefix` and is above `after`, ascending."""
        ...

    def scratch_files(self) -> Iterator[StoredFile]:
        """Unfinished files that killed processes left beside the table, in no order."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove files; missing ones are fine."""
        ...
