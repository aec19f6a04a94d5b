"""Pages of a broker's admin port, and what else may be at an address."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker.network.admin_http import AdminServer, Page, Query
from broker.supervisor import page_client
from broker.supervisor.page_client import PageError, fetch_page


async def large(_query: Query) -> Page:
    return Page(503, b"x" * 300_000)


@pytest.fixture
async def address() -> AsyncIterator[str]:
    server = AdminServer({"/large": large})
    await server.start("127.0.0.1", 0)
    yield f"127.0.0.1:{server.port}"
    await server.aclose()


async def test_status_and_whole_body(address: str) -> None:
    assert await fetch_page(address, "/large") == (503, b"x" * 300_000)
    assert (await fetch_page(address, "/other"))[0] == 404


async def test_nothing_grows_without_a_bound(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_client, "PAGE_BYTES_MAX", 200_000)
    with pytest.raises(PageError, match="more than 200000 bytes"):
        await fetch_page(address, "/large")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"hello",
        b"HTTP/1.1 what\r\n\r\n",
        b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nup 1\n",
        # The broker was killed while it wrote `up 10`.
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nup 1",
    ],
)
async def test_what_is_no_whole_page_is_an_error_of_ours(said: bytes) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(PageError):
        await fetch_page(f"127.0.0.1:{port}", "/")
    server.close()
    await server.wait_closed()
    with pytest.raises(PageError):
        await fetch_page(f"127.0.0.1:{port}", "/")
