"""Metrics of the processes that compact logs."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.cleaning.process_cleaner import ProcessCleaner


class CleaningMetrics:
    """See `collect`."""

    def __init__(self, cleaners: "ProcessCleaner | None") -> None:
        self._cleaners = cleaners

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        cleaners = self._cleaners
        if cleaners is None:
            return
        yield gauge(
            "varve_cleaning_processes",
            "Log cleaner processes, those idle for less than a minute included.",
            (),
            [((), cleaners.running)],
        )
        yield counter(
            "varve_cleaning_processes_started",
            "Log cleaner processes started.",
            (),
            [((), cleaners.started)],
        )
        yield counter(
            "varve_cleaning_processes_lost",
            "Log cleaner processes that ended in the middle of a run, which is retried.",
            (),
            [((), cleaners.lost)],
        )
