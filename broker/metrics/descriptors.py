"""Metrics of open files: how many this process may have, and what becomes of log files."""

from collections.abc import AsyncIterator

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge
from storage.environment.descriptors import DescriptorShares
from storage.environment.filesystem import Filesystem


class DescriptorMetrics:
    """See `collect`."""

    def __init__(self, shares: DescriptorShares, filesystem: Filesystem) -> None:
        self._shares = shares
        self._filesystem = filesystem

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        shares = self._shares
        pool = self._filesystem.open_files
        yield gauge(
            "varve_descriptors_max",
            "Open files that the process may have (ulimit -n), and the shares of log files and "
            "connections in it.",
            ("of",),
            [
                (("process",), shares.limit),
                (("files",), shares.files),
                (("connections",), shares.connections),
            ],
        )
        yield gauge(
            "varve_open_files",
            "Open log and cache files, those being sent included.",
            (),
            [((), self._filesystem.open_count)],
        )
        yield gauge(
            "varve_open_files_pooled",
            "Open log and cache files that are kept for later reads.",
            (),
            [((), len(pool))],
        )
        yield counter(
            "varve_open_files_evicted",
            "Files closed to make room for others; each is opened again when needed.",
            (),
            [((), pool.evicted)],
        )
