"""The pool of connections for ranged reads."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from tests.fakes.clock import ManualClock
from tests.harness.certificates import make_certificate
from tiered.errors import StoreTimeoutError, StoreUnavailableError
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.s3 import ranged_get
from tiered.object_store.s3.credentials import FixedCredentials
from tiered.object_store.s3.http_connection import ClosedBeforeAnswerError
from tiered.object_store.s3.ranged_get import Endpoint, RangedReader
from tiered.object_store.statistics import StoreStatistics

DATA = bytes(range(256)) * 100


class Server:
    """Answers ranges of `DATA`, `requests_per_connection` on each connection.

    Attributes:
        gate: Set: answers are sent.
        paths: Asked for so far.
        connections: Accepted so far.
    """

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.paths: list[str] = []
        self.connections = 0
        self.busy = 0
        self.requests_per_connection = 1000
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for _ in range(self.requests_per_connection):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.paths.append(head.split(" ")[1])
                self.busy += 1
                await self.gate.wait()
                self.busy -= 1
                match = re.search(r"range:bytes=(\d+)-(\d+)", head)
                assert match is not None
                body = DATA[int(match[1]) : int(match[2]) + 1]
                writer.write(
                    f"HTTP/1.1 206 OK\r\ncontent-length: {len(body)}\r\n"
                    f"content-range: bytes {match[1]}-{match[2]}/{len(DATA)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def world(
    max_connections: int = 4, deadlines: StoreDeadlines | None = None
) -> AsyncIterator[tuple[Server, RangedReader]]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    reader = RangedReader(
        Endpoint("127.0.0.1", server.port, "/bucket/", "us-east-1", None),
        FixedCredentials("key", "secret"),
        ManualClock(),
        StoreStatistics(ManualClock()),
        deadlines=deadlines or StoreDeadlines(),
        max_connections=max_connections,
    )
    yield server, reader
    server.gate.set()
    reader.close()
    listening.close()
    await listening.wait_closed()


async def read(reader: RangedReader, position: int = 10, length: int = 1000) -> None:
    buffer = bytearray(length)
    await reader.read("a b/c", position, memoryview(buffer))
    assert buffer == DATA[position : position + length]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.002)


async def test_connections_are_kept_and_the_path_is_quoted() -> None:
    async with world() as (server, reader):
        for position in range(5):
            await read(reader, position)
        assert server.connections == 1
        assert set(server.paths) == {"/bucket/a%20b/c"}
        assert reader.connections == 1


async def test_no_more_connections_than_allowed() -> None:
    async with world(max_connections=3) as (server, reader):
        server.gate.clear()
        tasks = [asyncio.create_task(read(reader, number)) for number in range(10)]
        await until(lambda: server.busy == 3)
        assert reader.connections == 3
        server.gate.set()
        await asyncio.gather(*tasks)
        assert server.connections == 3
        assert reader.connections == 3


async def test_a_connection_that_the_server_has_closed_is_no_error() -> None:
    """Whether it was seen to be closed in time or not."""
    async with world() as (server, reader):
        server.requests_per_connection = 1
        for _ in range(5):
            await read(reader)
        assert server.connections == 5
        await until(lambda: reader.connections == 0)


async def test_a_new_connection_that_is_closed_at_once_is_an_error() -> None:
    async with world() as (server, reader):
        server.requests_per_connection = 0
        with pytest.raises(ClosedBeforeAnswerError):
            await read(reader)


async def test_a_connection_that_was_idle_for_long_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world() as (server, reader):
        await read(reader)
        monkeypatch.setattr(ranged_get, "IDLE_MAX_S", -1.0)
        await read(reader)
        assert server.connections == 2


async def test_a_cancelled_read_gives_its_place_back() -> None:
    async with world(max_connections=1) as (server, reader):
        server.gate.clear()
        first = asyncio.create_task(read(reader))
        await until(lambda: server.busy == 1)
        second = asyncio.create_task(read(reader))
        third = asyncio.create_task(read(reader))
        await asyncio.sleep(0)
        second.cancel()
        first.cancel()
        server.gate.set()
        await third
        assert server.connections == 2
        for task in (first, second):
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_closing_ends_what_is_under_way() -> None:
    async with world() as (server, reader):
        await read(reader)
        server.gate.clear()
        task = asyncio.create_task(read(reader))
        await until(lambda: server.busy == 1)
        reader.close()
        with pytest.raises(StoreUnavailableError):
            await task
        with pytest.raises(StoreUnavailableError, match="closed"):
            await read(reader)
        assert reader.connections == 0


async def test_a_port_that_nobody_listens_on() -> None:
    async with world() as (server, reader):
        reader._endpoint.port = 1
        with pytest.raises(StoreUnavailableError, match="no connection"):
            await read(reader)
        assert server.connections == 0


async def test_connecting_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(deadlines=StoreDeadlines(connect_ms=20)) as (_, reader):

        async def never(*_: object, **__: object) -> Awaitable[None]:
            await asyncio.Event().wait()
            raise AssertionError

        monkeypatch.setattr(reader._loop, "create_connection", never)
        with pytest.raises(StoreTimeoutError, match="within 20 ms"):
            await read(reader)


@pytest.mark.parametrize(
    ("host", "port", "secure", "header", "real_port"),
    [
        ("s3.example.org", None, True, "s3.example.org", 443),
        ("s3.example.org", 443, True, "s3.example.org", 443),
        ("s3.example.org", 80, False, "s3.example.org", 80),
        ("s3.example.org", 443, False, "s3.example.org:443", 443),
        ("10.0.0.1", 9000, False, "10.0.0.1:9000", 9000),
        ("::1", 9000, False, "[::1]:9000", 9000),
    ],
)
def test_the_host_header(
    host: str, port: int | None, secure: bool, header: str, real_port: int
) -> None:
    endpoint = Endpoint(host, port, "/", "r", ssl.create_default_context() if secure else None)
    assert (endpoint.host_header, endpoint.port) == (header, real_port)


async def read_over_tls(folder: Path, *, trusted: bool) -> None:
    key_path, certificate_path = make_certificate(folder)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate_path, key_path)
    client_side = ssl.create_default_context(cafile=str(certificate_path) if trusted else None)
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=server_side)
    port = listening.sockets[0].getsockname()[1]
    statistics = StoreStatistics(ManualClock())
    reader = RangedReader(
        Endpoint("127.0.0.1", port, "/bucket/", "us-east-1", client_side),
        FixedCredentials("key", "secret"),
        ManualClock(),
        statistics,
        deadlines=StoreDeadlines(),
        max_connections=2,
    )
    try:
        for position in (0, 7, 100):
            await read(reader, position, 20_000)
        assert statistics.connections_opened == 1
    finally:
        reader.close()
        listening.close()
        await listening.wait_closed()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_over_tls(run: Callable[[Coroutine[None, None, None]], None], tmp_path: Path) -> None:
    run(read_over_tls(tmp_path, trusted=True))


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        await read_over_tls(tmp_path, trusted=False)
