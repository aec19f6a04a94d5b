"""Outgoing connections: the seam through which a broker connects to other brokers.

A simulated network implements `Connector`; what is connected is a `Stream`.
"""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from broker.network.stream import Poller, SocketStream, Stream, spare_pacing, tune

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
"""Family and socket address, as getaddrinfo(3) gives them."""

Resolved = Callable[[Sequence[Address] | OSError], None]

_IN_PROGRESS: Final = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


class Connecting(Protocol):
    """A connection that is being made."""

    def cancel(self) -> None:
        """Stop; the callback is not called any more. Harmless when it has been."""
        ...


class Connector(Protocol):
    """Makes connections without waiting."""

    def connect(self, host: str, port: int, done: Callable[[Stream | OSError], None]) -> Connecting:
        """Connect; `done` gets the stream, or why there is none, in a later turn of the loop.

        ConnectionRefusedError says that the peer's machine is there and nothing listens. There is
        no time-out here: the caller cancels.
        """
        ...


class Resolver(Protocol):
    """Finds the addresses of a host."""

    def __call__(self, host: str, port: int, done: Resolved, /) -> None:
        """Call `done` in a later turn of the loop, with one address at least, or an error."""
        ...


class ThreadResolver:
    """getaddrinfo(3) in a thread of the loop's default executor, since it may wait for a server."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, host: str, port: int, done: Resolved, /) -> None:
        """Look up; stream addresses only."""

        def finish(future: "asyncio.Future[list[Address]]") -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                done(future.result())
            elif isinstance(error, OSError):
                done(error)
            else:
                done(OSError(errno.EINVAL, f"{host}: {error}"))

        self._loop.run_in_executor(None, addresses_of, host, port).add_done_callback(finish)


class UnattendedResolver:
    """getaddrinfo(3) in a thread that nothing waits for, not even the end of the process.

    For what is only worth knowing: a name server that does not answer holds up no stop.
    """

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, host: str, port: int, done: Resolved, /) -> None:
        """Look up; `done` is not called where the system gives no thread."""

        def look_up() -> None:
            found: Sequence[Address] | OSError
            try:
                found = addresses_of(host, port)
            except OSError as error:
                found = error
            except ValueError as error:  # no name by IDNA's rules
                found = OSError(errno.EINVAL, f"{host}: {error}")
            # The loop may have been closed meanwhile.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done, found)

        with suppress(RuntimeError):
            threading.Thread(target=look_up, name="name lookup", daemon=True).start()


def addresses_of(host: str, port: int) -> list[Address]:
    """Addresses of a host, in the order in which the system prefers them; may wait.

    Raises:
        OSError: There is no such name, or no server that could say so.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(entry[0], entry[4]) for entry in found]


class SocketConnector:
    """TCP: the addresses of a host one after the other, until one accepts."""

    __slots__ = ("_poller", "_receive_buffer_bytes", "_resolve")

    def __init__(self, poller: Poller, resolve: Resolver, *, receive_buffer_bytes: int) -> None:
        """Connect nowhere yet.

        Args:
            poller: The loop's readiness calls.
            resolve: Finds addresses.
            receive_buffer_bytes: SO_RCVBUF; -1 leaves it to the system.
        """
        self._poller = poller
        self._resolve = resolve
        self._receive_buffer_bytes = receive_buffer_bytes

    def connect(self, host: str, port: int, done: Callable[[Stream | OSError], None]) -> Connecting:
        """Resolve, then connect."""
        attempt = _Attempt(self._poller, self._receive_buffer_bytes, done)
        self._resolve(host, port, attempt.resolved)
        return attempt


class _Attempt:
    """One call of `connect`."""

    __slots__ = ("_addresses", "_done", "_error", "_poller", "_receive_buffer_bytes", "_socket")

    def __init__(
        self,
        poller: Poller,
        receive_buffer_bytes: int,
        done: Callable[[Stream | OSError], None],
    ) -> None:
        self._poller = poller
        self._receive_buffer_bytes = receive_buffer_bytes
        self._done: Callable[[Stream | OSError], None] | None = done
        self._addresses: list[Address] = []
        self._error = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        self._socket: socket.socket | None = None

    def resolved(self, found: Sequence[Address] | OSError) -> None:
        if self._done is None:
            return
        if isinstance(found, OSError):
            self._finish(found)
            return
        self._addresses = list(reversed(found))
        self._next()

    def _next(self) -> None:
        while self._addresses:
            family, address = self._addresses.pop()
            try:
                connecting = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                self._error = error
                continue
            try:
                tune(
                    connecting,
                    send_buffer_bytes=-1,
                    receive_buffer_bytes=self._receive_buffer_bytes,
                )
                code = connecting.connect_ex(address)
            except OSError as error:
                code = error.errno or errno.EINVAL
            if code in _IN_PROGRESS:
                self._socket = connecting
                self._poller.add_writer(connecting.fileno(), self._writable)
                return
            connecting.close()
            self._error = OSError(code, os.strerror(code))
        self._finish(self._error)

    def _writable(self) -> None:
        connected = self._socket
        if connected is None:
            return
        self._poller.remove_writer(connected.fileno())
        self._socket = None
        code = connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            try:
                spare_pacing(connected)
            except OSError as error:
                code = error.errno or errno.ENOTCONN
            else:
                self._finish(SocketStream(connected))
                return
        connected.close()
        # OSError makes ConnectionRefusedError of ECONNREFUSED.
        self._error = OSError(code, os.strerror(code))
        self._next()

    def _finish(self, result: Stream | OSError) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(result)

    def cancel(self) -> None:
        self._done = None
        connecting, self._socket = self._socket, None
        if connecting is not None:
            self._poller.remove_writer(connecting.fileno())
            connecting.close()
