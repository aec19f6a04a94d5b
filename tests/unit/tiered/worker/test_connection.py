"""Both ends of a socket pair: messages, back pressure, the end."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from tests.unit.tiered.worker.turns import settled, until
from tiered.worker.connection import WRITE_BUFFER_BYTES, MessageConnection
from tiered.worker.frames import FRAME_SIZE_MAX, FrameError, Kind, Message, MessageTooLargeError


class End:
    """One end and what happened to it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.reasons: list[str] = []
        self.refuse = False
        self.connection = MessageConnection(self.take, self.reasons.append)

    def take(self, message: Message) -> None:
        if self.refuse:
            raise FrameError("something odd")
        self.messages.append(message)


class Pair:
    def __init__(self) -> None:
        self.left = End()
        self.right = End()

    async def open(self) -> None:
        for end, sock in zip((self.left, self.right), socket.socketpair(), strict=True):
            sock.setblocking(False)
            await end.connection.open(sock)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    await pair.open()
    yield pair
    pair.left.connection.end("over")
    pair.right.connection.end("over")
    await settled()


async def test_messages_arrive_in_order(pair: Pair) -> None:
    await pair.left.connection.send(Kind.CALL, 1, {"method": "m"}, b"data")
    pair.left.connection.send_now(Kind.CANCEL, 1)
    await until(lambda: len(pair.right.messages) == 2)
    assert [(m.kind, m.id, m.data) for m in pair.right.messages] == [
        (Kind.CALL, 1, b"data"),
        (Kind.CANCEL, 1, b""),
    ]


async def test_two_large_messages_do_not_mix(pair: Pair) -> None:
    """And a small one does not wait for them."""
    large = [bytes([n]) * (3 * FRAME_SIZE_MAX) for n in (1, 2)]
    sends = [
        asyncio.create_task(pair.left.connection.send(Kind.CALL, n, {}, data))
        for n, data in enumerate(large)
    ]
    await settled(2)
    pair.left.connection.send_now(Kind.CANCEL, 9)
    await asyncio.gather(*sends)
    await until(lambda: len(pair.right.messages) == 3)
    assert pair.right.messages[0].kind is Kind.CANCEL
    assert [m.data for m in pair.right.messages[1:]] == large


async def test_sender_waits_for_a_peer_that_does_not_read(pair: Pair) -> None:
    transport = pair.right.connection._transport
    assert transport is not None
    transport.pause_reading()
    sending = asyncio.create_task(
        pair.left.connection.send(Kind.CALL, 1, {}, bytes(16 * FRAME_SIZE_MAX))
    )
    await settled(200)
    assert not sending.done()
    ours = pair.left.connection._transport
    assert ours is not None
    assert ours.get_write_buffer_size() <= WRITE_BUFFER_BYTES + FRAME_SIZE_MAX + 4
    transport.resume_reading()
    await sending


async def test_end_frees_who_waits_to_send(pair: Pair) -> None:
    transport = pair.right.connection._transport
    assert transport is not None
    transport.pause_reading()
    sending = asyncio.create_task(
        pair.left.connection.send(Kind.CALL, 1, {}, bytes(16 * FRAME_SIZE_MAX))
    )
    await settled(50)
    pair.left.connection.end("enough")
    await asyncio.wait_for(sending, 30)
    await pair.left.connection.send(Kind.CALL, 2, {})
    assert pair.left.reasons == ["enough"]


async def test_closed_end_is_told_once(pair: Pair) -> None:
    pair.left.connection.close("done")
    pair.left.connection.close("done")
    pair.left.connection.end("done")
    await until(lambda: bool(pair.right.reasons))
    await settled()
    assert (pair.left.reasons, pair.right.reasons) == (["done"], ["the connection was closed"])
    assert pair.right.connection.lost


async def test_close_sends_what_was_written(pair: Pair) -> None:
    pair.left.connection.send_now(Kind.HELLO, 0)
    pair.left.connection.close("done")
    await until(lambda: bool(pair.right.reasons))
    assert [m.kind for m in pair.right.messages] == [Kind.HELLO]


@pytest.mark.parametrize("junk", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, b"\0\0\0\6\0\0\0\2[]"])
async def test_hostile_bytes_close_it(pair: Pair, junk: bytes) -> None:
    transport = pair.left.connection._transport
    assert transport is not None
    transport.write(junk)
    await until(lambda: bool(pair.left.reasons))
    assert pair.right.reasons[0].startswith("it was sent ")


async def test_message_out_of_turn_closes_it_and_the_rest_is_not_looked_at(pair: Pair) -> None:
    pair.right.refuse = True
    pair.left.connection.send_now(Kind.HELLO, 0)
    pair.left.connection.send_now(Kind.HELLO, 0)
    await until(lambda: bool(pair.right.reasons))
    assert pair.right.reasons == ["it was sent something odd"]


async def test_torn_frame_is_no_message(pair: Pair) -> None:
    transport = pair.left.connection._transport
    assert transport is not None
    transport.write(b"\0\0\0\x20\0\0\0\2{")
    pair.left.connection.close("done")
    await until(lambda: bool(pair.right.reasons))
    assert pair.right.messages == []


async def test_too_large_is_not_sent(pair: Pair) -> None:
    with pytest.raises(MessageTooLargeError):
        await pair.left.connection.send(Kind.CALL, 1, {"x": "y" * FRAME_SIZE_MAX})
    await pair.left.connection.send(Kind.CALL, 2, {})
    await until(lambda: len(pair.right.messages) == 1)
