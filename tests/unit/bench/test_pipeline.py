"""Answers reach who asked, in pieces or all at once, and a wrong one is an error."""

import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from bench.generator import GeneratorError
from bench.pipeline import Connection, Loop


def frame(number: int, body: bytes = b"") -> bytes:
    """Laid out as requests are: a size, key and version, the correlation id."""
    return struct.pack(">ihhi", len(body) + 8, 0, 0, number) + body


def answer(number: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, number) + body


class Peer:
    """A loop with one connection, and its other end."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.connected = 0
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            self.connection: Connection = self.loop.connect("127.0.0.1", port, self._on_connected)
            self.socket, _ = listener.accept()
        self.answers: list[bytes] = []

    def _on_connected(self) -> None:
        self.connected += 1

    def ask(self, number: int, body: bytes = b"") -> None:
        self.connection.send(frame(number, body), self.answers.append)

    def turn_until(self, count: int) -> None:
        self.loop.run_until(lambda: len(self.answers) >= count, 30.0, "answers")

    def close(self) -> None:
        self.loop.close()
        self.socket.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    with closing(Peer()) as one:
        yield one


def test_what_is_sent_early_goes_out_when_the_connection_stands(peer: Peer) -> None:
    peer.ask(1)
    peer.loop.run_until(lambda: peer.connected == 1, 5.0, "connecting")
    assert peer.socket.recv(100) == frame(1)


def test_answers_in_one_piece_and_in_many(peer: Peer) -> None:
    for number in (1, 2, 3):
        peer.ask(number)
    assert peer.connection.in_flight == 3
    peer.socket.sendall(answer(1, b"one") + answer(2, b"two") + answer(3, b"three")[:6])
    peer.turn_until(2)
    assert [data[4:] for data in peer.answers] == [b"one", b"two"]
    peer.socket.sendall(answer(3, b"three")[6:])
    peer.turn_until(3)
    assert peer.answers[2] == struct.pack(">i", 3) + b"three"
    assert peer.connection.in_flight == 0


def test_more_than_the_socket_takes(peer: Peer) -> None:
    body = os.urandom(8 << 20)
    peer.ask(1, body)
    peer.ask(2)
    expected = frame(1, body) + frame(2)
    received = bytearray()
    peer.socket.settimeout(0)
    deadline = time.monotonic() + 20
    while len(received) < len(expected):
        assert time.monotonic() < deadline
        peer.loop.turn()
        try:
            received += peer.socket.recv(1 << 20)
        except BlockingIOError:
            continue
    assert received == expected


def test_answer_to_another_request(peer: Peer) -> None:
    peer.ask(1)
    peer.socket.sendall(answer(2, b""))
    with pytest.raises(GeneratorError, match="another request"):
        peer.turn_until(1)


def test_closed_by_the_broker(peer: Peer) -> None:
    peer.ask(1)
    peer.loop.turn()
    peer.socket.close()
    with pytest.raises(GeneratorError, match="closed"):
        peer.turn_until(1)


def test_calls_in_order_of_their_moments() -> None:
    with closing(Loop()) as loop:
        seen: list[str] = []
        now = time.perf_counter()
        loop.call_at(now + 0.002, lambda: seen.append("later"))
        loop.call_at(now, lambda: seen.append("first"))
        loop.call_at(now, lambda: seen.append("second"))
        loop.run_until(lambda: len(seen) == 3, 30.0, "calls")
    assert seen == ["first", "second", "later"]


def test_waiting_in_vain() -> None:
    with closing(Loop()) as loop, pytest.raises(GeneratorError, match="nothing: not done"):
        loop.run_until(lambda: False, 0.001, "nothing")
