"""The states of a table that can still be read, and the expiry of older ones.

    trim     older states end: they cannot be read any more; what says where they were is folded
    reach    the files of those that are left, and the files that only ended states had
    fold     what only ended states needed of the table's own metadata is removed

Each kind of table has one: `DeltaHistory`, `IcebergHistory`, `ParquetHistory`.
"""

from typing import NamedTuple, Protocol

from pipeline.lake.sinks.base import TableView


class Times(NamedTuple):
    """When it is.

    Attributes:
        store_ms: By the store's clock, which gives files their times.
        machine_ms: By this machine's.
    """

    store_ms: int
    machine_ms: int

    @property
    def now_ms(self) -> int:
        """The earlier one: what is old by it is old by both."""
        return min(self.store_ms, self.machine_ms)


class Reach(NamedTuple):
    """Files by their keys.

    Attributes:
        kept: Of states that can be read, and of the table's metadata.
        expired: Only of states that ended; no age needs to be waited for.
    """

    kept: frozenset[str]
    expired: frozenset[str]


class History(Protocol):
    """See the module. Every failure is a LakeError."""

    def states(self) -> int:
        """Number of the table's states that can be read."""
        ...

    def trim(self, times: Times, keep_ms: int, *, dry_run: bool) -> int:
        """End states that are older than `keep_ms`; how many that are."""
        ...

    def reach(self, view: TableView, times: Times, keep_ms: int) -> Reach:
        """Of a view that was taken after the listing of the table's files.

        Raises:
            ForeignTableError, TableUnavailableError: Not all of it can be read.
        """
        ...

    def fold(self, view: TableView, times: Times, keep_ms: int) -> int:
        """Remove what only ended states needed of the metadata; how many objects."""
        ...

    def is_metadata(self, key: str) -> bool:
        """Whether a file is metadata, unneeded once no state has it."""
        ...
