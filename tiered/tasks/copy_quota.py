"""Copy quota: the rate at which segments are copied, over all partitions (KIP-956).

The whole segment is charged before its copy starts, and a copy starts only while the rate is within
the quota. So one large segment may run far ahead of the quota, and the next one then waits: over
the windows (11 of 1 s) the rate is kept, except by segments larger than what the windows allow.

A throttled task gives its place in the pool back and checks again: Kafka's wait under a lock.

Source: Kafka, RLMQuotaManager.java; RemoteLogManager.java (RLMCopyTask); KIP-956.
"""

from typing import Final

from config.tier import UNLIMITED, TierConfig
from storage.environment.clock import Clock
from tiered.fetch.fetch_quota import RateQuota

CHECK_AGAIN_MAX_MS: Final = 1_000.0
"""The windows move on while a task waits; Kafka's copiers check every second too."""


class CopyQuota:
    """See the module.

    Attributes:
        throttled: How often a copy had to wait.
        throttle_ms_total, throttle_ms_max: Kafka's `remote-copy-throttle-time-avg` is the total
            over `throttled`; `-max` the largest.
    """

    __slots__ = ("_clock", "_rate", "throttle_ms_max", "throttle_ms_total", "throttled")

    def __init__(self, clock: Clock, settings: TierConfig) -> None:
        self._clock = clock
        self._rate = RateQuota(*_limits(settings))
        self.throttled = 0
        self.throttle_ms_total = 0.0
        self.throttle_ms_max = 0.0

    def update(self, settings: TierConfig) -> None:
        """New limits; what was copied so far still counts."""
        self._rate.resize(*_limits(settings))

    def wait_ms(self) -> float:
        """0: a copy may start. Else check again after so many milliseconds."""
        if self._rate.bytes_per_second >= UNLIMITED:
            return 0.0
        throttle_ms = self._rate.throttle_ms(self._clock.monotonic_ms())
        if throttle_ms <= 0.0:
            return 0.0
        self.throttled += 1
        self.throttle_ms_total += throttle_ms
        self.throttle_ms_max = max(self.throttle_ms_max, throttle_ms)
        return min(throttle_ms, CHECK_AGAIN_MAX_MS)

    def charge(self, size: int) -> None:
        """A copy of so many bytes starts."""
        self._rate.record(size, self._clock.monotonic_ms())

    def rate(self) -> float:
        """Bytes per second now."""
        return self._rate.rate(self._clock.monotonic_ms())


def _limits(settings: TierConfig) -> tuple[int, int, int]:
    return (
        settings.copy_max_bytes_per_second,
        settings.remote_log_manager_copy_quota_window_num,
        settings.remote_log_manager_copy_quota_window_size_seconds,
    )
