"""Keeping a lease: renewed in time, counted from before each renewal was sent, given up when lost.

    KEPT ──answered, in time──> KEPT            validity ends at sent + time of the lease - margins
      │ └──answered, too late──> LATE ──the live key is put again──> KEPT
      ├──no answer──> KEPT, tried again: the validity passes by itself
      ├──no answer for the time of a session──> DEAF ──anything is answered──> KEPT
      └──it has ended──> LOST ──a new lease, the live key put again──> KEPT

A renewal is sent only while the data loop has beaten within `broker.loop.stall.max.ms`: a process
whose loop is stuck for good loses its lease. The store counts a lease from when a renewal arrives,
later than it was sent; so when it deletes the live key, the validity has passed.

What is not answered may have been heard: where a network lets through one direction alone, the
lease of a broker that hears nothing, and so does nothing, would live on, and no other would take
its place. A deaf keeper asks what renews nothing, until that is answered.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from broker.controller.store.metadata_store import (
    LeaseNotFoundError,
    StoreClosedError,
    StoreError,
)
from broker.membership.validity import Validity
from storage.environment.clock import Clock

MARGIN_MS: Final = 100.0
"""Taken off the time of a lease, for what lies between reading the time and acting by it."""

DRIFT: Final = 0.03
"""How much faster the store's clock may run than ours."""

Renew = Callable[[int], Awaitable[int]]
"""Renews a lease by its id: the milliseconds it then has."""

Ask = Callable[[], Awaitable[object]]
"""A question to the store that changes nothing; raises like a renewal."""

Pause = Callable[[float], Awaitable[None]]
"""Waits so many milliseconds."""


class Beat:
    """The data loop's last sign of life; written there, read by the keeper."""

    __slots__ = ("at_ms",)

    def __init__(self, at_ms: float) -> None:
        self.at_ms = at_ms


class LeaseOwner(Protocol):
    """What the keeper reports to; called where the keeper runs."""

    def lost(self, lease: int) -> None:
        """The lease has ended."""
        ...

    def late(self, lease: int, until_ms: float) -> None:
        """It was renewed after its validity had passed: the live key is to be put again.

        With that done, the lease is good until `until_ms`.
        """
        ...


def valid_until(sent_ms: float, ttl_ms: float) -> float:
    """Until when a lease is good that has `ttl_ms` in an answer to what was sent at `sent_ms`."""
    return sent_ms + ttl_ms * (1.0 - DRIFT) - MARGIN_MS


class LeaseKeeper:
    """Renews one lease after the other; `run` in any loop, `keep` and `release` from any thread.

    Attributes:
        renewed_ms: When the newest answered renewal was sent; `-inf` before.
        failures: Renewals without an answer.
        stalls: Renewals not sent because the data loop did not beat.
    """

    def __init__(
        self,
        validity: Validity,
        beat: Beat,
        owner: LeaseOwner,
        *,
        clock: Clock,
        interval_ms: float,
        stall_max_ms: float,
        deaf_after_ms: float,
    ) -> None:
        """Keep nothing yet.

        Args:
            validity: Moved on with each renewal.
            beat: Of the data loop.
            owner: Called with what it must act on.
            clock: Monotonic, and goes on while the machine sleeps.
            interval_ms: Between two renewals.
            stall_max_ms: How old the beat may be.
            deaf_after_ms: So long without an answer, and no renewal is sent.
        """
        self._validity = validity
        self._beat = beat
        self._owner = owner
        self._clock = clock
        self._interval_ms = interval_ms
        self._stall_max_ms = stall_max_ms
        self._deaf_after_ms = deaf_after_ms
        self._kept_ms = -math.inf
        self._kept: tuple[int, int] | None = None
        self._lost_grant = -1
        self.renewed_ms = -math.inf
        self.failures = 0
        self.stalls = 0

    def keep(self, lease: int, grant_number: int) -> None:
        """Renew this lease from the next round on, and extend this grant of the validity by it."""
        self._kept_ms = self._clock.monotonic_ms()
        self._kept = (lease, grant_number)

    def release(self) -> None:
        """Renew nothing."""
        self._kept = None

    @property
    def silent_ms(self) -> float:
        """Since the newest renewal was sent that was answered; 0 while no lease is kept."""
        if self._kept is None:
            return 0.0
        return self._clock.monotonic_ms() - max(self.renewed_ms, self._kept_ms)

    async def run(self, renew: Renew, ask: Ask, pause: Pause) -> None:
        """Renew until the store is closed or the task is cancelled."""
        while True:
            await pause(self._interval_ms)
            kept = self._kept
            if kept is None or kept[1] == self._lost_grant:
                continue
            sent_ms = self._clock.monotonic_ms()
            if sent_ms - self._beat.at_ms > self._stall_max_ms:
                self.stalls += 1
                continue
            try:
                if sent_ms - max(self.renewed_ms, self._kept_ms) > self._deaf_after_ms:
                    await ask()
                    sent_ms = self._clock.monotonic_ms()
                ttl_ms = await renew(kept[0])
            except LeaseNotFoundError:
                self._lose(kept)
                continue
            except StoreClosedError:
                return
            except StoreError:
                self.failures += 1
                continue
            self._renewed(kept, sent_ms, valid_until(sent_ms, ttl_ms))

    def _renewed(self, kept: tuple[int, int], sent_ms: float, until_ms: float) -> None:
        lease, grant_number = kept
        self.renewed_ms = sent_ms
        extended = self._validity.extend(grant_number, until_ms, self._clock.monotonic_ms())
        if not extended and kept == self._kept:
            self._owner.late(lease, until_ms)

    def _lose(self, kept: tuple[int, int]) -> None:
        # The data loop may hold another lease by now: that one is not touched.
        lease, grant_number = kept
        if grant_number != self._lost_grant:
            self._lost_grant = grant_number
            self._validity.end(grant_number)
            self._owner.lost(lease)
