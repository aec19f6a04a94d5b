"""Metrics of state kept in memory after its client or topic has gone: each kind has a bound.

A broker whose memory grows while none of these does has a leak.
"""

from collections.abc import AsyncIterator, Callable, Mapping

from prometheus_client.core import Metric

from broker.metrics.families import gauge


class KeptMetrics:
    """See `collect`."""

    def __init__(self, counts: Mapping[str, Callable[[], int]]) -> None:
        """`counts`: by name of the state, a function that counts it."""
        self._counts = counts

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        yield gauge(
            "varve_kept",
            "Entries of bounded caches and tables, by name.",
            ("what",),
            [((what,), count()) for what, count in self._counts.items()],
        )
