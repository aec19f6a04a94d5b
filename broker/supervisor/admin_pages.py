"""The supervisor's admin port: one for all brokers.

    /healthz       200 while the supervisor's loop runs
    /readyz        200 when every broker is ready; a line or more for each
    /metrics       of all brokers, each sample with the label `broker`, and the supervisor's own
    /metrics/sum   counters and histograms of all brokers added up
    /cluster       as the first broker says that answers
    /brokers       processes, restarts, addresses, each broker's own admin port, as JSON

Brokers are asked when a page is asked for, all at once; one that does not answer is left out.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Final

from broker.metrics.page import CONTENT_TYPE, render
from broker.network.admin_http import AdminServer, Page, Query
from broker.runtime.startup_errors import StartupError
from broker.supervisor.merged_metrics import labelled, summed
from broker.supervisor.own_metrics import render_own
from broker.supervisor.page_client import PageError, fetch_page
from broker.supervisor.supervised_broker import BrokerState
from broker.supervisor.supervisor import Supervisor
from config.listeners import Endpoint
from storage.environment.off_loop import Run

JSON: Final = "application/json"
OWN: Final = "supervisor"
"""Value of the label on figures of the supervisor's process."""


class AdminPages:
    """See the module. `listen`, then `aclose`."""

    def __init__(self, supervisor: Supervisor, endpoint: Endpoint | None, run: Run) -> None:
        """Listen nowhere yet.

        Args:
            supervisor: Whose brokers are shown.
            endpoint: Where to listen; None: nowhere.
            run: Calls what would hold the loop in a thread.
        """
        self._supervisor = supervisor
        self._endpoint = endpoint
        self._run = run
        self._server = AdminServer(
            {
                "/healthz": self._healthz,
                "/readyz": self._readyz,
                "/metrics": self._metrics,
                "/metrics/sum": self._sums,
                "/cluster": self._cluster,
                "/brokers": self._brokers,
            }
        )

    async def listen(self) -> None:
        """Answer from now on.

        Raises:
            StartupError: The address cannot be listened at.
        """
        if self._endpoint is not None:
            try:
                await self._server.start(self._endpoint.host, self._endpoint.port)
            except OSError as error:
                raise StartupError(
                    f"cannot listen at admin.listener={self._endpoint}: {error.strerror or error}"
                ) from error

    @property
    def address(self) -> str:
        """host:port; empty: it is switched off."""
        endpoint = self._endpoint
        if endpoint is None:
            return ""
        return str(Endpoint(endpoint.host or "127.0.0.1", self._server.port))

    async def aclose(self) -> None:
        """Stop listening."""
        await self._server.aclose()

    async def _healthz(self, _query: Query) -> Page:
        return Page(200, b"ok\n")

    async def _readyz(self, _query: Query) -> Page:
        pages = await self._ask("/readyz")
        lines, status = [], 200
        for broker in self._supervisor.brokers:
            node_id = broker.plan.node_id
            found = pages.get(node_id)
            if broker.state is not BrokerState.SERVING:
                said = [broker.state.value]
            elif isinstance(found, PageError):
                said = [f"its admin port does not answer: {found}"]
            elif found is None:
                said = [BrokerState.STARTING.value]
            else:
                said = found[1].decode(errors="replace").splitlines()
            if not isinstance(found, tuple) or found[0] != 200:
                status = 503
            lines += [f"broker {node_id}: {line}\n" for line in said]
        return Page(status, "".join(lines).encode())

    async def _metrics(self, _query: Query) -> Page:
        pages = await self._metrics_of_brokers()
        own = await self._run(render_own, self._supervisor, set(pages))
        body = await self._run(labelled, {**pages, OWN: await self._run(render, ())})
        return Page(200, body + own, CONTENT_TYPE)

    async def _sums(self, _query: Query) -> Page:
        return Page(200, await self._run(summed, await self._metrics_of_brokers()), CONTENT_TYPE)

    async def _metrics_of_brokers(self) -> dict[str, bytes]:
        """Pages of those that answer, by node id."""
        pages = await self._ask("/metrics")
        return {
            str(node_id): found[1]
            for node_id, found in pages.items()
            if isinstance(found, tuple) and found[0] == 200
        }

    async def _cluster(self, _query: Query) -> Page:
        for found in (await self._ask("/cluster")).values():
            if isinstance(found, tuple) and found[0] == 200:
                return Page(200, found[1], JSON)
        return Page(503, b'{"error": "no broker answers"}\n', JSON)

    async def _brokers(self, _query: Query) -> Page:
        document = [
            {
                "broker": broker.plan.node_id,
                "state": broker.state.value,
                "pid": broker.pid or None,
                "restarts": broker.restarts,
                "listeners": [
                    f"{name}://{Endpoint(host, port)}"
                    for name, host, port in (broker.listening.addresses if broker.listening else ())
                ],
                "admin": broker.listening.admin if broker.listening else None,
            }
            for broker in self._supervisor.brokers
        ]
        return Page(200, json.dumps(document).encode() + b"\n", JSON)

    async def _ask(self, path: str) -> Mapping[int, tuple[int, bytes] | PageError]:
        """A page of each broker that has an admin port now, or why there is none."""
        asked = {
            broker.plan.node_id: fetch_page(broker.listening.admin, path)
            for broker in self._supervisor.brokers
            if broker.listening is not None and broker.listening.admin
        }
        found = await asyncio.gather(*asked.values(), return_exceptions=True)
        pages: dict[int, tuple[int, bytes] | PageError] = {}
        for node_id, one in zip(asked, found, strict=True):
            if isinstance(one, BaseException) and not isinstance(one, PageError):
                raise one
            pages[node_id] = one
        return pages
