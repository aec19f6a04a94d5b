"""One connection: answers in all forms and pieces, straight into the caller's memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tiered.errors import StoreTimeoutError, StoreUnavailableError
from tiered.object_store.deadline import NotRetriedError
from tiered.object_store.s3.http_connection import (
    HEAD_BYTES_MAX,
    ClosedBeforeAnswerError,
    NotPlainError,
    RangeConnection,
)

BODY = bytes(range(200))


class MemoryTransport:
    """What the connection writes to; `feed` is the network."""

    def __init__(self) -> None:
        self.written = b""
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.aborted = True


class ManualLoop:
    """The running loop, but for its time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._timers: list[tuple[float, Callable[[], object]]] = []
        self.create_future = asyncio.get_running_loop().create_future

    def time(self) -> float:
        return self.now_s

    def call_later(
        self, delay_s: float, callback: Callable[..., object], *args: object
    ) -> asyncio.TimerHandle:
        due_s = self.now_s + delay_s
        handle = asyncio.TimerHandle(due_s, callback, args, asyncio.get_running_loop())
        self._timers.append((due_s, lambda: handle.cancelled() or callback(*args)))
        return handle

    def advance(self, seconds: float) -> None:
        """Let time pass, and call what is due then."""
        self.now_s += seconds
        due = [timer for timer in self._timers if timer[0] <= self.now_s]
        self._timers = [timer for timer in self._timers if timer[0] > self.now_s]
        for _, call in due:
            call()


class World:
    def __init__(self, loop: ManualLoop | None = None) -> None:
        self.lost: list[RangeConnection] = []
        self.transport = MemoryTransport()
        self.connection = RangeConnection(
            cast("Any", loop or asyncio.get_running_loop()), self.lost.append
        )
        self.connection.connection_made(cast("Any", self.transport))
        self.buffer = bytearray(b"\xee" * (len(BODY) + 10))

    def begin(self, length: int = len(BODY), read_timeout_s: float = 10) -> "asyncio.Task[None]":
        return asyncio.create_task(
            self.connection.exchange(
                b"request", 1000, memoryview(self.buffer)[:length], read_timeout_s
            )
        )

    def feed(self, data: bytes) -> None:
        """As the loop does: as much as fits, again and again."""
        while data:
            into = self.connection.get_buffer(-1)
            count = min(len(into), len(data))
            assert count
            into[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]


def answer(
    status: str = "206 Partial Content",
    body: bytes = BODY,
    extra: str = "",
    version: str = "HTTP/1.1",
    **headers: str,
) -> bytes:
    lines = {
        "Content-Length": str(len(body)),
        "Content-Range": f"bytes 1000-{1000 + len(body) - 1}/5000",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"{version} {status}\r\n{text}{extra}\r\n".encode() + body


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 100_000])
async def test_an_answer_in_pieces_is_received(piece: int) -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    assert world.transport.written == b"request"
    data = answer()
    for at in range(0, len(data), piece):
        world.feed(data[at : at + piece])
    await task
    assert world.buffer[: len(BODY)] == BODY
    assert world.buffer[len(BODY) :] == b"\xee" * 10
    assert world.connection.reusable
    assert not world.transport.aborted


async def test_a_kept_connection_is_used_again() -> None:
    world = World()
    for body in (BODY, BODY[::-1], BODY[:1]):
        task = world.begin(len(body))
        await asyncio.sleep(0)
        world.feed(answer(body=body))
        await task
        assert world.buffer[: len(body)] == body
    assert world.connection.requests == 3


async def test_the_body_goes_straight_into_the_callers_memory() -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    data = answer()
    head = data.index(b"\r\n\r\n") + 4
    world.feed(data[: head + 10])
    into = world.connection.get_buffer(-1)
    assert into.obj is world.buffer
    assert len(into) == len(BODY) - 10
    del into
    world.feed(data[head + 10 :])
    await task


@pytest.mark.parametrize(
    "data",
    [
        answer("200 OK", Content_Range=""),
        answer("200 OK", body=BODY + b"x" * 5000, Content_Range=""),
        answer(Content_Length=""),
        answer(Content_Length="-5"),
        answer(Content_Length="200, 200"),
        answer(extra="Content-Length: 100\r\n"),
        answer(Transfer_Encoding="chunked"),
        answer(Content_Encoding="gzip"),
        answer(Content_Range="bytes 0-199/5000"),
        answer(Content_Range="bytes 1000-1300/5000"),
        answer("301 Moved"),
        answer("403 Forbidden"),
        answer("404 Not Found"),
        answer("501 Not Implemented"),
        answer("100 Continue"),
        answer(version="HTTP/1.0"),
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\r\n\r\n",
        b"HTTP/1.1 206 OK\r\n" + b"x: " + b"y" * HEAD_BYTES_MAX,
    ],
)
async def test_what_is_not_plain_is_left_to_the_library(data: bytes) -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    world.feed(data)
    with pytest.raises((NotPlainError, NotRetriedError)) as caught:
        await task
    # A whole object that ends before the range is told as that at once.
    assert isinstance(caught.value, NotPlainError) or b"200 OK" in data
    assert world.transport.aborted
    assert not world.connection.reusable
    assert bytes(world.buffer[len(BODY) :]) == b"\xee" * 10


@pytest.mark.parametrize(
    "status", ["500 Oops", "502 x", "503 Slow Down", "504 x", "429 x", "408 x"]
)
async def test_a_busy_server_is_unavailable(status: str) -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    world.feed(answer(status))
    with pytest.raises(StoreUnavailableError, match=status[:3]):
        await task
    assert world.transport.aborted


async def test_an_object_that_ends_before_the_range_is_not_tried_again() -> None:
    for data in (answer("416 Range Not Satisfiable"), answer(body=BODY[:50])):
        world = World()
        task = world.begin()
        await asyncio.sleep(0)
        world.feed(data)
        with pytest.raises(NotRetriedError):
            await task


async def test_200_with_the_right_range_is_plain_and_so_are_repeated_headers() -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    world.feed(answer("200 OK", extra="X-Id: 1\r\nx-id: 2\r\ncontent-length: 200\r\n"))
    await task
    assert world.buffer[: len(BODY)] == BODY


async def test_a_server_that_closes_after_the_answer_is_not_used_again() -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    world.feed(answer(Connection="close"))
    await task
    assert not world.connection.reusable
    with pytest.raises(ClosedBeforeAnswerError):
        await world.begin()


async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    world.feed(answer())
    await task
    world.feed(b"HTTP/1.1 200 OK\r\n")
    assert world.transport.aborted
    with pytest.raises(ClosedBeforeAnswerError):
        await world.begin()


async def test_a_body_longer_than_asked_for_goes_nowhere() -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    world.feed(answer() + b"too much")
    await task
    assert world.buffer[len(BODY) :] == b"\xee" * 10
    assert not world.connection.reusable


@pytest.mark.parametrize("came", [0, 1, 150])
async def test_a_connection_that_ends_midway(came: int) -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    world.feed(answer()[:came])
    world.connection.connection_lost(ConnectionResetError("reset"))
    kind = ClosedBeforeAnswerError if came == 0 else StoreUnavailableError
    with pytest.raises(StoreUnavailableError) as caught:
        await task
    assert type(caught.value) is kind
    assert world.lost == [world.connection]


async def test_a_cancelled_request_lets_go_of_the_memory_at_once() -> None:
    world = World()
    task = world.begin()
    await asyncio.sleep(0)
    data = answer()
    world.feed(data[:150])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.transport.aborted
    assert not world.connection.reusable
    before = bytes(world.buffer)
    # The kernel may have had more for us already.
    world.feed(data[150:])
    assert bytes(world.buffer) == before
    assert world.connection._view is None


async def test_silence_is_a_time_out_and_trickling_is_not() -> None:
    loop = ManualLoop()
    world = World(loop)
    task = world.begin(read_timeout_s=1.0)
    await asyncio.sleep(0)
    for at in range(4):
        loop.advance(0.75)
        world.feed(answer()[at : at + 1])
    loop.advance(0.75)
    await asyncio.sleep(0)
    assert not task.done()
    loop.advance(0.25)
    with pytest.raises(StoreTimeoutError, match="no byte came for 1000 ms"):
        await task
    assert world.transport.aborted


@asynccontextmanager
async def serving(answers: Sequence[bytes]) -> AsyncIterator[Callable[[], Any]]:
    """A real server that gives one answer per request, and a function that connects to it."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left:
            await reader.readexactly(len(b"request"))
            writer.write(left.pop(0))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()

    async def connect() -> RangeConnection:
        _, connection = await loop.create_connection(
            lambda: RangeConnection(loop, lambda _: None), *server.sockets[0].getsockname()
        )
        return connection

    yield connect
    server.close()
    await server.wait_closed()


async def test_megabytes_over_a_real_socket() -> None:
    body = bytes(range(256)) * 16_384
    async with serving([answer(body=body)] * 2) as connect:
        connection = await connect()
        for _ in range(2):
            buffer = bytearray(len(body))
            await connection.exchange(b"request", 1000, memoryview(buffer), 10)
            assert buffer == body
