"""Trouble with the bucket that lasts: an alert, until it works again.

    works ──fails──> failing ──fails `LASTING_MS` after the first time──> alert
      ^                 └──works──┐                                         │
      └───────────────────────────┴──────────────works──────────────────────┘

Thrice, for a bucket may be read and take nothing (rights, quotas, a full disk), or let nothing go
(rights, a policy): by what the regular check of the claim reads, by copies, and by removals. A
request that fails now and then is no trouble, it is sent again; what lasts is mended by somebody,
and until then the local logs of this broker grow, or the bucket.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, NamedTuple

from storage.environment.alerts import AlertKind, Alerts
from storage.environment.clock import Clock
from tiered.errors import RemoteStorageError, TieredError

LASTING_MS: Final = 60_000.0
"""Longer than a store takes that restarts or throttles; several attempts of each kind."""

GARBAGE_LASTING_MS: Final = 600_000.0
"""Of removals, for which nothing waits but the bucket's room."""

FORGOTTEN_MS: Final = 600_000.0
"""What has not been tried for so long: there may be nothing left to copy, or to remove."""


class Work(StrEnum):
    """What is tried of the bucket; the alert's subject."""

    READS = "reads"
    COPIES = "copies"
    REMOVALS = "removals"


class _Trouble(NamedTuple):
    """What is said of one kind of work, and after how long."""

    kind: AlertKind
    lasting_ms: float
    what: str
    means: str


_TROUBLES: Final = {
    Work.READS: _Trouble(
        AlertKind.TIER_FAILING,
        LASTING_MS,
        "remote storage cannot be read for more than a minute",
        "records that are only there cannot be read, nothing is copied or deleted there, and local "
        "logs grow",
    ),
    Work.COPIES: _Trouble(
        AlertKind.TIER_FAILING,
        LASTING_MS,
        "segments cannot be copied to remote storage for more than a minute",
        "local logs grow",
    ),
    Work.REMOVALS: _Trouble(
        AlertKind.TIER_GARBAGE_STAYS,
        GARBAGE_LASTING_MS,
        "nothing can be deleted from remote storage for more than 10 minutes",
        "what has expired there and what deleted topics have left stays, and takes room",
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
        trouble = _TROUBLES[work]
        if last_ms - since_ms < trouble.lasting_ms <= now_ms - since_ms:
            # Once: what it fails with may change from one attempt to the next.
            self._alerts.set(
                trouble.kind,
                work.value,
                f"{trouble.what} ({error}): {trouble.means} until it works again. It is tried on "
                "and on; look at the object store, the network to it, its room, and the rights of "
                "this broker",
            )

    def worked(self, work: Work) -> None:
        """It was tried, and worked."""
        self._end(work)
        now_ms = self._clock.monotonic_ms()
        for other in (Work.COPIES, Work.REMOVALS):
            failing = self._failing.get(other)
            if failing is not None and now_ms - failing[1] >= FORGOTTEN_MS:
                self._end(other)

    @contextmanager
    def removing(self) -> Iterator[None]:
        """A context around one removal, whose end counts."""
        try:
            yield
        except RemoteStorageError as error:
            self.failed(Work.REMOVALS, error)
            raise
        self.worked(Work.REMOVALS)

    def _end(self, work: Work) -> None:
        if self._failing.pop(work, None) is not None:
            self._alerts.clear(_TROUBLES[work].kind, work.value)
