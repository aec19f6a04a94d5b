"""The admin port: `/healthz`, `/readyz`, `/metrics` and `/cluster`; remote storage adds its own."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.lifecycle.cluster_page import ClusterPage
from broker.lifecycle.health import HealthPages
from broker.network.admin_http import AdminServer, Page, Query
from broker.runtime.startup_errors import StartupError
from config.listeners import Endpoint

if TYPE_CHECKING:
    from broker.metrics.page import MetricsPage
    from config.broker import BrokerConfig


class AdminPort:
    """See the module.

    Attributes:
        server: Its pages, by path.
        health: Says at `/readyz` what the broker is doing.
        build_metrics: Makes `/metrics` at the first scrape; None: the broker is starting.
    """

    def __init__(
        self, settings: "BrokerConfig", health: HealthPages, cluster_page: ClusterPage
    ) -> None:
        self._endpoint = settings.admin_listener
        self.health = health
        self.build_metrics: Callable[[], MetricsPage] | None = None
        self._metrics_page: MetricsPage | None = None
        self.server = AdminServer(
            {
                "/healthz": health.healthz,
                "/readyz": health.readyz,
                "/metrics": self._metrics,
                "/cluster": cluster_page.cluster,
            }
        )

    async def listen(self) -> None:
        """Answer from now on; nothing where the port is switched off.

        Raises:
            StartupError: The address cannot be listened at.
        """
        if self._endpoint is not None:
            try:
                await self.server.start(self._endpoint.host, self._endpoint.port)
            except OSError as error:
                raise StartupError(
                    f"cannot listen at admin.listener={self._endpoint}: {error.strerror or error}"
                ) from error

    @property
    def address(self) -> str | None:
        """host:port, None when it is switched off."""
        endpoint = self._endpoint
        if endpoint is None:
            return None
        return str(Endpoint(endpoint.host or "127.0.0.1", self.server.port))

    async def _metrics(self, _query: Query) -> Page:
        if self._metrics_page is None:
            if self.build_metrics is None:
                return Page(503, b"starting\n")
            self._metrics_page = self.build_metrics()
        return await self._metrics_page.page()

    async def aclose(self) -> None:
        """Stop listening."""
        await self.server.aclose()
