"""The socket between a broker and the supervisor that has started it.

    broker      ──> one line of JSON, once it listens: its addresses
    supervisor  ──> nothing; its end closes with its process, however that ends

A broker whose supervisor has ended stops: nothing would start it again, and the metadata store that
a supervisor serves has gone with it.
"""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

LINE_BYTES_MAX: Final = 64 * 1024


class Listening(NamedTuple):
    """Where a broker is reached.

    Attributes:
        cluster_id: Of its cluster.
        addresses: (listener, host, port) as bound.
        admin: host:port of its admin port; empty: it has none.
    """

    cluster_id: str
    addresses: tuple[tuple[str, str, int], ...]
    admin: str


def encode_listening(listening: Listening) -> bytes:
    """The line."""
    return json.dumps(listening._asdict(), separators=(",", ":")).encode() + b"\n"


def decode_listening(line: bytes) -> Listening:
    """Read the line.

    Raises:
        ValueError: It is none.
    """
    try:
        fields = json.loads(line)
        addresses = tuple(
            (str(name), str(host), int(port)) for name, host, port in fields["addresses"]
        )
        return Listening(str(fields["cluster_id"]), addresses, str(fields["admin"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no line of a broker: {line[:80]!r}") from error


class Lifeline:
    """The broker's end. Runs on the loop's thread."""

    def __init__(self, descriptor: int) -> None:
        """Take over an inherited descriptor; no process that this one starts gets it.

        Raises:
            OSError: It is no socket.
        """
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._socket.setblocking(False)

    def watch(self, ended: Callable[[], None]) -> None:
        """Call `ended` once when the supervisor has ended, also if it has done so already."""
        loop = asyncio.get_running_loop()

        def look() -> None:
            try:
                data = self._socket.recv(64)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                loop.remove_reader(self._socket.fileno())
                ended()

        loop.add_reader(self._socket.fileno(), look)

    def report(self, listening: Listening) -> None:
        """Send the line, which fits into the socket's buffer; an ended supervisor is `watch`'s."""
        try:
            self._socket.sendall(encode_listening(listening))
        except OSError:
            return

    def close(self) -> None:
        """Let go of it; the supervisor sees the end."""
        self._socket.close()
