"""Fetch quotas of remote storage: of the whole broker, and of each client.

Broker-wide (`remote.log.manager.fetch.max.bytes.per.second`): bytes that come over the network. A
read that needs some while the rate is above the quota gives an empty answer without an error; the
other partitions of the Fetch go on. What is in the caches costs nothing.

Per client: bytes that are answered from remote segments, whether they were in the caches or not:
that is what a client can know.

The rate is Kafka's: bytes in the windows that are still valid, over the time since the oldest of
them began, at least one window:

    |  window  |  window  | ... |  window (now) |        at most `windows` of them
    ^ oldest                            ^ now

Source: Kafka, RLMQuotaManager.java, SimpleRate.java, SampledStat.java, QuotaUtils.java; KIP-956.
"""

from collections import OrderedDict, deque
from typing import Final

from config.tier import UNLIMITED
from storage.environment.clock import Clock
from tiered.cache.fair_queue import Client

CLIENTS_MAX: Final = 10_000
"""Clients whose rate is remembered; of more, the one that was idle longest is forgotten."""


class RateQuota:
    """A limit in bytes per second.

    Attributes:
        bytes_per_second: The limit.
    """

    __slots__ = ("_samples", "_total", "_window_ms", "_windows", "bytes_per_second")

    def __init__(self, bytes_per_second: int, windows: int, window_seconds: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._windows = windows
        self._window_ms = window_seconds * 1000.0
        # (start of the window in ms, bytes in it), ascending.
        self._samples: deque[list[float]] = deque()
        self._total = 0.0

    def resize(self, bytes_per_second: int, windows: int, window_seconds: int) -> None:
        """A new limit; what was recorded stays."""
        self.bytes_per_second = bytes_per_second
        self._windows = windows
        self._window_ms = window_seconds * 1000.0

    def record(self, size: int, now_ms: float) -> None:
        """So many bytes have come."""
        self._expire(now_ms)
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            samples.append([now_ms, 0.0])
            while len(samples) > self._windows:
                self._total -= samples.popleft()[1]
        samples[-1][1] += size
        self._total += size

    def rate(self, now_ms: float) -> float:
        """Bytes per second now."""
        self._expire(now_ms)
        if not self._samples:
            return 0.0
        elapsed_ms = max(now_ms - self._samples[0][0], self._window_ms)
        return self._total * 1000.0 / elapsed_ms

    def throttle_ms(self, now_ms: float) -> float:
        """0 while the rate is within the limit, else for how long it should pause (Kafka's)."""
        if not self._samples:
            return 0.0
        rate = self.rate(now_ms)
        if rate <= self.bytes_per_second:
            return 0.0
        return (rate - self.bytes_per_second) / max(self.bytes_per_second, 1) * self._window_ms

    def _expire(self, now_ms: float) -> None:
        oldest_ms = now_ms - self._windows * self._window_ms
        samples = self._samples
        while samples and samples[0][0] <= oldest_ms:
            self._total -= samples.popleft()[1]


class FetchQuota:
    """Both quotas; see the module.

    Attributes:
        throttled: Reads that were answered with nothing, of the broker's quota.
        throttle_ms_total: Sum of the throttle times they met (Kafka's metric is their average).
        client_throttled, client_throttle_ms_total: The same of clients' quotas.
    """

    __slots__ = (
        "_broker",
        "_client_limit",
        "_clients",
        "_clock",
        "_window_seconds",
        "_windows",
        "client_throttle_ms_total",
        "client_throttled",
        "throttle_ms_total",
        "throttled",
    )

    def __init__(
        self,
        clock: Clock,
        *,
        bytes_per_second: int,
        client_bytes_per_second: int,
        windows: int,
        window_seconds: int,
    ) -> None:
        self._clock = clock
        self._windows = windows
        self._window_seconds = window_seconds
        self._broker = RateQuota(bytes_per_second, windows, window_seconds)
        self._client_limit = client_bytes_per_second
        self._clients: OrderedDict[Client, RateQuota] = OrderedDict()
        self.throttled = 0
        self.throttle_ms_total = 0.0
        self.client_throttled = 0
        self.client_throttle_ms_total = 0.0

    def resize(
        self,
        *,
        bytes_per_second: int,
        client_bytes_per_second: int,
        windows: int,
        window_seconds: int,
    ) -> None:
        """New limits, from now on."""
        self._broker.resize(bytes_per_second, windows, window_seconds)
        self._client_limit = client_bytes_per_second
        self._windows = windows
        self._window_seconds = window_seconds
        for quota in self._clients.values():
            quota.resize(client_bytes_per_second, windows, window_seconds)

    @property
    def clients(self) -> int:
        """Clients whose rate is remembered."""
        return len(self._clients)

    def allows_download(self, *, counted: bool = True) -> bool:
        """Whether bytes may come over the network now; a refusal is counted, if `counted`."""
        throttle_ms = self._broker.throttle_ms(self._clock.monotonic_ms())
        if throttle_ms <= 0:
            return True
        if counted:
            self.throttled += 1
            self.throttle_ms_total += throttle_ms
        return False

    def allows_client(self, client: Client) -> bool:
        """Whether this client may be answered now; a refusal is counted."""
        quota = self._clients.get(client)
        if quota is None:
            return True
        throttle_ms = quota.throttle_ms(self._clock.monotonic_ms())
        if throttle_ms <= 0:
            return True
        self.client_throttled += 1
        self.client_throttle_ms_total += throttle_ms
        return False

    def downloaded(self, size: int) -> None:
        """So many bytes came over the network."""
        self._broker.record(size, self._clock.monotonic_ms())

    def answered(self, client: Client, size: int) -> None:
        """So many bytes of remote segments are on their way to a client."""
        if self._client_limit >= UNLIMITED:
            return
        quota = self._clients.get(client)
        if quota is None:
            quota = RateQuota(self._client_limit, self._windows, self._window_seconds)
            self._clients[client] = quota
            if len(self._clients) > CLIENTS_MAX:
                self._clients.popitem(last=False)
        else:
            self._clients.move_to_end(client)
        quota.record(size, self._clock.monotonic_ms())
