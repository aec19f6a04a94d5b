"""A body gets its header: size, correlation id, and a tag section where the version has one."""

from typing import Any

import pytest

from broker.network.connection_info import ConnectionInfo
from broker.network.response import ResponseSlot
from broker.requests.reply import GATHERED_SIZE_MAX, Reply, frame_response
from broker.requests.request_context import RequestContext
from storage.types.file_slice import FileSlice


def context(*, flexible: bool) -> RequestContext:
    info = ConnectionInfo("PLAINTEXT", "127.0.0.1")
    return RequestContext(1, 12, 0x01020304, "c", info, 5.0, flexible)


HEADS = {False: b"\1\2\3\4", True: b"\1\2\3\4\0"}


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("size", [0, 1, GATHERED_SIZE_MAX, GATHERED_SIZE_MAX + 1])
def test_bytes_are_framed(flexible: bool, size: int) -> None:
    """Large ones are not copied to join them with their header."""
    body = b"x" * size
    pieces = frame_response(context(flexible=flexible), body)
    whole = b"".join(pieces)
    assert whole[4:] == HEADS[flexible] + body
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4
    assert (pieces[-1] is body) == (size > GATHERED_SIZE_MAX)


@pytest.mark.parametrize("flexible", [False, True])
def test_files_stay_files(flexible: bool) -> None:
    """The size counts them, nobody reads them."""
    records = FileSlice("file", 100, 1_000_000)
    pieces = frame_response(context(flexible=flexible), [b"head", records, b"tail"])
    head = HEADS[flexible] + b"head"
    size = len(head) + 1_000_000 + 4
    assert pieces == [size.to_bytes(4, "big") + head, records, b"tail"]


class Connection:
    def __init__(self) -> None:
        self.answers: list[Any] = []

    def answered(self, slot: ResponseSlot) -> None:
        self.answers.append(slot.pieces)


def reply_of(connection: Connection) -> tuple[Reply, ResponseSlot, list[RequestContext]]:
    observed: list[RequestContext] = []
    slot = ResponseSlot(connection)  # type: ignore[arg-type]  # only `answered` is called
    return Reply(slot, context(flexible=False), observed.append), slot, observed


def test_a_late_answer_is_framed_and_counted() -> None:
    connection = Connection()
    reply, _, observed = reply_of(connection)
    reply.send(b"body")
    assert connection.answers == [[b"\0\0\0\x08\1\2\3\4body"]]
    assert [c.correlation_id for c in observed] == [0x01020304]


def test_an_answer_of_nothing_takes_its_turn() -> None:
    """acks=0: later answers must not wait for it."""
    connection = Connection()
    reply, slot, observed = reply_of(connection)
    reply.send(None)
    assert connection.answers == [None]
    assert slot.done
    assert len(observed) == 1


def test_who_works_on_it_hears_that_the_client_left() -> None:
    connection = Connection()
    reply, slot, _ = reply_of(connection)
    left: list[bool] = []
    reply.when_abandoned(lambda: left.append(True))
    slot.abandon()
    slot.abandon()
    assert left == [True]
    reply.send(b"body")
    assert connection.answers == []
