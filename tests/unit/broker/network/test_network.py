"""The machine's network: what listens is connected to, and what is accepted becomes a stream."""

import asyncio
import socket

import pytest

from broker.network.network import SocketNetwork
from broker.network.stream import Stream


def test_an_accepted_connection_becomes_a_stream() -> None:
    network = SocketNetwork()
    listening = network.listen("127.0.0.1", 0, backlog=5, receive_buffer_bytes=-1)
    port = int(str(listening.getsockname()[1]))
    with pytest.raises(BlockingIOError):
        listening.accept()
    with socket.create_connection(("127.0.0.1", port)) as peer:
        accepted, address = listening.accept()
        stream = network.stream(accepted, send_buffer_bytes=-1, receive_buffer_bytes=-1)
        assert (address[0], address[1]) == peer.getsockname()
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert stream.send_buffers([b"a", b"bc"], False) == 3
        assert peer.recv(10) == b"abc"
        with pytest.raises(BlockingIOError):
            stream.recv_into(memoryview(bytearray(1)))
        stream.close()
    listening.close()
    assert listening.fileno() == -1


def test_an_address_in_use_is_named() -> None:
    network = SocketNetwork()
    first = network.listen("127.0.0.1", 0, backlog=5, receive_buffer_bytes=-1)
    port = int(str(first.getsockname()[1]))
    with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
        network.listen("127.0.0.1", port, backlog=5, receive_buffer_bytes=-1)
    first.close()


async def test_a_connector_reaches_what_listens() -> None:
    network = SocketNetwork()
    listening = network.listen("127.0.0.1", 0, backlog=5, receive_buffer_bytes=-1)
    port = int(str(listening.getsockname()[1]))
    loop = asyncio.get_running_loop()
    connected: asyncio.Future[Stream | OSError] = loop.create_future()
    connector = network.connector(loop, receive_buffer_bytes=-1)
    connector.connect("localhost", port, connected.set_result)
    stream = await asyncio.wait_for(connected, 30)
    assert not isinstance(stream, OSError)
    accepted, _ = listening.accept()
    assert stream.send_buffers([b"x"], False) == 1
    assert accepted.recv(10) == b"x"
    accepted.close()
    stream.close()
    listening.close()
