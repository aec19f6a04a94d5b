"""Limits of connections, over all listeners of a broker.

In the order in which they are checked (Kafka: SocketServer's ConnectionQuotas): total connections
(`max.connections`, and in any case their share of the descriptors), connections of one address
(`max.connections.per.ip` and `.overrides`), new connections a second
(`max.connection.creation.rate`).
"""

NO_BOUND = 1 << 31


class ConnectionLimits:
    """Counts connections; see the module."""

    __slots__ = (
        "_per_address",
        "_window_count",
        "_window_start_ms",
        "descriptors_max",
        "max_connections",
        "max_per_address",
        "overrides",
        "rate_max",
        "rejected",
        "total",
    )

    def __init__(
        self,
        *,
        max_connections: int,
        max_per_address: int,
        overrides: dict[str, int],
        rate_max: int,
        descriptors_max: int = NO_BOUND,
    ) -> None:
        """Kafka's settings, and `descriptors_max`, which holds in any case."""
        self.descriptors_max = descriptors_max
        self.max_connections = max_connections
        self.max_per_address = max_per_address
        self.overrides = overrides
        self.rate_max = rate_max
        self.total = 0
        self.rejected = 0
        self._per_address: dict[str, int] = {}
        self._window_start_ms = 0.0
        self._window_count = 0

    def rate_delay_ms(self, now_ms: float) -> float:
        """Milliseconds until another connection may be accepted; 0 for now."""
        if now_ms - self._window_start_ms >= 1000.0:
            self._window_start_ms = now_ms
            self._window_count = 0
        if self._window_count < self.rate_max:
            return 0.0
        return self._window_start_ms + 1000.0 - now_ms

    def refusal(self, host: str) -> str | None:
        """Why a connection from `host` is refused; None when it is accepted."""
        if self.total >= self.max_connections:
            return f"max.connections={self.max_connections} are open"
        if self.total >= self.descriptors_max:
            return f"{self.descriptors_max} are open, there is no descriptor for more (ulimit -n)"
        limit = self.overrides.get(host, self.max_per_address)
        if self._per_address.get(host, 0) >= limit:
            return f"max.connections.per.ip={limit} are open from this address"
        return None

    def opened(self, host: str) -> None:
        """Count a connection."""
        self.total += 1
        self._window_count += 1
        self._per_address[host] = self._per_address.get(host, 0) + 1

    def closed(self, host: str) -> None:
        """Uncount it."""
        self.total -= 1
        left = self._per_address.get(host, 1) - 1
        if left > 0:
            self._per_address[host] = left
        else:
            self._per_address.pop(host, None)
