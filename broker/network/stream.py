"""The few socket calls a connection makes: the seam between the broker and the network.

A simulated network implements `Stream` and `Poller`; everything above stays the same.
"""

import os
import select
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from storage.environment.filesystem import File

HUNG_UP = select.POLLERR | select.POLLHUP | getattr(select, "POLLRDHUP", 0)
"""poll(2) events of a peer that has closed, also while bytes of it are still unread (Linux)."""

MORE = getattr(socket, "MSG_MORE", 0)
"""Tells the kernel that more follows at once, so that a head and its file leave in one segment."""

EXPECTED_MIN: Final = 64 * 1024
EXPECTED_MAX: Final = 256 * 1024
"""Bytes of a frame that are waited for at once: each time costs a turn of the loop, and as long as
they are copied nothing else is received."""

UNSENT_MAX: Final = 128 * 1024
"""Bytes that a connection's send buffer takes beyond what is on its way to the peer.

The system fits a send buffer to the connection, up to megabytes. A slice of a file that only lies
there costs the kernel more than one that it can send: a third of the CPU of a gigabyte for eight
consumers (`bench.limit`). What is on its way is not limited by it, so distant peers lose nothing.
With less than two of the largest packets (64 KiB) a connection waits for timers of TCP.
"""

_UNSENT_OPTION: Final = getattr(socket, "TCP_NOTSENT_LOWAT", None)

UNPACED: Final = b"reno"
"""Congestion control of connections within the machine: on every Linux, and anybody may take it."""

_CONGESTION_OPTION: Final = getattr(socket, "TCP_CONGESTION", None)

_HAS_LOW_MARK: Final = sys.platform == "linux"
"""Elsewhere a peer's end might wait for bytes that never come."""


class Stream(Protocol):
    """A connected byte stream; every call raises BlockingIOError instead of waiting."""

    def fileno(self) -> int:
        """The descriptor that the poller watches."""
        ...

    def recv_into(self, buffer: memoryview) -> int:
        """Receive into `buffer`; 0 means that the peer has closed its side."""
        ...

    def send_buffers(self, buffers: Sequence[Any], more: bool) -> int:
        """Send from the buffers in order, as many bytes as fit; returns how many."""
        ...

    def send_file(self, file: File, position: int, count: int) -> int:
        """Send from an open file without copying it through the process; returns how many bytes."""
        ...

    def expect(self, count: int) -> None:
        """Call readable what holds a good part of the next `count` bytes; 0: any byte, as at first.

        For a large frame that has arrived in part. The end of the stream is readable in any case.
        """
        ...

    def hung_up(self) -> bool:
        """Whether the peer has closed; for a stream that is not being read."""
        ...

    def close(self) -> None:
        """Close; harmless when repeated."""
        ...


class Poller(Protocol):
    """The event loop's readiness calls (asyncio's and uvloop's loops have them)."""

    def add_reader(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        """Call back whenever `fd` is readable."""
        ...

    def remove_reader(self, fd: int) -> object:
        """Stop calling back for reads."""
        ...

    def add_writer(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        """Call back whenever `fd` is writable."""
        ...

    def remove_writer(self, fd: int) -> object:
        """Stop calling back for writes."""
        ...

    def call_soon(self, callback: Callable[..., object], *args: object) -> object:
        """Call back in the loop's next iteration."""
        ...


class SocketStream:
    """A TCP socket."""

    __slots__ = ("_expected", "_fd", "_send", "_socket", "recv_into")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._fd = connected.fileno()
        self._expected = 1
        # The bound methods themselves: one Python frame less for every request received.
        self.recv_into: Callable[[memoryview], int] = connected.recv_into
        self._send: Callable[[Any, int], int] = connected.send

    def fileno(self) -> int:
        """The descriptor, also after `close` (for the poller to forget it)."""
        return self._fd

    def send_buffers(self, buffers: Sequence[Any], more: bool) -> int:
        """Gather and send; a single buffer by the plainer call, which costs Python a third."""
        if len(buffers) == 1:
            return self._send(buffers[0], MORE if more else 0)
        return self._socket.sendmsg(buffers, (), MORE if more else 0)

    def send_file(self, file: File, position: int, count: int) -> int:
        """sendfile(2)."""
        return os.sendfile(self._fd, file.fileno(), position, count)

    def expect(self, count: int) -> None:
        """SO_RCVLOWAT, which the kernel takes back while it has no room for as much."""
        mark = min(count, EXPECTED_MAX) if count >= EXPECTED_MIN else 1
        if mark != self._expected and _HAS_LOW_MARK:
            self._expected = mark
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)

    def hung_up(self) -> bool:
        """poll(2) without waiting."""
        poll = select.poll()
        poll.register(self._fd, HUNG_UP & ~(select.POLLERR | select.POLLHUP))
        return any(events & HUNG_UP for _, events in poll.poll(0))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def listen(host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> socket.socket:
    """A non-blocking listening socket. `host` "" means every interface (IPv6 and IPv4 if possible).

    Raises:
        OSError: The address is in use or not ours, or has no such name; the text says which it is.
    """
    try:
        return _listen(host, port, backlog, receive_buffer_bytes)
    except OSError as error:
        shown = f"[{host}]" if ":" in host else host
        raise OSError(error.errno, f"{shown}:{port}: {error.strerror}") from error


def _listen(host: str, port: int, backlog: int, receive_buffer_bytes: int) -> socket.socket:
    if host == "" and socket.has_dualstack_ipv6():
        family, address = socket.AF_INET6, ("::", port)
    else:
        info = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
        family, address = info[0], (str(info[4][0]), port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and host == "":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if receive_buffer_bytes > 0:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        listener.bind(address)
        listener.listen(backlog)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def tune(connected: socket.socket, *, send_buffer_bytes: int, receive_buffer_bytes: int) -> None:
    """Make an accepted socket non-blocking and prompt; -1 leaves a buffer to the system."""
    connected.setblocking(False)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if _UNSENT_OPTION is not None:
        connected.setsockopt(socket.IPPROTO_TCP, _UNSENT_OPTION, UNSENT_MAX)
    if send_buffer_bytes > 0:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    if receive_buffer_bytes > 0:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)


def spare_pacing(connected: socket.socket) -> None:
    """Take `UNPACED` for a connection that does not leave this machine; harmless for any other.

    Where BBR is the system's choice it paces loopback, too: packets wait for timers although there
    is no queue to be kept short (decision 59). Clients beside the broker and brokers of one machine
    (`varve serve --brokers`) pay for that with a quarter of what they receive.

    Raises:
        OSError: The peer has gone already.
    """
    if _CONGESTION_OPTION is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    peer = str(connected.getpeername()[0])
    if peer == str(connected.getsockname()[0]) or peer.removeprefix("::ffff:").startswith("127."):
        # A sandbox may refuse it: then the connection is as it was.
        with suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, _CONGESTION_OPTION, UNPACED)
