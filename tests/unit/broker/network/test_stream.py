"""The few socket calls, on real sockets of this machine."""

import errno
import select
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.network.stream import (
    EXPECTED_MIN,
    UNPACED,
    UNSENT_MAX,
    SocketStream,
    listen,
    spare_pacing,
    tune,
)
from storage.environment.local_filesystem import LocalFilesystem


@pytest.fixture
def pair() -> Iterator[tuple[SocketStream, socket.socket]]:
    """Our end and the peer's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield SocketStream(ours), theirs
    ours.close()
    theirs.close()


def test_nothing_to_receive_does_not_wait(pair: tuple[SocketStream, socket.socket]) -> None:
    stream, peer = pair
    buffer = memoryview(bytearray(10))
    with pytest.raises(BlockingIOError):
        stream.recv_into(buffer)
    peer.send(b"abc")
    assert stream.recv_into(buffer) == 3
    assert bytes(buffer[:3]) == b"abc"
    peer.close()
    assert stream.recv_into(buffer) == 0


def test_buffers_are_gathered_and_a_full_socket_says_how_much_it_took(
    pair: tuple[SocketStream, socket.socket],
) -> None:
    stream, peer = pair
    assert stream.send_buffers([b"ab", memoryview(b"cd"), bytearray(b"e")], False) == 5
    assert peer.recv(10) == b"abcde"
    sent = stream.send_buffers([b"x" * (64 << 20)], True)
    assert 0 < sent < 64 << 20
    with pytest.raises(BlockingIOError):
        stream.send_buffers([b"x"], False)


def test_files_are_sent_from_their_position(
    pair: tuple[SocketStream, socket.socket], tmp_path: Path
) -> None:
    stream, peer = pair
    (tmp_path / "file").write_bytes(b"0123456789")
    file = LocalFilesystem().open(str(tmp_path / "file"), readonly=True)
    assert stream.send_file(file, 3, 4) == 4
    assert peer.recv(10) == b"3456"
    assert stream.send_file(file, 8, 100) == 2
    assert stream.send_file(file, 10, 1) == 0


def test_a_large_frame_calls_once_a_good_part_of_it_is_there() -> None:
    """And its last byte, or the peer's end, in any case."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = socket.create_connection(listener.getsockname())
        ours = listener.accept()[0]
    with peer, ours:
        ours.setblocking(False)
        stream = SocketStream(ours)
        buffer = memoryview(bytearray(EXPECTED_MIN))

        def is_readable(wait_s: float = 0.0) -> bool:
            return bool(select.select([ours], [], [], wait_s)[0])

        stream.expect(EXPECTED_MIN)
        peer.sendall(b"x" * (EXPECTED_MIN - 1))
        assert not is_readable()
        peer.sendall(b"x")
        assert is_readable(10)
        while buffer:
            buffer = buffer[stream.recv_into(buffer) :]
        # Below the least that is worth a call of the system any byte counts again.
        stream.expect(EXPECTED_MIN - 1)
        peer.sendall(b"y")
        assert is_readable(10)
        stream.recv_into(memoryview(bytearray(1)))
        stream.expect(1 << 30)
        peer.sendall(b"z")
        assert not is_readable()
        peer.close()
        assert is_readable(10)
        assert stream.recv_into(memoryview(bytearray(10))) == 1
        assert stream.recv_into(memoryview(bytearray(10))) == 0


def test_descriptor_is_known_after_close(pair: tuple[SocketStream, socket.socket]) -> None:
    """The poller has to forget it then."""
    stream, _ = pair
    fd = stream.fileno()
    stream.close()
    stream.close()
    assert stream.fileno() == fd > 0


def test_listening_on_a_port_of_the_systems_choice() -> None:
    """Accepts without waiting; can be bound again right after."""
    listener = listen("127.0.0.1", 0, backlog=5, receive_buffer_bytes=-1)
    port = listener.getsockname()[1]
    with pytest.raises(BlockingIOError):
        listener.accept()
    client = socket.create_connection(("127.0.0.1", port))
    accepted, _ = listener.accept()
    accepted.close()
    client.close()
    listener.close()
    listen("127.0.0.1", port, backlog=5, receive_buffer_bytes=-1).close()


def test_taken_port_is_named() -> None:
    """The operator reads which of several listeners it is."""
    with listen("127.0.0.1", 0, backlog=5, receive_buffer_bytes=-1) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port}: .*in use") as found:
            listen("127.0.0.1", port, backlog=5, receive_buffer_bytes=-1)
    assert found.value.errno == errno.EADDRINUSE


def test_foreign_address_is_named() -> None:
    with pytest.raises(OSError, match=r"192\.0\.2\.1:9092"):
        listen("192.0.2.1", 9092, backlog=5, receive_buffer_bytes=-1)


def test_no_host_is_every_interface() -> None:
    with listen("", 0, backlog=5, receive_buffer_bytes=-1) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        if listener.family == socket.AF_INET6:
            socket.create_connection(("::1", port)).close()


def test_accepted_sockets_are_prompt_and_sized() -> None:
    with socket.socket() as one:
        default = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        tune(one, send_buffer_bytes=-1, receive_buffer_bytes=-1)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == default
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert not one.getblocking()
        if sys.platform == "linux":
            assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == UNSENT_MAX
        tune(one, send_buffer_bytes=20_000, receive_buffer_bytes=30_000)
        # Linux doubles what it is told, for its own bookkeeping.
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in {20_000, 40_000}
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in {30_000, 60_000}


class _FromElsewhere(socket.socket):
    """A connection whose peer is on another machine, as far as it says."""

    def getpeername(self) -> tuple[str, int]:
        return ("192.0.2.7", 5000)


def _congestion_control(one: socket.socket) -> bytes:
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


@pytest.mark.skipif(sys.platform != "linux", reason="because only Linux lets a socket choose")
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_connections_within_the_machine_are_not_paced(host: str) -> None:
    """Those to other machines keep what the system has chosen."""
    with listen("", 0, backlog=5, receive_buffer_bytes=-1) as listener:
        client = socket.create_connection((host, listener.getsockname()[1]))
        accepted = listener.accept()[0]
    with client, accepted:
        chosen = _congestion_control(accepted)
        elsewhere = _FromElsewhere(fileno=socket.dup(accepted.fileno()))
        with elsewhere:
            spare_pacing(elsewhere)
        assert _congestion_control(accepted) == chosen
        spare_pacing(accepted)
        assert _congestion_control(accepted) == UNPACED


def test_peers_that_have_gone_are_an_error_and_other_families_are_left_alone() -> None:
    with socket.socket() as one, pytest.raises(OSError, match="connected"):
        spare_pacing(one)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        spare_pacing(ours)
