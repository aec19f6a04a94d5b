"""The admin port answers probes, and strangers cannot hold it up."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker.network.admin_http import AdminServer, Page, Query


async def fine(_query: Query) -> Page:
    return Page(200, b"ok\n")


async def echo(query: Query) -> Page:
    return Page(200, repr(dict(query)).encode())


async def broken(_query: Query) -> Page:
    raise ValueError("a bug")


async def refuse(_query: Query) -> Page:
    return Page(409, b"not now\n")


@pytest.fixture
async def server() -> AsyncIterator[AdminServer]:
    server = AdminServer({"/healthz": fine, "/broken": broken})
    server.add({"/echo": echo}, {"/do": echo, "/refuse": refuse})
    await server.start("127.0.0.1", 0)
    yield server
    await server.aclose()


async def ask(server: AdminServer, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_pages_are_served(server: AdminServer) -> None:
    answer = await ask(server, b"GET /healthz?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok\n")


async def test_head_has_no_body(server: AdminServer) -> None:
    answer = await ask(server, b"HEAD /healthz HTTP/1.1\r\n\r\n")
    assert b"Content-Length: 3" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /nothing HTTP/1.1", b"404"),
        (b"POST /healthz HTTP/1.1", b"405"),
        (b"DELETE /healthz HTTP/1.1", b"405"),
        (b"GET /do HTTP/1.1", b"405"),
        (b"POST /do HTTP/1.1", b"403"),
        (b"nonsense", b"400"),
        (b"GET /broken HTTP/1.1", b"500"),
    ],
)
async def test_refusals(server: AdminServer, request_line: bytes, status: bytes) -> None:
    answer = await ask(server, request_line + b"\r\n\r\n")
    assert answer.split(b" ")[1] == status


async def test_an_action_is_refused_with_its_reason(server: AdminServer) -> None:
    answer = await ask(server, b"POST /refuse HTTP/1.1\r\nVarve-Action: 1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 409 Conflict\r\n")
    assert answer.endswith(b"\r\n\r\nnot now\n")


async def test_an_endless_head_is_cut_off(server: AdminServer) -> None:
    answer = await ask(server, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 20_000)
    assert answer == b""
    assert (await ask(server, b"GET /healthz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_queries_and_actions(server: AdminServer) -> None:
    """A web page can make a browser post, but not with a header of its own."""
    answer = await ask(server, b"GET /echo?topic=a%20b&n=1&n=2 HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"{'topic': 'a b', 'n': '2'}")
    answer = await ask(server, b"POST /do?x=1 HTTP/1.1\r\nVarve-Action: 1\r\n\r\n")
    assert answer.endswith(b"{'x': '1'}")
