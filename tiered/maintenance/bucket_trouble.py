"""Trouble with the bucket that lasts: an alert, until it works again.

    works ──fails──> failing ──fails `LASTING_MS` after the first time──> alert
      ^                 └──works──┐                                         │
      └───────────────────────────┴──────────────works──────────────────────┘

Twice, for a bucket may be read and take nothing (rights, quotas, a full disk): by what the regular
check of the claim reads, and by copies. A request that fails now and then is no trouble, it is sent
again; what lasts is mended by somebody, and until then the local logs of this broker grow.
"""

from enum import StrEnum
from typing import Final

from storage.environment.alerts import AlertKind, Alerts
from storage.environment.clock import Clock
from tiered.errors import TieredError

LASTING_MS: Final = 60_000.0
"""Longer than a store takes that restarts or throttles; several attempts of each kind."""

FORGOTTEN_MS: Final = 600_000.0
"""Copies that have not been tried for so long: there may be nothing left to copy."""


class Work(StrEnum):
    """What is tried of the bucket; the alert's subject."""

    READS = "reads"
    COPIES = "copies"


_MEANS: Final = {
    Work.READS: (
        "remote storage cannot be read for more than a minute",
        "records that are only there cannot be read, nothing is copied or deleted there, and local "
        "logs grow",
    ),
    Work.COPIES: (
        "segments cannot be copied to remote storage for more than a minute",
        "local logs grow",
    ),
}


class BucketTrouble:
    """See the module. On the loop's thread."""

    def __init__(self, clock: Clock, alerts: Alerts) -> None:
        """None so far."""
        self._clock = clock
        self._alerts = alerts
        # When it failed for the first and for the last time since it worked.
        self._failing: dict[Work, tuple[float, float]] = {}

    def failed(self, work: Work, error: TieredError) -> None:
        """It was tried and did not work."""
        now_ms = self._clock.monotonic_ms()
        since_ms, last_ms = self._failing.get(work, (now_ms, now_ms))
        self._failing[work] = (since_ms, now_ms)
        if last_ms - since_ms < LASTING_MS <= now_ms - since_ms:
            # Once: what it fails with may change from one attempt to the next.
            what, means = _MEANS[work]
            self._alerts.set(
                AlertKind.TIER_FAILING,
                work.value,
                f"{what} ({error}): {means} until it works again. It is tried on and on; look at "
                "the object store, the network to it, its room, and the rights of this broker",
            )

    def worked(self, work: Work) -> None:
        """It was tried, and worked."""
        self._end(work)
        copies = self._failing.get(Work.COPIES)
        if copies is not None and self._clock.monotonic_ms() - copies[1] >= FORGOTTEN_MS:
            self._end(Work.COPIES)

    def _end(self, work: Work) -> None:
        if self._failing.pop(work, None) is not None:
            self._alerts.clear(AlertKind.TIER_FAILING, work.value)
