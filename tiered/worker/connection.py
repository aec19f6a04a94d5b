"""One end of the socket between broker and tier process: messages out, messages in, the end.

    connected ──> lost      once, for whatever reason: closed here, closed there, not a frame

What is written after the end is dropped: callers that wait for an answer are notified of the end.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from typing_extensions import override

from tiered.worker.frames import FrameDecoder, FrameError, Kind, Message, encode

LOGGER = logging.getLogger(__name__)

WRITE_BUFFER_BYTES: Final = 1024 * 1024
"""Unsent bytes above which `send` waits for the peer. Single small messages may still be added:
their number is bounded by the calls in flight."""


class MessageConnection(asyncio.Protocol):
    """See the module.

    Args:
        on_message: Called for each message, in order. FrameError from it ends the connection.
        on_lost: Called once, with the reason in words.
    """

    def __init__(
        self, on_message: Callable[[Message], None], on_lost: Callable[[str], None]
    ) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._writable: asyncio.Event = asyncio.Event()
        self._sending_pieces = asyncio.Lock()
        self.lost = False

    async def open(self, sock: socket.socket) -> None:
        """Speak over one end of a socket pair, which becomes the connection's.

        Raises:
            OSError: It cannot be spoken over; it is the caller's still.
        """
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self, sock=sock)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self.lost:
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._writable.set()

    @override
    def data_received(self, data: bytes) -> None:
        try:
            for message in self._decoder.feed(data):
                if self.lost:
                    return
                self._on_message(message)
        except FrameError as error:
            self.end(f"it was sent {error}")

    @override
    def eof_received(self) -> bool:
        """Half a connection is of no use."""
        return False

    @override
    def connection_lost(self, _: Exception | None) -> None:
        # A peer that is killed with something unread resets the connection: no news of its own.
        self.end("the connection was closed")

    @override
    def pause_writing(self) -> None:
        self._writable.clear()

    @override
    def resume_writing(self) -> None:
        self._writable.set()

    def send_now(self, kind: Kind, number: int, fields: Mapping[str, Any] | None = None) -> None:
        """Send a small message, even over the high-water mark of unsent bytes."""
        self._write(*encode(kind, number, fields or {}))

    async def send(
        self, kind: Kind, number: int, fields: Mapping[str, Any], data: bytes = b""
    ) -> None:
        """Send a message, as fast as the peer takes it.

        Cancelled between two pieces it leaves the message unfinished: a cancel or an error has to
        follow.

        Raises:
            MessageTooLargeError: Nothing was sent.
        """
        frames = encode(kind, number, fields, data)
        first = next(frames)
        second = next(frames, None)
        if second is None:
            if not self._writable.is_set():
                await self._writable.wait()
            self._write(first)
            return
        async with self._sending_pieces:
            for frame in (first, second):
                await self._writable.wait()
                self._write(frame)
            for frame in frames:
                await self._writable.wait()
                self._write(frame)

    def _write(self, *frames: bytes) -> None:
        if not self.lost and self._transport is not None:
            for frame in frames:
                self._transport.write(frame)

    def end(self, reason: str) -> None:
        """Close at once; what was not sent is dropped. A second call does nothing."""
        if self.lost:
            return
        self.lost = True
        self._writable.set()
        if self._transport is not None:
            self._transport.abort()
        self._on_lost(reason)

    def close(self, reason: str) -> None:
        """Close after what was written is sent."""
        if not self.lost:
            self.lost = True
            self._writable.set()
            if self._transport is not None:
                self._transport.close()
            self._on_lost(reason)
