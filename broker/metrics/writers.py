"""Metrics of the log directories' writers: the pace of their disks, and queued writes."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.runtime.directory_writer import DirectoryWriters

DIRECTORY = ("directory",)


class WriterMetrics:
    """See `collect`."""

    def __init__(self, writers: "DirectoryWriters") -> None:
        self._writers = writers

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        writers = self._writers.all()
        paces = [((path,), writer.pace) for path, writer in writers.items()]
        for name, text, values in (
            (
                "varve_directory_writer_queued_bytes",
                "Bytes of batches that wait to be written to the directory.",
                [(labels, pace.queued_bytes) for labels, pace in paces],
            ),
            (
                "varve_directory_writer_queued_bytes_peak",
                "The most there have been.",
                [(labels, pace.queued_bytes_peak) for labels, pace in paces],
            ),
            (
                "varve_directory_writer_queued_bytes_max",
                "Limit of queued bytes; above it produced batches are refused with a retriable "
                "error.",
                [(labels, pace.queued_bytes_max) for labels, pace in paces],
            ),
            (
                "varve_directory_writes_are_slow",
                "1 while all batches of the directory are left to its thread.",
                [(labels, 0 if pace.is_quick else 1) for labels, pace in paces],
            ),
        ):
            yield gauge(name, text, DIRECTORY, values)
        for name, text, values in (
            (
                "varve_directory_writer_writes",
                "Calls of the directory's thread.",
                [((path,), writer.writes) for path, writer in writers.items()],
            ),
            (
                "varve_directory_late_writes",
                "Writes that took 5 ms more than their bytes take at 100 MB/s.",
                [(labels, pace.late_writes) for labels, pace in paces],
            ),
            (
                "varve_directory_slow_turns",
                "How often the directory became slow.",
                [(labels, pace.relapses) for labels, pace in paces],
            ),
            (
                "varve_directory_writes_refused",
                "Produced batches refused with a retriable error because the write queue was full.",
                [(labels, pace.refused) for labels, pace in paces],
            ),
        ):
            yield counter(name, text, DIRECTORY, values)
