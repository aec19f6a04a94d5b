"""How long a follower has been silent: counted only while this broker has listened.

A process that was paused finds, when it goes on, that nobody has fetched for a long time: what they
have sent lies in its sockets, unread. So a tick comes every quarter of the longest silence, and
where one is late nothing counts before it.

    tick   tick   tick                          tick   tick
     │      │      │ <──── this broker stood ────>│      │
     └─ since ─────────────────────────────┐      └─ since, from here on
        all of this counts, up to here ────┘
"""

import math
from typing import Final

TICKS: Final = 4
"""In the longest silence."""


class Listening:
    """See the module; times are monotonic milliseconds."""

    __slots__ = ("_last_ms", "_since_ms", "silence_max_ms")

    def __init__(self, silence_max_ms: float = math.inf) -> None:
        """`silence_max_ms`: `replica.silence.max.ms`; infinite: no follower is ever silent."""
        self.silence_max_ms = silence_max_ms
        self._since_ms = math.inf
        self._last_ms = -math.inf

    @property
    def interval_ms(self) -> float:
        """Between two ticks."""
        return self.silence_max_ms / TICKS

    def tick(self, now_ms: float) -> None:
        """This broker goes round."""
        if now_ms - self._last_ms > 2 * self.interval_ms:
            self._since_ms = now_ms
        self._last_ms = now_ms

    def is_silent(self, seen_ms: float, now_ms: float) -> bool:
        """Whether who was seen last at `seen_ms` has been silent for too long."""
        if now_ms - max(seen_ms, self._since_ms) <= self.silence_max_ms:
            return False
        # This look may be the first thing after a pause.
        return now_ms - self._last_ms <= 2 * self.interval_ms
