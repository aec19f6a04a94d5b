"""Connects over real sockets: accepted, refused, cancelled."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence

import pytest

from broker.network.connector import (
    Address,
    Resolved,
    SocketConnector,
    ThreadResolver,
    UnattendedResolver,
)
from broker.network.stream import Stream, listen


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    found = listen("127.0.0.1", 0, backlog=5, receive_buffer_bytes=-1)
    yield found
    found.close()


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


async def connect(host: str, port: int, resolve: object = None) -> Stream | OSError:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Stream | OSError] = loop.create_future()
    connector = SocketConnector(
        loop,
        resolve or ThreadResolver(loop),  # type: ignore[arg-type]  # a resolver of the test
        receive_buffer_bytes=-1,
    )
    connector.connect(host, port, done.set_result)
    assert not done.done(), "the callback comes in a later turn"
    return await asyncio.wait_for(done, 20)


async def test_connects_to_what_listens(listener: socket.socket) -> None:
    """Bytes go both ways, and nothing waits."""
    stream = await connect("127.0.0.1", listener.getsockname()[1])
    assert not isinstance(stream, OSError)
    accepted, _ = listener.accept()
    assert stream.send_buffers([b"ping"], False) == 4
    assert accepted.recv(10) == b"ping"
    with pytest.raises(BlockingIOError):
        stream.recv_into(memoryview(bytearray(10)))
    stream.close()
    accepted.close()


async def test_nothing_listens_is_a_refusal() -> None:
    """Which is evidence, and so told apart from all other failures."""
    assert isinstance(await connect("127.0.0.1", free_port()), ConnectionRefusedError)


async def test_next_address_is_tried(listener: socket.socket) -> None:
    """`localhost` may mean ::1 first, where nothing listens."""
    port = listener.getsockname()[1]
    addresses = [
        (socket.AF_INET, ("127.0.0.1", free_port())),
        (socket.AF_INET, ("127.0.0.1", port)),
    ]

    def resolve(host: str, port: int, done: Resolved) -> None:
        found: Sequence[Address] = addresses
        asyncio.get_running_loop().call_soon(done, found)

    stream = await connect("name", port, resolve)
    assert not isinstance(stream, OSError)
    stream.close()


async def test_unknown_name_is_an_error() -> None:
    """No refusal: the peer's machine has said nothing."""
    found = await connect("no-such-name.invalid", 9092)
    assert isinstance(found, OSError)
    assert not isinstance(found, ConnectionRefusedError)


async def test_cancelled_connect_calls_nobody(listener: socket.socket) -> None:
    """Neither while the name is looked up nor while it connects."""
    loop = asyncio.get_running_loop()
    called: list[object] = []
    connector = SocketConnector(loop, ThreadResolver(loop), receive_buffer_bytes=-1)
    early = connector.connect("127.0.0.1", listener.getsockname()[1], called.append)
    early.cancel()
    early.cancel()

    def resolve(host: str, port: int, done: Resolved) -> None:
        done([(socket.AF_INET, (host, port))])

    late = SocketConnector(loop, resolve, receive_buffer_bytes=-1).connect(
        "127.0.0.1", listener.getsockname()[1], called.append
    )
    late.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    await loop.run_in_executor(None, int)
    await asyncio.sleep(0)
    assert called == []


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid", "a" * 70 + ".invalid"])
async def test_a_lookup_that_nothing_waits_for(host: str) -> None:
    """Its answer comes in a later turn: addresses, or why there are none."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()
    UnattendedResolver(loop)(host, 9092, done.set_result)
    assert not done.done()
    found = await asyncio.wait_for(done, 60)
    if host == "127.0.0.1":
        assert found == [(socket.AF_INET, (host, 9092))]
    else:
        assert isinstance(found, OSError)


async def test_a_lookup_whose_loop_has_gone_harms_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process ends without it."""
    asked, answer = threading.Event(), threading.Event()

    def slow(_host: str, _port: int) -> list[Address]:
        asked.set()
        answer.wait(20)
        return []

    monkeypatch.setattr("broker.network.connector.addresses_of", slow)
    monkeypatch.setattr(threading, "excepthook", lambda seen: pytest.fail(str(seen)))
    gone = asyncio.new_event_loop()
    called: list[object] = []
    UnattendedResolver(gone)("slow.example", 9092, called.append)
    await asyncio.to_thread(asked.wait, 20)
    (thread,) = [one for one in threading.enumerate() if one.name == "name lookup"]
    assert thread.daemon
    gone.close()
    answer.set()
    await asyncio.to_thread(thread.join, 20)
    assert called == []
