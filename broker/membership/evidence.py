"""Evidence that a peer's process is dead: its connections ended, and its machine refuses new ones.

    NONE ──a connection ends──> ENDED ──refused──> REFUSED ──refused, 50 ms later──> DEAD
      ^                           │                   │                                │
      └──connected, or the broker has another epoch───┴────────────────────────────────┘

The kernel ends the connections of a killed process within milliseconds; the next connect may still
succeed once, then all are refused. A connect that times out or finds no way says nothing: the
network may be broken, or this end of it. Then the lease decides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage.environment.clock import Clock

APART_MS: Final = 50.0
"""Between the two refusals: a process that listens again a moment later is not dead."""


@dataclass(slots=True)
class _Seen:
    epoch: int
    first_refusal_ms: float | None = None
    is_dead: bool = False


class Evidence:
    """See the module: a `PeerObserver`. One entry for each peer whose connection has ended."""

    def __init__(
        self,
        clock: Clock,
        *,
        on_dead: Callable[[int, int], None],
        on_alive: Callable[[int, int], None],
    ) -> None:
        """Without evidence of anything.

        Args:
            clock: Monotonic.
            on_dead: Called once with node id and broker epoch when the evidence is complete.
            on_alive: Called with both when it was complete and is refuted.
        """
        self._clock = clock
        self._on_dead = on_dead
        self._on_alive = on_alive
        self._seen: dict[int, _Seen] = {}

    def on_peer_connected(self, node_id: int, epoch: int) -> None:
        """Something listens there."""
        self._refute(node_id)

    def on_peer_ended(self, node_id: int, epoch: int, error: OSError | None) -> None:
        """See `PeerObserver`."""
        seen = self._seen.get(node_id)
        if seen is None or seen.epoch != epoch:
            self._refute(node_id)
            self._seen[node_id] = _Seen(epoch)

    def on_peer_refused(self, node_id: int, epoch: int) -> None:
        """See `PeerObserver`."""
        seen = self._seen.get(node_id)
        if seen is None or seen.epoch != epoch or seen.is_dead:
            return
        now_ms = self._clock.monotonic_ms()
        if seen.first_refusal_ms is None:
            seen.first_refusal_ms = now_ms
        elif now_ms - seen.first_refusal_ms >= APART_MS:
            seen.is_dead = True
            self._on_dead(node_id, epoch)

    def on_peer_unreachable(self, node_id: int, epoch: int, error: OSError) -> None:
        """What was refused before may have been another machine of that address."""
        seen = self._seen.get(node_id)
        if seen is not None:
            seen.first_refusal_ms = None

    def _refute(self, node_id: int) -> None:
        seen = self._seen.pop(node_id, None)
        if seen is not None and seen.is_dead:
            self._on_alive(node_id, seen.epoch)
