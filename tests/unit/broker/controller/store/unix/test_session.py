"""A connection to the server: what is wrong ends it with a sentence, what is too much fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from broker.controller.store.metadata_store import (
    CompactedError,
    Put,
    StoreUnavailableError,
)
from broker.controller.store.unix import session, store_server
from broker.controller.store.unix.answers import (
    decode_changes,
    decode_failure,
    decode_range_result,
    decode_txn_result,
)
from broker.controller.store.unix.frames import (
    ANSWER_BYTES_MAX,
    MAGIC,
    RELEASE,
    Frame,
    Hello,
    Kind,
    decode_welcome,
    encode_frame,
    encode_hello,
    read_frame,
)
from broker.controller.store.unix.requests import (
    RangeRequest,
    TxnRequest,
    WatchRequest,
    decode_number,
    decode_text,
    encode_number,
    encode_range,
    encode_text,
    encode_txn,
    encode_watch,
)
from broker.controller.store.unix.session import GREETING_MS
from broker.controller.store.unix.socket_file import listen
from broker.controller.store.unix.store_server import StoreServer
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.timer import ManualTimer

IDENTITY = 77


class Served:
    """A server over a store in memory, and raw connections to it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.made: list[Raw] = []
        self.timer = ManualTimer()
        self.store = MemoryStore(self.timer)
        self.server = StoreServer(self.store, IDENTITY, self.timer)

    async def connect(self, *, greet: bool = True) -> "Raw":
        raw = Raw(*await asyncio.open_unix_connection(self.path))
        self.made.append(raw)
        if greet:
            raw.send(Kind.HELLO, 0, encode_hello(Hello(RELEASE, "test")))
            assert (await raw.frame()).kind is Kind.WELCOME
        return raw


class Raw:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, kind: Kind, number: int, body: bytes = b"") -> None:
        self.writer.write(encode_frame(Frame(kind, number, body)))

    async def frame(self) -> Frame:
        found = await asyncio.wait_for(read_frame(self.reader, ANSWER_BYTES_MAX), 30)
        assert found is not None, "the connection has ended"
        return found

    async def refused(self) -> str:
        """Why the connection was ended; it is."""
        frame = await self.frame()
        assert frame.kind is Kind.REFUSED
        assert await asyncio.wait_for(self.reader.read(), 30) == b""
        return decode_text(frame.body)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    served = Served(str(tmp_path / "run" / "socket"))
    await served.server.serve(listen(served.path))
    yield served
    for raw in served.made:
        raw.writer.transport.abort()
    await served.server.aclose()
    await served.store.aclose()
    await asyncio.sleep(0)


async def until(holds: Callable[[], object]) -> None:
    """Give the loop its turns until it does."""
    for _ in range(2_000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come")


def put(key: str, value: bytes = b"x") -> bytes:
    return encode_txn(TxnRequest((), (Put(key, value),), ()))


async def test_a_greeting_names_the_store_and_its_revision(served: Served) -> None:
    await served.store.txn(then=[Put("a", b"")])
    raw = await served.connect(greet=False)
    raw.send(Kind.HELLO, 5, encode_hello(Hello(RELEASE, "test")))
    frame = await raw.frame()
    welcome = decode_welcome(frame.body)
    assert (frame.number, welcome.identity, welcome.revision) == (5, IDENTITY, 2)


async def test_another_release_is_refused_by_name(served: Served) -> None:
    raw = await served.connect(greet=False)
    raw.send(Kind.HELLO, 0, encode_hello(Hello(RELEASE + 1, "test")))
    assert f"release {RELEASE + 1}" in await raw.refused()
    assert served.server.numbers.refused == 1


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "a frame of 1195725856 bytes"),
        (b"\x00\x00\x00\x09\x01\x00\x00\x00\x00GET ", "no metadata store's"),
        (encode_frame(Frame(Kind.PING, 1)), "the first frame is PING, not HELLO"),
    ],
)
async def test_who_greets_wrongly_is_refused_with_the_reason(
    served: Served, sent: bytes, reason: str
) -> None:
    raw = await served.connect(greet=False)
    raw.writer.write(sent)
    assert reason in await raw.refused()
    assert served.server.numbers.bad_frames == 1


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        (Kind.TXN, b"\x00\x01", "ends within a number"),
        (Kind.GRANT, encode_number(0), "a lease of 0 ms"),
        (Kind.WELCOME, b"", "WELCOME is no request"),
        (Kind.WATCH, encode_watch(WatchRequest("", 0)), "revision 0"),
        (Kind.GET, encode_text("a") + b"x", "behind the last field"),
    ],
)
async def test_a_frame_that_is_wrong_ends_its_connection_and_no_other(
    served: Served, kind: Kind, body: bytes, reason: str
) -> None:
    other, raw = await served.connect(), await served.connect()
    raw.send(kind, 1, body)
    assert reason in await raw.refused()
    other.send(Kind.PING, 9)
    assert (await other.frame()).number == 9


async def test_who_says_nothing_is_not_waited_for(served: Served) -> None:
    raw = await served.connect(greet=False)
    await until(lambda: served.server.numbers.connections == 1)
    served.timer.advance(GREETING_MS - 1)
    assert not raw.reader.at_eof()
    served.timer.advance(2)
    assert await asyncio.wait_for(raw.reader.read(), 30) == b""
    await until(lambda: served.server.numbers.connections == 0)
    assert served.server.numbers.refused == 1


async def test_connections_are_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_server, "CONNECTIONS_MAX", 2)
    first, _ = await served.connect(), await served.connect()
    one_more = await served.connect(greet=False)
    assert "2 connections are open" in await one_more.refused()
    first.writer.close()
    await until(lambda: served.server.numbers.connections == 1)
    await served.connect()
    assert served.server.numbers.refused == 1


async def test_watches_are_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "WATCHES_MAX", 2)
    raw = await served.connect()
    for number in (1, 2):
        raw.send(Kind.WATCH, number, encode_watch(WatchRequest("", 1)))
    raw.send(Kind.UNWATCH, 1)
    raw.send(Kind.WATCH, 3, encode_watch(WatchRequest("", 1)))
    raw.send(Kind.PING, 9)
    assert (await raw.frame()).number == 9
    assert served.server.numbers.watches == 2
    raw.send(Kind.WATCH, 4, encode_watch(WatchRequest("", 1)))
    assert "2 watches are open" in await raw.refused()


async def test_changes_that_wait_for_the_disk_are_bounded_and_renewals_wait_for_none(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that stands still costs no lease, and no memory without bound."""
    monkeypatch.setattr(session, "IN_FLIGHT_MAX", 2)
    lease = await served.store.grant_lease(1_000)
    raw = await served.connect()
    served.store.gate.clear()
    for number in (1, 2, 3):
        raw.send(Kind.TXN, number, put(f"k{number}"))
    raw.send(Kind.KEEP_ALIVE, 4, encode_number(lease))
    refused, renewed = await raw.frame(), await raw.frame()
    assert (refused.kind, refused.number) == (Kind.FAILED, 3)
    assert type(decode_failure(refused.body)) is StoreUnavailableError
    assert (renewed.number, decode_number(renewed.body)) == (4, 1_000)
    served.store.gate.set()
    answers = [await raw.frame(), await raw.frame()]
    assert {frame.number for frame in answers} == {1, 2}
    assert all(decode_txn_result(frame.body).succeeded for frame in answers)
    assert await served.store.get("k3") is None


async def test_bytes_that_wait_for_the_disk_are_bounded(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "IN_FLIGHT_BYTES_MAX", 1_000)
    raw = await served.connect()
    served.store.gate.clear()
    raw.send(Kind.TXN, 1, put("a", bytes(800)))
    raw.send(Kind.TXN, 2, put("b", bytes(800)))
    assert (await raw.frame()).number == 2
    served.store.gate.set()
    assert (await raw.frame()).number == 1
    raw.send(Kind.TXN, 3, put("b", bytes(800)))
    assert (await raw.frame()).kind is Kind.ANSWER


async def test_a_watch_that_is_not_read_ends_where_others_go_on(served: Served) -> None:
    """What lies in the server is bounded: 4,096 changes, then the client lists again."""
    slow, quick = await served.connect(), await served.connect()
    for raw in (slow, quick):
        raw.send(Kind.WATCH, 1, encode_watch(WatchRequest("k", 2)))
        raw.send(Kind.PING, 9)
        assert (await raw.frame()).number == 9
    total = 9_000
    seen = 0
    for first in range(0, total, 100):
        await served.store.txn(then=[Put(f"k{first + i}", bytes(1_000)) for i in range(100)])
        while seen < first:
            seen += len(decode_changes((await quick.frame()).body).events)
    while seen < total:
        seen += len(decode_changes((await quick.frame()).body).events)
    delivered = 0
    while (frame := await slow.frame()).kind is Kind.CHANGES:
        delivered += len(decode_changes(frame.body).events)
    assert frame.kind is Kind.ENDED
    assert isinstance(decode_failure(frame.body), CompactedError)
    assert 4_000 <= delivered < total
    assert served.server.numbers.lost_watches == 1
    assert served.server.numbers.watches == 1


async def test_a_page_is_bounded_in_bytes(served: Served) -> None:
    """But one key is always given, however large."""
    for number in range(4):
        await served.store.txn(then=[Put(f"k{number}", bytes(600_000))])
    await served.store.txn(then=[Put("l", bytes(1_400_000))])
    raw = await served.connect()
    raw.send(Kind.RANGE, 1, encode_range(RangeRequest("k")))
    found = decode_range_result((await raw.frame()).body)
    assert ([item.key for item in found.items], found.more) == (["k0"], True)
    raw.send(Kind.RANGE, 2, encode_range(RangeRequest("l")))
    found = decode_range_result((await raw.frame()).body)
    assert ([item.key for item in found.items], found.more) == (["l"], False)


async def test_a_closed_server_ends_its_connections(served: Served) -> None:
    """Also of a client that does not read, with answers that wait for it."""
    for number in range(20):
        await served.store.txn(then=[Put(f"k{number}", bytes(1_000_000))])
    stuck = await served.connect()
    stuck.send(Kind.WATCH, 1, encode_watch(WatchRequest("", 1)))
    for number in range(20):
        stuck.send(Kind.GET, number, encode_text(f"k{number}"))
    await asyncio.sleep(0)
    await asyncio.wait_for(served.server.aclose(), 30)
    assert served.server.numbers.connections == 0
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_unix_connection(served.path)


def test_the_first_four_bytes_are_no_other_protocols() -> None:
    assert MAGIC.to_bytes(4, "big") == b"VAMS"
