"""A broker hears of its supervisor's end, and says where it listens."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from broker.runtime.lifeline import Lifeline, Listening, decode_listening, encode_listening

LISTENING = Listening("cluster", (("PLAINTEXT", "", 9092), ("OTHER", "::1", 9192)), "127.0.0.1:1")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Lifeline]]:
    ours, theirs = socket.socketpair()
    theirs.set_inheritable(True)
    lifeline = Lifeline(theirs.detach())
    with ours:
        yield ours, lifeline
    lifeline.close()


async def test_the_end_is_heard_of_once(pair: tuple[socket.socket, Lifeline]) -> None:
    ours, lifeline = pair
    ended = []
    lifeline.watch(lambda: ended.append(1))
    await asyncio.sleep(0)
    assert ended == []
    ours.close()
    for _ in range(10):
        await asyncio.sleep(0)
    assert ended == [1]


async def test_an_end_before_the_broker_looks_is_heard_of(
    pair: tuple[socket.socket, Lifeline],
) -> None:
    ours, lifeline = pair
    ours.close()
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    lifeline.watch(lambda: ended.set_result(None))
    await asyncio.wait_for(ended, 60)
    # There is nobody to tell.
    lifeline.report(LISTENING)


async def test_what_is_reported_arrives(pair: tuple[socket.socket, Lifeline]) -> None:
    ours, lifeline = pair
    lifeline.report(LISTENING)
    assert decode_listening(ours.recv(4096)) == LISTENING


def test_no_process_of_the_broker_inherits_its_end() -> None:
    """Else it would live on in them, and the supervisor's look like alive from there."""
    ours, theirs = socket.socketpair()
    theirs.set_inheritable(True)
    with ours:
        lifeline = Lifeline(theirs.detach())
        assert not lifeline._socket.get_inheritable()
        lifeline.close()


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b"7\n", b'{"addresses":[1],"cluster_id":"","admin":""}\n']
)
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="no line of a broker"):
        decode_listening(line)


def test_a_line_is_one_line() -> None:
    line = encode_listening(LISTENING)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
