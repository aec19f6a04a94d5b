"""Metrics of what lies in memory because of what has come and gone: each of it has a bound.

A broker whose memory grows while none of these does has a leak.
"""

from collections.abc import AsyncIterator, Callable, Mapping

from prometheus_client.core import Metric

from broker.metrics.families import gauge


class KeptMetrics:
    """See `collect`."""

    def __init__(self, counts: Mapping[str, Callable[[], int]]) -> None:
        """`counts`: what is kept, and how to find out how much of it."""
        self._counts = counts

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        yield gauge(
            "varve_kept",
            "Entries of bounded caches and tables, by name.",
            ("what",),
            [((what,), count()) for what, count in self._counts.items()],
        )
