"""Interface of the topic `__remote_log_metadata` for the metadata manager.

`broker.remote.metadata_log` is it on this broker's own logs; tests have one in memory.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID


class LogPage(NamedTuple):
    """A part of a metadata partition.

    Attributes:
        records: (offset, value) ascending; a value is empty where the record has none.
        next_offset: Where to go on; what was asked for: there is nothing more yet.
    """

    records: Sequence[tuple[int, bytes]]
    next_offset: int


class LogOffsets(NamedTuple):
    """First offset there is, and the end: all below it is committed."""

    start: int
    end: int


class MetadataLogListener(Protocol):
    """Listener of changes, called on the loop's thread; must return at once."""

    def on_elected(self, partition: int) -> None:
        """This broker leads the metadata partition: it sees deletions of partitions through."""
        ...

    def on_resigned(self, partition: int) -> None:
        """It does not any more."""
        ...

    def on_advanced(self, partition: int) -> None:
        """There may be more to read: the end has moved, or the partition has become readable."""
        ...


class MetadataLog(Protocol):
    """See the module. Touched on the loop's thread only.

    All but `open` raise RemoteStorageNotReadyError while a partition is not served here.
    """

    @property
    def topic_id(self) -> UUID:
        """Of this incarnation of the topic; after `open`."""
        ...

    @property
    def partition_count(self) -> int:
        """Of the topic as it is, whatever the settings say; after `open`."""
        ...

    async def open(self, listener: MetadataLogListener) -> None:
        """Find the topic, or create it; then notify the listener of what this broker leads.

        Raises:
            RemoteStorageError: Neither can be done now; worth another try.
        """
        ...

    async def append(self, partition: int, *values: bytes) -> int:
        """Write records without keys, all or none; the first one's offset, once they are on disk.

        Raises:
            RemoteStorageError: It was refused, or the outcome is unknown: it may still appear.
        """
        ...

    async def read(self, partition: int, offset: int, max_bytes: int) -> LogPage:
        """Committed records from `offset` on; at least one batch if there is one.

        Raises:
            RemoteOffsetNotFoundError: Below the start of the log, or above its end.
            RemoteStorageError: The log is damaged, or its disk is.
        """
        ...

    async def offsets(self, partition: int) -> LogOffsets:
        """Where the metadata partition begins and ends now."""
        ...

    def close(self) -> None:
        """Stop notifying the listener."""
        ...
