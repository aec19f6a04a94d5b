"""The network as a whole: listening sockets, streams of accepted connections, who watches them.

A simulated network implements `Network`; `broker.network.stream` has the calls of one stream.
"""

import asyncio
import select
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.network.connection_poller import ConnectionPoller
from broker.network.connector import (
    Connector,
    Resolver,
    SocketConnector,
    ThreadResolver,
    UnattendedResolver,
)
from broker.network.stream import Poller, SocketStream, Stream, listen, spare_pacing, tune

if TYPE_CHECKING:
    from storage.environment.clock import Clock

_HAS_EPOLL: Final = hasattr(select, "epoll")


class Accepted(Protocol):
    """A connection that was accepted and has no stream yet."""

    def close(self) -> None:
        """Close; for a connection that is refused."""
        ...


class Listening(Protocol):
    """A listening socket that does not block."""

    def fileno(self) -> int:
        """The descriptor that the poller watches; -1 once closed."""
        ...

    def accept(self) -> tuple[Any, Sequence[object]]:
        """The next connection (an `Accepted` of the same network), and its peer's host and port.

        Raises:
            BlockingIOError: None waits.
            OSError: There is no descriptor for it, or its peer has gone.
        """
        ...

    def getsockname(self) -> Sequence[object]:
        """Host and port as bound."""
        ...

    def close(self) -> None:
        """Stop listening; harmless when repeated."""
        ...


class Network(Protocol):
    """See the module."""

    def listen(self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> Listening:
        """Listen; `host` "" means every interface, port 0 one that is free.

        Raises:
            OSError: The address is in use or not ours; the text says which it is.
        """
        ...

    def stream(self, accepted: Any, *, send_buffer_bytes: int, receive_buffer_bytes: int) -> Stream:
        """The stream of an accepted connection; -1 leaves a buffer to the system.

        Raises:
            OSError: The peer has gone already.
        """
        ...

    def connection_poller(self, loop: Poller, clock: "Clock") -> ConnectionPoller | None:
        """Watches many accepted connections, on `loop`; None: the loop is to watch them all."""
        ...

    def connector(self, loop: asyncio.AbstractEventLoop, *, receive_buffer_bytes: int) -> Connector:
        """Makes connections to others, on `loop`."""
        ...

    def resolver(self, loop: asyncio.AbstractEventLoop) -> Resolver:
        """Finds addresses of hosts to which nothing is to be connected."""
        ...


class SocketNetwork:
    """TCP, by the operating system."""

    __slots__ = ()

    def listen(self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> Listening:
        """Bind and listen (`broker.network.stream.listen`)."""
        return listen(host, port, backlog=backlog, receive_buffer_bytes=receive_buffer_bytes)

    def stream(
        self, accepted: socket.socket, *, send_buffer_bytes: int, receive_buffer_bytes: int
    ) -> Stream:
        """Set the socket's options (`broker.network.stream`: `tune`, `spare_pacing`)."""
        tune(
            accepted, send_buffer_bytes=send_buffer_bytes, receive_buffer_bytes=receive_buffer_bytes
        )
        spare_pacing(accepted)
        return SocketStream(accepted)

    def connection_poller(self, loop: Poller, clock: "Clock") -> ConnectionPoller | None:
        """With an epoll set; only Linux has these."""
        return ConnectionPoller(loop, select.epoll, clock) if _HAS_EPOLL else None

    def connector(self, loop: asyncio.AbstractEventLoop, *, receive_buffer_bytes: int) -> Connector:
        """By non-blocking sockets, with names looked up in a thread."""
        return SocketConnector(
            loop, ThreadResolver(loop), receive_buffer_bytes=receive_buffer_bytes
        )

    def resolver(self, loop: asyncio.AbstractEventLoop) -> Resolver:
        """In threads that hold up no stop."""
        return UnattendedResolver(loop)
