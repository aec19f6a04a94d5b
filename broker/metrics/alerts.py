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
            "Alerts that wait for an operator, by kind; /readyz has their texts.",
            ("kind",),
            [((kind.value,), count) for kind, count in self._alerts.counts().items()],
        )
        yield counter(
            "varve_alerts_refused",
            "Alerts dropped because too many are set; they are in the log only.",
            (),
            [((), self._alerts.refused)],
        )
