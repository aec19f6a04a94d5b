"""Readiness of many connections, at a cost that does not grow with their number.

    socket 1 ... 64   ──────────────────────────────> the loop ──> callback
    socket 65 ...     ──> an epoll set of our own ──> the loop ──> _drain ──> callbacks
                              one descriptor             SLICE at a time, EVENTS_MAX in a turn

What the loop watches costs it a handle, a context and a callback of its own for each socket that is
ready, and libuv polls up to 48 times in a turn as soon as more than 1,024 are. A set of our own
costs two calls of the system for each SLICE. With few connections it would be one call more than
needed, so DIRECT_MAX of them are the loop's.

Semantics are the loop's: a socket that is ready is called back in each turn until it is read or
watched no more. Within a turn nobody is called who has stopped watching, nor one who has begun to
watch since the system was asked. The kernel gives those of a set in turn, so that what one turn
leaves out comes first in the next. The loop's own get their turn in each: where thousands are ready
DIRECT_MAX of them share a fifth of the time.
"""

import logging
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from broker.network.stream import Poller

if TYPE_CHECKING:
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

DIRECT_MAX: Final = 64
"""Sockets that the loop watches itself."""

SLICE: Final = 32
"""Sockets that the system is asked for at once."""

EVENTS_MAX: Final = 256
"""Sockets of a turn: about 8 ms of small requests, as `broker.network.read_budget` has it."""

TURN_MS: Final = 5.0
"""How long a turn may take after its first slice before no further one is begun. With the last it
stays below the read budget's 8 ms, whose deferrals cost two calls of the system each."""

READ: Final = select.POLLIN
WRITE: Final = select.POLLOUT
"""Of poll(2) and epoll(7) alike, which agree on Linux."""

ENDED: Final = select.POLLERR | select.POLLHUP
"""Reported to whoever watches, asked for or not; a read or a write then says what it is."""


class ReadySet(Protocol):
    """A set of descriptors that the system watches; `select.epoll` is one."""

    def fileno(self) -> int:
        """Readable while one of them is ready."""
        ...

    def register(self, fd: int, eventmask: int) -> None:
        """Watch a descriptor."""
        ...

    def modify(self, fd: int, eventmask: int) -> None:
        """Watch for other events."""
        ...

    def unregister(self, fd: int) -> None:
        """Watch it no more."""
        ...

    def poll(self, timeout: float, maxevents: int) -> list[tuple[int, int]]:
        """Descriptors that are ready, and for what; each as long as it is, in turn."""
        ...

    def close(self) -> None:
        """Watch nothing; harmless when repeated."""
        ...


class _Watch:
    """What is watched of one descriptor of the set.

    Attributes:
        read, write: Called back; None: not watched.
        slice: Number of the slice after which it was entered.
    """

    __slots__ = ("read", "slice", "write")

    def __init__(self, slice_: int) -> None:
        self.read: Callable[[], object] | None = None
        self.write: Callable[[], object] | None = None
        self.slice = slice_

    @property
    def events(self) -> int:
        """As the set takes them; 0: nothing is watched."""
        return (READ if self.read is not None else 0) | (WRITE if self.write is not None else 0)


class ConnectionPoller:
    """See the module; a `broker.network.stream.Poller`. Used on the loop's thread only."""

    __slots__ = ("_clock", "_direct", "_loop", "_make_set", "_set", "_slice", "_watches")

    def __init__(self, loop: Poller, make_set: Callable[[], ReadySet], clock: "Clock") -> None:
        """Watch nothing yet; `close` is to be called in the end.

        Args:
            loop: Watches the first ones, and the set.
            make_set: Called when the first descriptor is to be in it.
            clock: For the time of a turn.
        """
        self._loop = loop
        self._make_set = make_set
        self._set: ReadySet | None = None
        self._clock = clock
        # What the loop watches itself: READ, WRITE or both.
        self._direct: dict[int, int] = {}
        self._watches: dict[int, _Watch] = {}
        # Number of the slice that is called back, or was last.
        self._slice = 0

    @property
    def in_set(self) -> int:
        """Descriptors of the set."""
        return len(self._watches)

    # -- who is watched --------------------------------------------------------------------------

    def add_reader(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        """Call back whenever `fd` is readable, or has ended.

        Raises:
            OSError: The system cannot watch it.
        """
        if self._is_direct(fd):
            self._loop.add_reader(fd, callback, *args)
            self._direct[fd] = self._direct.get(fd, 0) | READ
            return
        watch = self._watch_of(fd)
        before = watch.events
        watch.read = bound(callback, args)
        self._update(fd, watch, before)

    def remove_reader(self, fd: int) -> bool:
        """Stop calling back for reads; whether it was watched for them."""
        watch = self._watches.get(fd)
        if watch is None:
            return self._remove_direct(fd, READ) and bool(self._loop.remove_reader(fd))
        before = watch.events
        watch.read = None
        self._update(fd, watch, before)
        return bool(before & READ)

    def add_writer(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        """Call back whenever `fd` is writable, or has ended.

        Raises:
            OSError: The system cannot watch it.
        """
        if self._is_direct(fd):
            self._loop.add_writer(fd, callback, *args)
            self._direct[fd] = self._direct.get(fd, 0) | WRITE
            return
        watch = self._watch_of(fd)
        before = watch.events
        watch.write = bound(callback, args)
        self._update(fd, watch, before)

    def remove_writer(self, fd: int) -> bool:
        """Stop calling back for writes; whether it was watched for them."""
        watch = self._watches.get(fd)
        if watch is None:
            return self._remove_direct(fd, WRITE) and bool(self._loop.remove_writer(fd))
        before = watch.events
        watch.write = None
        self._update(fd, watch, before)
        return bool(before & WRITE)

    def call_soon(self, callback: Callable[..., object], *args: object) -> object:
        """Call back in the loop's next iteration."""
        return self._loop.call_soon(callback, *args)

    def _is_direct(self, fd: int) -> bool:
        """Whether the loop watches it, or may: one that is watched stays where it is."""
        return fd in self._direct or (fd not in self._watches and len(self._direct) < DIRECT_MAX)

    def _remove_direct(self, fd: int, event: int) -> bool:
        events = self._direct.get(fd, 0)
        if not events & event:
            return False
        if events == event:
            del self._direct[fd]
        else:
            self._direct[fd] = events & ~event
        return True

    def _watch_of(self, fd: int) -> _Watch:
        watch = self._watches.get(fd)
        return _Watch(self._slice) if watch is None else watch

    def _update(self, fd: int, watch: _Watch, before: int) -> None:
        """Have the system watch what is wanted now; it was `before`."""
        events = watch.events
        if events == before:
            return
        ready_set = self._set
        if ready_set is None:
            ready_set = self._set = self._make_set()
            self._loop.add_reader(ready_set.fileno(), self._drain)
        if not before:
            ready_set.register(fd, events)
            self._watches[fd] = watch
        elif events:
            ready_set.modify(fd, events)
        else:
            del self._watches[fd]
            try:
                ready_set.unregister(fd)
            except OSError:
                # The system has forgotten what was closed already.
                LOGGER.debug("descriptor was not watched any more fd=%d", fd)

    # -- who is ready ----------------------------------------------------------------------------

    def _drain(self) -> None:
        """Some of the set are ready: call them back, EVENTS_MAX at most and no longer than a turn.

        What is left makes the set's descriptor readable again.
        """
        end_ms = 0.0
        for _ in range(EVENTS_MAX // SLICE):
            ready_set = self._set
            if ready_set is None:
                return
            self._slice += 1
            ready = ready_set.poll(0, SLICE)
            for fd, events in ready:
                self._call(fd, events)
            if len(ready) < SLICE:
                return
            now_ms = self._clock.monotonic_ms()
            if not end_ms:
                # The first slice is granted.
                end_ms = now_ms + TURN_MS
            elif now_ms >= end_ms:
                return

    def _call(self, fd: int, events: int) -> None:
        watch = self._watches.get(fd)
        if watch is None or watch.slice == self._slice:
            # Closed by a callback of this slice; or what has this number now is another socket.
            return
        if watch.read is not None and events & (READ | ENDED):
            called(watch.read)
        # Reading may have ended it all.
        if watch.write is not None and events & (WRITE | ENDED):
            called(watch.write)

    def close(self) -> None:
        """Watch nothing of the set any more; harmless when repeated."""
        ready_set, self._set = self._set, None
        self._watches.clear()
        if ready_set is not None:
            self._loop.remove_reader(ready_set.fileno())
            ready_set.close()


def bound(callback: Callable[..., object], args: tuple[object, ...]) -> Callable[[], object]:
    """A callback of no arguments."""
    return (lambda: callback(*args)) if args else callback


def called(callback: Callable[[], object]) -> None:
    """Call; a failure must not keep the others of a turn from being called."""
    try:
        callback()
    except Exception:
        LOGGER.exception("callback of a socket that was ready failed")
