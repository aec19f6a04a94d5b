"""Which unfinished frames are read on while memory for them is short.

Nothing is reserved as long as memory is not short: a frame takes what has arrived of it, whatever
it announces. Once the frames of all connections hold `queued.max.request.bytes`, memory is *short*
until nobody waits for it any more. While it is short, frames are admitted one by one, each for all
that is missing of it, in the order in which they asked; the bytes of others stay in their sockets:

    a frame of up to SMALL_SIZE_MAX     is read as ever: in all, less than connections cost anyway
    a frame that is admitted            is read until it is whole
    any other whose next bytes came     waits, in the order of asking

    READ ──bytes──> WAITING ──has its turn──> ADMITTED ──whole, or closed──> (its memory is free)
      ^                                          │
      └───── too slow or silent, memory is left ─┘        too slow, none is left: closed

A turn comes when what has arrived, what is missing of those that are admitted, and what is missing
of this one fit within the limit. Where nothing else can bring memory back (nobody is admitted, and
no frame waits for a disk), the first one is admitted all the same: so a frame larger than the limit
passes, alone, and so do many that were begun together and hold a part each. What is held at most is
the limit and one frame, as by Kafka's pool, which gives a whole frame as long as anything is left.

Kafka's reserves by announcement, and whoever announces and sends nothing holds it for
`connections.max.idle.ms`. Here only who has bytes in the socket can be admitted, and who then does
not send on makes room for those that wait: it asks again with its next bytes, behind them. Only
where all memory is used is that no help: who has not sent RATE on average then loses its
connection.
"""

import logging
from typing import TYPE_CHECKING, Final, Protocol

from broker.network.read_gate import PAUSED_BY_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.receive_buffers import ReceiveBuffers
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

ADMITTED_MAX: Final = 64
"""Frames admitted at once: those who have a turn are counted anew at each turn."""

GRACE_MS: Final = 10_000.0
"""How long an admitted frame may take whatever its rate."""

SILENT_MS: Final = 1_000.0
"""How long nothing may come of an admitted frame while memory is left and others wait for it."""

RATE: Final = 64 * 1024 // 1000
"""Bytes in a millisecond that the sender of an admitted frame has to send on average."""


class Sender(Protocol):
    """A connection with an unfinished frame: `broker.network.connection.Connection`."""

    last_active_ms: float

    @property
    def partial_bytes(self) -> int:
        """Bytes of the frame that have arrived; 0: none is unfinished."""
        ...

    @property
    def missing_bytes(self) -> int:
        """Bytes of the frame that have not arrived."""
        ...

    @property
    def is_held_up(self) -> bool:
        """Whether it is not read for a reason that is this broker's."""
        ...

    def pause(self, reason: int) -> None:
        """Leave further bytes in the socket."""
        ...

    def resume(self, reason: int) -> None:
        """One reason has gone."""
        ...

    def close(self, reason: str | None) -> None:
        """Close the connection, which then calls `FrameAdmission.ended`."""
        ...


class _Admitted:
    """Since when a frame is read, and how much of it had arrived by then."""

    __slots__ = ("arrived_bytes", "since_ms")

    def __init__(self, since_ms: float, arrived_bytes: int) -> None:
        self.since_ms = since_ms
        self.arrived_bytes = arrived_bytes


class FrameAdmission:
    """See the module; one for a loop.

    Attributes:
        times_short: How often memory has become short.
    """

    __slots__ = (
        "_admitted",
        "_buffers",
        "_call_soon",
        "_clock",
        "_is_told",
        "_turn_comes",
        "_waited_ms",
        "_waiting",
        "_waiting_since_ms",
        "times_short",
    )

    def __init__(
        self,
        buffers: "ReceiveBuffers",
        call_soon: "Callable[[Callable[[], None]], object]",
        clock: "Clock",
    ) -> None:
        """Without frames that wait.

        Args:
            buffers: Whose limit it is.
            call_soon: The loop's.
            clock: Of the rate, and of the time that somebody waited.
        """
        self._buffers = buffers
        self._call_soon = call_soon
        self._clock = clock
        # Dictionaries, for their order: the first to have asked comes first.
        self._waiting: dict[Sender, None] = {}
        self._admitted: dict[Sender, _Admitted] = {}
        self._turn_comes = False
        self._waited_ms = 0.0
        self._waiting_since_ms = 0.0
        self._is_told = False
        self.times_short = 0
        buffers.when_freed = self._turn_soon

    @property
    def waiting(self) -> int:
        """Connections whose frames wait."""
        return len(self._waiting)

    @property
    def depleted_ms(self) -> float:
        """Milliseconds in which a frame waited, in all."""
        now_waits = self._clock.monotonic_ms() - self._waiting_since_ms if self._waiting else 0.0
        return self._waited_ms + now_waits

    def become_short(self) -> None:
        """What has arrived reaches the limit."""
        if not self._buffers.is_short:
            self._buffers.is_short = True
            self.times_short += 1

    def admits(self, sender: Sender) -> bool:
        """Whether the frame of `sender`, whose next bytes are in the socket, is read on.

        If not, it is paused by PAUSED_BY_MEMORY, and resumed when it is admitted.
        """
        if sender in self._admitted:
            return True
        if not self._waiting and self._fits(sender):
            self._admit(sender)
            return True
        if not self._waiting:
            self._waiting_since_ms = self._clock.monotonic_ms()
        self._waiting[sender] = None
        sender.pause(PAUSED_BY_MEMORY)
        return False

    def ended(self, sender: Sender) -> None:
        """The frame of `sender` has been handled, or its connection is closed."""
        self._admitted.pop(sender, None)
        self._wait_no_more(sender)
        self._turn_soon()

    def sweep(self) -> None:
        """Have those go on whose turn has come, and see to senders that are too slow."""
        if not self._buffers.is_short:
            return
        now_ms = self._clock.monotonic_ms()
        for sender, admitted in list(self._admitted.items()):
            if sender.is_held_up:
                admitted.since_ms = now_ms
                admitted.arrived_bytes = sender.partial_bytes
                continue
            if not self._waiting:
                continue
            taken_ms = now_ms - admitted.since_ms
            arrived = sender.partial_bytes - admitted.arrived_bytes
            is_slow = taken_ms > GRACE_MS and arrived < taken_ms * RATE
            if self._buffers.charged < self._buffers.limit:
                if is_slow or now_ms - sender.last_active_ms > SILENT_MS:
                    # It asks again with its next bytes.
                    del self._admitted[sender]
            elif is_slow:
                sender.close("unfinished request that comes slowly while memory is short")
        if self._waiting and not self._is_told:
            LOGGER.warning(
                "memory for requests is short, their connections wait "
                "queued.max.request.bytes=%d used=%d waiting=%d",
                self._buffers.limit,
                self._buffers.charged,
                len(self._waiting),
            )
        self._is_told = bool(self._waiting)
        self._turn()

    def _fits(self, sender: Sender) -> bool:
        admitted = self._admitted
        if not admitted:
            if not self._buffers.kept:
                return True
        elif len(admitted) >= ADMITTED_MAX:
            return False
        missing = sender.missing_bytes
        for other in admitted:
            missing += other.missing_bytes
        return self._buffers.charged + missing <= self._buffers.limit

    def _admit(self, sender: Sender) -> None:
        self._admitted[sender] = _Admitted(self._clock.monotonic_ms(), sender.partial_bytes)

    def _wait_no_more(self, sender: Sender) -> None:
        if sender in self._waiting:
            del self._waiting[sender]
            if not self._waiting:
                self._waited_ms += self._clock.monotonic_ms() - self._waiting_since_ms

    def _turn_soon(self) -> None:
        """In the next iteration: what has come free may be one of many frames that are handled."""
        if not self._turn_comes:
            self._turn_comes = True
            self._call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn_comes = False
        self._turn()

    def _turn(self) -> None:
        while self._waiting:
            sender = next(iter(self._waiting))
            if not self._fits(sender):
                return
            self._wait_no_more(sender)
            self._admit(sender)
            # It was not read: that it was silent is not its fault.
            sender.last_active_ms = self._clock.monotonic_ms()
            sender.resume(PAUSED_BY_MEMORY)
        if not self._admitted and self._buffers.charged < self._buffers.limit:
            self._buffers.is_short = False


__all__ = ["ADMITTED_MAX", "GRACE_MS", "RATE", "SILENT_MS", "FrameAdmission", "Sender"]
