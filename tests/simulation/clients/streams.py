"""A client's end of a connection, as asyncio's reader and writer: for `Client` of the tests."""

import asyncio
from typing import Any

from broker.network.stream import Stream
from tests.fakes.network.client import Client
from tests.simulation.network import HostNetwork, SimStream


class SimReader:
    """What of `asyncio.StreamReader` a client needs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stream: SimStream) -> None:
        self._loop = loop
        self._stream = stream
        self._buffer = bytearray()
        self._ended: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        loop.add_reader(stream.fd, self._on_readable)

    def _on_readable(self) -> None:
        try:
            data = self._stream.take()
        except BlockingIOError:
            return
        except OSError as error:
            self._end(error)
            return
        if not data:
            self._end(asyncio.IncompleteReadError(bytes(self._buffer), None))
            return
        self._buffer += data
        self._wake()

    def _end(self, error: Exception) -> None:
        self._ended = error
        self._loop.remove_reader(self._stream.fd)
        self._stream.close()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def readexactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            if self._ended is not None:
                raise self._ended
            self._waiter = self._loop.create_future()
            await self._waiter
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def close(self) -> None:
        """The client leaves."""
        if self._ended is None:
            self._end(asyncio.IncompleteReadError(b"", None))


class SimWriter:
    """What of `asyncio.StreamWriter` a client needs."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, stream: SimStream, reader: SimReader
    ) -> None:
        self._loop = loop
        self._stream = stream
        self._reader = reader
        self._unsent = bytearray()

    def write(self, data: bytes) -> None:
        was_idle = not self._unsent
        self._unsent += data
        if was_idle:
            self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                count = self._stream.send_buffers([bytes(self._unsent)], False)
                del self._unsent[:count]
        except BlockingIOError:
            self._loop.add_writer(self._stream.fd, self._flush)
            return
        except OSError:
            self._unsent.clear()
        self._loop.remove_writer(self._stream.fd)

    def close(self) -> None:
        self._reader.close()


async def open_stream(network: HostNetwork, host: str, port: int, *, timeout_s: float) -> SimStream:
    """Connect.

    Raises:
        OSError: Refused, or no answer in time.
    """
    connected: asyncio.Future[Stream | OSError] = asyncio.get_running_loop().create_future()

    def finish(result: Stream | OSError) -> None:
        if not connected.done():
            connected.set_result(result)
        elif not isinstance(result, OSError):
            result.close()

    connecting = network.connect(host, port, finish)
    try:
        async with asyncio.timeout(timeout_s):
            result = await connected
    except TimeoutError:
        connecting.cancel()
        raise
    if isinstance(result, OSError):
        raise result
    assert isinstance(result, SimStream)
    return result


async def open_client(network: HostNetwork, host: str, port: int, *, timeout_s: float) -> Client:
    """A connected client that has asked what is served.

    Raises:
        OSError: There is no connection, or it ended.
    """
    stream = await open_stream(network, host, port, timeout_s=timeout_s)
    loop = asyncio.get_running_loop()
    reader = SimReader(loop, stream)
    writer: Any = SimWriter(loop, stream, reader)
    bytes_in: Any = reader
    return await Client.over(bytes_in, writer)
