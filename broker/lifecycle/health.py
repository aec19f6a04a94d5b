"""The admin port's `/healthz` (the process answers) and `/readyz` (logs and coordinators serve)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.network.admin_http import Page, Query

if TYPE_CHECKING:
    from storage.checkpoints.log_loading import LoadProgress
    from storage.environment.alerts import Alerts

ALERTS_SHOWN_MAX = 100
"""Alerts that `/readyz` lists, the rarest kinds first.

A log directory that is missing is one alert, and each coordinator whose log lay there one more: the
cause must not be lost among what it leads to.
"""


class HealthPages:
    """See the module.

    Attributes:
        is_stopping: `/readyz` answers 503, whatever else is true.
    """

    def __init__(
        self,
        progress: "LoadProgress",
        alerts: "Alerts",
        is_ready: Callable[[], bool],
        waiting_for: Callable[[], str] = str,
        store_away_ms: Callable[[], float] = float,
        waiting_coordinators: Callable[[], int] = int,
        hindrance: Callable[[], str] = str,
    ) -> None:
        """Answer what is true when a page is asked for.

        Args:
            progress: Of loading the logs.
            alerts: Listed by `/readyz`.
            is_ready: Whether every log is open and no coordinator is loading.
            waiting_for: What the start waits for, outside of this broker; empty: nothing.
            store_away_ms: How long the metadata store has not answered, or refuses this broker; 0:
                it answers.
            waiting_coordinators: Partitions of internal topics that are read once other brokers
                have their replicas in sync.
            hindrance: Why this broker is kept out by the store; empty: it is not, or is not known.
        """
        self._progress = progress
        self._alerts = alerts
        self._is_ready = is_ready
        self._waiting_for = waiting_for
        self._store_away_ms = store_away_ms
        self._waiting_coordinators = waiting_coordinators
        self._hindrance = hindrance
        self.is_stopping = False

    async def healthz(self, _query: Query) -> Page:
        """200 as long as the loop answers."""
        return Page(200, b"ok\n")

    async def readyz(self, _query: Query) -> Page:
        """200 when everything is served, else 503 with how far recovery is; then the alerts."""
        if self.is_stopping:
            return Page(503, b"stopping\n")
        if self._is_ready():
            status, state = 200, "ready"
            if waiting := self._waiting_coordinators():
                state += f"; {waiting} coordinators wait for other brokers"
        elif waiting_for := self._waiting_for():
            status, state = 503, waiting_for
        else:
            done = self._progress
            status = 503
            state = (
                f"recovering {done.partitions_done} of {done.partitions_total} partitions, "
                f"{done.bytes_done} of {done.bytes_total} bytes"
            )
        away_ms = self._store_away_ms()
        if away_ms > 0:
            # Produce, fetch and groups go on without it, so what is ready stays so.
            state += f"; metadata store away for {away_ms / 1000:.0f} s"
            if self._is_ready() and (hindrance := self._hindrance()):
                state += f": {hindrance}"
        counts = self._alerts.counts()
        alerts = sorted(self._alerts.all(), key=lambda one: counts[one.kind])
        shown = alerts[:ALERTS_SHOWN_MAX]
        lines = [state, *(f"{one.kind}: {one.subject}: {one.text}" for one in shown)]
        if len(alerts) > len(shown):
            lines.append(f"and {len(alerts) - len(shown)} more: see varve_alerts of /metrics")
        return Page(status, "".join(f"{line}\n" for line in lines).encode())
