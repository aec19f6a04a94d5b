"""Log lines about brokers that take part in the cluster and cannot be reached from here.

Such a broker advertises an address that other brokers cannot use, or the network between the two is
broken. Nothing else says so: its lease lives, and its followers are merely not in sync.

    connects fail for LOG_AFTER_MS ─> WARNING, again every LOG_INTERVAL_MS ─> connected ─> INFO
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage.environment.clock import Clock
from storage.environment.repeated_line import RepeatedLine

LOGGER = logging.getLogger(__name__)

LOG_AFTER_MS: Final = 5_000.0
"""A broker that was killed is fenced by then, and one that starts again listens."""

LOG_INTERVAL_MS: Final = 60_000.0

PAUSE_MS: Final = 10_000.0
"""Failures so far apart are not one outage: nothing was tried in between."""


@dataclass(slots=True)
class _Outage:
    """Connects that fail, one after the other, with no success between them."""

    since_ms: float
    last_ms: float
    line: RepeatedLine
    is_logged: bool = False


class UnreachablePeers:
    """See the module; a `PeerObserver`. Holds one record of each broker that is away."""

    def __init__(self, clock: Clock, takes_part: Callable[[int], bool]) -> None:
        """`takes_part`: whether a broker is registered, and not fenced: others are not missed."""
        self._clock = clock
        self._takes_part = takes_part
        self._outages: dict[int, _Outage] = {}

    def on_peer_connected(self, node_id: int, epoch: int) -> None:
        """It can be reached."""
        outage = self._outages.pop(node_id, None)
        if outage is not None and outage.is_logged:
            LOGGER.info("broker can be reached again node=%d", node_id)

    def on_peer_ended(self, node_id: int, epoch: int, error: OSError | None) -> None:
        """It could be reached until now."""

    def on_peer_refused(self, node_id: int, epoch: int) -> None:
        """See `PeerObserver`."""
        self._failed(node_id, "connection refused")

    def on_peer_unreachable(self, node_id: int, epoch: int, error: OSError) -> None:
        """See `PeerObserver`."""
        self._failed(node_id, str(error))

    def _failed(self, node_id: int, error: str) -> None:
        if not self._takes_part(node_id):
            self._outages.pop(node_id, None)
            return
        now_ms = self._clock.monotonic_ms()
        outage = self._outages.get(node_id)
        if outage is None or now_ms - outage.last_ms > PAUSE_MS:
            outage = self._outages[node_id] = _Outage(
                now_ms, now_ms, RepeatedLine(self._clock, LOG_INTERVAL_MS)
            )
        outage.last_ms = now_ms
        if now_ms - outage.since_ms < LOG_AFTER_MS or not outage.line.is_due():
            return
        outage.is_logged = True
        LOGGER.warning(
            "broker cannot be reached from this one, see its advertised.listeners node=%d "
            "seconds=%d error=%s",
            node_id,
            (now_ms - outage.since_ms) / 1000,
            error,
        )
