"""Metrics of what is wrong with the node."""

from collections.abc import AsyncIterator

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge
from storage.environment.alerts import Alerts


class AlertMetrics:
    """See `collect`."""

    def __init__(self, alerts: Alerts) -> None:
        self._alerts = alerts

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        yield gauge(
            "varve_alerts",
            "What is wrong and waits for an operator, by kind; /readyz says it in words.",
            ("kind",),
            [((kind.value,), count) for kind, count in self._alerts.counts().items()],
        )
        yield counter(
            "varve_alerts_refused",
            "Alerts that found no room among those held; they are in the log only.",
            (),
            [((), self._alerts.refused)],
        )
