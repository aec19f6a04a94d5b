"""Probe of a store's conditional put: where it is ignored, two jobs could both commit.

Delta's commits on S3 and a Parquet table's are objects that only one writer can put, by
`If-None-Match: *`. There are servers that take the header and put all the same, and the loser's
rows would be gone without a word. So it is tried before the first commit of a process.
"""

from typing import Final

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.stores.table_store import TableStore
from storage.environment.randomness import Randomness

PROBE: Final = "_varve/probe"


def check_fence(store: TableStore, randomness: Randomness) -> None:
    """Put a small object twice, with other bytes each time.

    Raises:
        ForeignTableError: The second put was taken, or the store does not know such puts.
        TableUnavailableError: The store does not answer.
    """
    for _ in range(2):
        taken = store.put_if_absent(PROBE, randomness.uuid4().hex.encode())
    if taken:
        raise ForeignTableError(
            f"{store.uri}: the store ignores If-None-Match, so one of two jobs that commit at the "
            "same time would lose its commit; keep the table in another store, or as an Iceberg "
            "table, whose catalog decides between commits"
        )
