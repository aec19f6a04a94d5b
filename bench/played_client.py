"""A connection of a broker in this process, without sockets: `PlayedClient`.

The connection, the router, the handlers and the loop's turns are the broker's own; what a client
sends is read out of memory, and answers end in memory, without what the kernel would copy of files.
"""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from bench.played_stream import PlayedStream
from broker.broker import Broker
from broker.network.connection_info import ConnectionInfo

_SIZE: Final = struct.Struct(">i")


class PlayedClient:
    """A connection of a broker in this process."""

    def __init__(self, broker: Broker) -> None:
        """`broker` has been started."""
        assert broker.network is not None
        self.stream = PlayedStream()
        processor = next(iter(broker.network.processors))
        self._connection = processor.add(self.stream, ConnectionInfo("PLAINTEXT", "127.0.0.1"))

    def send(self, frames: Sequence[bytes | bytearray]) -> None:
        """Let the broker read all of them at once."""
        self.stream.incoming = memoryview(b"".join(frames))
        self._connection.on_readable()

    async def answers(self, count: int) -> list[bytes]:
        """As many answers, each from its correlation id on.

        What comes from a file is left out, so only one answer at a time may have some.
        """
        found: list[bytes] = []
        while len(found) < count:
            await asyncio.sleep(0)
            found += _taken(self.stream)
        # A connection that has used up its time goes on in the next turn, if only to find nothing.
        await asyncio.sleep(0)
        return found

    async def ask(self, frames: Sequence[bytes | bytearray]) -> list[bytes]:
        """Send all at once; their answers, in order."""
        self.send(frames)
        return await self.answers(len(frames))


def _taken(stream: PlayedStream) -> Iterator[bytes]:
    """Whole answers; of one with records from a file only what is not from there."""
    sent = stream.sent
    while sent:
        (size,) = _SIZE.unpack_from(sent)
        if len(sent) + stream.sent_of_files < 4 + size:
            return
        answer = bytes(sent[4 : 4 + size])
        stream.sent_of_files -= size - len(answer)
        del sent[: 4 + size]
        yield answer
