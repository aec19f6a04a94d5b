"""Shape of a table: its files, the small ones among them, and the states that can be read.

Asking reads the table's metadata: of an Iceberg table every manifest.
"""

from typing import NamedTuple

from pipeline.lake.maintain.history import History
from pipeline.lake.sinks.base import Sink


class TableShape(NamedTuple):
    """Shape of one table.

    Attributes:
        files: It has.
        small_files: Of them, below the size at which upkeep puts files together.
        size: Bytes of all files.
        states: That can be read: versions, snapshots or commits.
    """

    files: int
    small_files: int
    size: int
    states: int


def shape_of(sink: Sink, history: History, small_bytes: int) -> TableShape:
    """Read the table.

    Raises:
        TableUnavailableError: Store or catalog do not answer.
    """
    files = sink.files(sink.view())
    small = sum(1 for file in files if file.size < small_bytes)
    return TableShape(len(files), small, sum(file.size for file in files), history.states())
