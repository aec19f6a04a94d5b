"""Whether the socket of a connection is read, and for which reasons it is not.

    reason                  why                                 cleared
    PAUSED_BY_CHANNEL       the request channel is full         by RequestChannel
    PAUSED_BY_MEMORY        queued.max.request.bytes is used up by FrameAdmission
    PAUSED_BY_BACKLOG       too many unanswered requests, or    when answers have left
                            too many of them parked, or answers
                            that the peer does not take
    PAUSED_BY_TIME_LIMIT    its requests used up their time     in the next event loop iteration
    PAUSED_BY_READ_BUDGET   too many sockets are readable       in the next event loop iterations
    PAUSED_BY_DISK          a directory that it writes to is    by DirectoryWriter
                            behind
    PAUSED_BY_STOP          the broker stops                    never

             watch                pause(r)
    RESUMED ───────> WATCHED ─────────────────> PAUSED ──┐ pause(r), resume(one of several)
       ^ │                                       ^  │ ^──┘
       │ └──────────────── pause(r) ─────────────┘  │
       └─────────────────── resume(the last) ───────┘          close, from any state: CLOSED

In WATCHED the poller watches the socket. RESUMED is where a connection begins, and where it handles
what was received before the pause: that may pause it again, so the socket is watched only
afterwards. Back-pressure reaches the client through TCP, whose bytes stay in the socket.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from broker.network.stream import Poller

PAUSED_BY_CHANNEL: Final = 1
PAUSED_BY_MEMORY: Final = 2
PAUSED_BY_BACKLOG: Final = 4
PAUSED_BY_STOP: Final = 8
PAUSED_BY_TIME_LIMIT: Final = 16
PAUSED_BY_READ_BUDGET: Final = 32
PAUSED_BY_DISK: Final = 64

_OURS: Final = PAUSED_BY_CHANNEL | PAUSED_BY_MEMORY | PAUSED_BY_DISK | PAUSED_BY_STOP

_BRIEF: Final = PAUSED_BY_TIME_LIMIT | PAUSED_BY_READ_BUDGET


class GateState(Enum):
    """See the module."""

    RESUMED = "resumed"
    WATCHED = "watched"
    PAUSED = "paused"
    CLOSED = "closed"


_RESUMED: Final = GateState.RESUMED
_WATCHED: Final = GateState.WATCHED
_PAUSED: Final = GateState.PAUSED
_CLOSED: Final = GateState.CLOSED


class ReadGate:
    """See the module. Begins in RESUMED.

    Attributes:
        state: See the module.
        reasons: Bits of those that hold; 0 in any state but PAUSED.
    """

    __slots__ = ("_fd", "_poller", "reasons", "state")

    def __init__(self, poller: Poller, fd: int) -> None:
        self._poller = poller
        self._fd = fd
        self.state = _RESUMED
        self.reasons = 0

    @property
    def is_paused_for_long(self) -> bool:
        """Whether the peer's end would not be noticed by a read soon.

        Where other connections are only read first, what this peer sent before it went is read in
        a moment.
        """
        return bool(self.reasons & ~_BRIEF)

    @property
    def is_paused_for_us(self) -> bool:
        """Whether it is not read, for longer, for a reason that is this broker's alone."""
        return bool(self.reasons & _OURS)

    def watch(self, on_readable: Callable[[], None]) -> None:
        """RESUMED to WATCHED; in any other state nothing changes."""
        if self.state is _RESUMED:
            self.state = _WATCHED
            self._poller.add_reader(self._fd, on_readable)

    def pause(self, reason: int) -> None:
        """One more reason; once closed, none counts."""
        if self.state is _CLOSED:
            return
        if self.state is _WATCHED:
            self._poller.remove_reader(self._fd)
        self.state = _PAUSED
        self.reasons |= reason

    def resume(self, reason: int) -> bool:
        """One reason has gone.

        Returns:
            Whether it was the last one that held: the state is RESUMED now.

        Raises:
            ValueError: PAUSED_BY_STOP is never cleared.
        """
        if reason & PAUSED_BY_STOP:
            raise ValueError("a connection of a broker that stops is read no more")
        if not self.reasons & reason:
            return False
        self.reasons &= ~reason
        if self.reasons:
            return False
        self.state = _RESUMED
        return True

    def close(self) -> None:
        """To CLOSED, from any state."""
        if self.state is _WATCHED:
            self._poller.remove_reader(self._fd)
        self.state = _CLOSED
        self.reasons = 0
