"""A client's connection, over servers that lose answers, lie, fall silent, or are others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from broker.controller.store.metadata_store import (
    Changes,
    Event,
    EventKind,
    OutcomeUnknownError,
    Put,
    RangeResult,
    StoreClosedError,
    StoreDeniedError,
    StoreReplacedError,
    StoreUnavailableError,
    TxnResult,
)
from broker.controller.store.unix import link, unix_store
from broker.controller.store.unix.answers import (
    encode_changes,
    encode_item,
    encode_range_result,
    encode_txn_result,
)
from broker.controller.store.unix.frames import (
    RELEASE,
    REQUEST_BYTES_MAX,
    Frame,
    Kind,
    Welcome,
    encode_frame,
    encode_welcome,
    read_frame,
)
from broker.controller.store.unix.requests import decode_text, decode_watch, encode_number
from broker.controller.store.unix.unix_store import UnixStore

CUT = Frame(Kind.REFUSED, 0)
"""For a script: the connection is ended without a word."""


class Scripted:
    """A server that says what the test wants.

    Attributes:
        welcome: What a connection begins with; bytes are sent as they are.
        answers: By kind of request; what has none is not answered.
        asked: All that was sent, but for pings and progress.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.welcome: Welcome | bytes = Welcome(RELEASE, 7, 1)
        self.answers: dict[Kind, Frame] = {
            Kind.RANGE: Frame(Kind.ANSWER, 0, encode_range_result(RangeResult(1, ()))),
        }
        self.asked: list[Frame] = []
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        self.path.unlink(missing_ok=True)

    def cut(self) -> None:
        """End all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def send(self, frame: Frame) -> None:
        """To the newest connection."""
        self._writers[-1].write(encode_frame(frame))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError):
            await read_frame(reader, REQUEST_BYTES_MAX)
            if isinstance(self.welcome, bytes):
                writer.write(self.welcome)
            else:
                writer.write(encode_frame(Frame(Kind.WELCOME, 0, encode_welcome(self.welcome))))
            while (frame := await read_frame(reader, REQUEST_BYTES_MAX)) is not None:
                if frame.number and frame.kind is not Kind.PROGRESS:
                    self.asked.append(frame)
                answer = self.answers.get(frame.kind)
                if answer is CUT:
                    break
                if answer is not None:
                    writer.write(encode_frame(Frame(answer.kind, frame.number, answer.body)))
        writer.transport.abort()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Scripted]:
    server = Scripted(tmp_path / "socket")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def store(server: Scripted) -> AsyncIterator[UnixStore]:
    store = await UnixStore.open(str(server.path))
    yield store
    await store.aclose()


def kinds(server: Scripted) -> list[Kind]:
    return [frame.kind for frame in server.asked if frame.kind is not Kind.RANGE]


async def until(holds: Callable[[], object]) -> None:
    for _ in range(2_000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it does not come")


async def eventually(call: Callable[[], Awaitable[object]]) -> object:
    """The result of a call once the connection is there again."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await call()
            except StoreUnavailableError:
                await asyncio.sleep(0.01)


async def test_a_transaction_that_is_cut_off_is_unknown_and_never_sent_again(
    server: Scripted, store: UnixStore
) -> None:
    server.answers[Kind.TXN] = CUT
    with pytest.raises(OutcomeUnknownError, match="ended before the answer"):
        await store.txn(then=[Put("a", b"1")])
    result = TxnResult(True, 2, ())
    server.answers[Kind.TXN] = Frame(Kind.ANSWER, 0, encode_txn_result(result))
    assert await eventually(lambda: store.txn(then=[Put("b", b"1")])) == result
    assert kinds(server).count(Kind.TXN) == 2


async def test_a_transaction_without_an_answer_in_time_is_unknown(
    server: Scripted, store: UnixStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix_store.UnixStore._call, "__kwdefaults__", {"deadline_ms": 50.0})
    with pytest.raises(OutcomeUnknownError, match="no answer"):
        await store.txn(then=[Put("a", b"1")])
    with pytest.raises(StoreUnavailableError) as caught:
        await store.get("a")
    assert not isinstance(caught.value, OutcomeUnknownError)


async def test_what_may_be_repeated_is_repeated_once(server: Scripted, store: UnixStore) -> None:
    """A restart of the server in the middle of a read is not seen by who reads."""
    server.answers[Kind.GET] = CUT
    reading = asyncio.ensure_future(store.get("a"))
    await until(lambda: Kind.GET in kinds(server))
    server.answers[Kind.GET] = Frame(Kind.ANSWER, 0, encode_item(5, None))
    with contextlib.suppress(StoreUnavailableError):
        assert await reading is None
    assert await eventually(lambda: store.get("a")) is None


async def test_while_nothing_is_served_there_calls_fail_at_once(
    server: Scripted, store: UnixStore
) -> None:
    """A refused connection is certain: nothing was sent, nothing is unknown."""
    await server.stop()
    await until(lambda: store._link._wire is None)
    # Ten that waited for a connection (400 ms) would take four seconds.
    async with asyncio.timeout(3):
        for _ in range(10):
            with pytest.raises(StoreUnavailableError) as caught:
                await store.txn(then=[Put("a", b"1")])
            assert not isinstance(caught.value, OutcomeUnknownError)
            assert str(server.path) in str(caught.value)
    await server.start()
    await eventually(lambda: store.range(""))
    assert store.failovers == 1
    assert Kind.TXN not in kinds(server)


@pytest.mark.parametrize(
    ("welcome", "reason"),
    [
        (Welcome(RELEASE, 8, 100), "metadata store 8 is served"),
        (Welcome(RELEASE, 7, 41), "is at revision 41 and has been at 42"),
    ],
)
async def test_another_or_an_older_store_is_refused_for_good(
    server: Scripted, store: UnixStore, welcome: Welcome, reason: str
) -> None:
    """Nothing is sent to it, and watches say so, too."""
    server.answers[Kind.GET] = Frame(Kind.ANSWER, 0, encode_item(42, None))
    await store.get("a")
    watch = store.watch("")
    await until(lambda: Kind.WATCH in kinds(server))
    server.welcome = welcome
    server.asked.clear()
    server.cut()
    with pytest.raises(StoreReplacedError, match=reason):
        await asyncio.wait_for(anext(watch), 30)
    with pytest.raises(StoreReplacedError, match=reason):
        await store.txn(then=[Put("a", b"1")])
    late = store.watch("")
    with pytest.raises(StoreReplacedError, match=reason):
        await asyncio.wait_for(anext(late), 30)
    assert server.asked == []


async def test_a_floor_that_was_seen_before_is_kept_from_the_start(server: Scripted) -> None:
    with pytest.raises(StoreReplacedError, match="at revision 1 and has been at 9"):
        await UnixStore.open(str(server.path), floor_revision=9)


async def test_a_server_of_another_release_is_named(server: Scripted) -> None:
    server.welcome = Welcome(RELEASE + 1, 7, 1)
    with pytest.raises(StoreDeniedError, match=f"release {RELEASE + 1} of the protocol"):
        await UnixStore.open(str(server.path))


@pytest.mark.parametrize(
    "welcome",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        encode_frame(Frame(Kind.ANSWER, 0)),
        encode_frame(Frame(Kind.WELCOME, 0, b"x")),
        b"\x00\x00",
    ],
)
async def test_who_answers_with_something_else_is_no_store(
    server: Scripted, welcome: bytes
) -> None:
    server.welcome = welcome
    with pytest.raises(StoreUnavailableError):
        await UnixStore.open(str(server.path))


async def test_garbage_in_the_middle_ends_the_connection_and_not_the_store(
    server: Scripted, store: UnixStore
) -> None:
    server.send(Frame(Kind.HELLO, 0))
    await until(lambda: server.connections == 2)
    await eventually(lambda: store.range(""))


async def test_a_watch_goes_on_behind_what_it_has_delivered(
    server: Scripted, store: UnixStore
) -> None:
    """Behind a progress, too: less is compacted there."""

    def put(revision: int) -> Frame:
        event = Event(EventKind.DELETE, "t/a", revision, None, None)
        return Frame(Kind.CHANGES, number, encode_changes(Changes(revision, (event,))))

    watch = store.watch("t/", 5)
    await until(lambda: Kind.WATCH in kinds(server))
    number = server.asked[-1].number
    server.send(put(6))
    server.send(Frame(Kind.CHANGES, number, encode_changes(Changes(9, ()))))
    assert (await asyncio.wait_for(anext(watch), 30)).revision == 6
    server.welcome = Welcome(RELEASE, 7, 20)
    await until(lambda: store._link.revision == 9)
    server.cut()
    await until(lambda: kinds(server).count(Kind.WATCH) == 2)
    request = decode_watch(server.asked[-1].body)
    assert (request.prefix, request.first_revision) == ("t/", 10)
    server.send(put(6))
    server.send(put(11))
    assert (await asyncio.wait_for(anext(watch), 30)).revision == 11


async def test_a_silent_server_is_left(
    server: Scripted, store: UnixStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes connections and requests, and says nothing."""
    monkeypatch.setattr(link, "PING_MS", 10.0)
    server.cut()
    await until(lambda: server.connections >= 3)
    server.answers[Kind.PING] = Frame(Kind.ANSWER, 0)
    await eventually(lambda: store.range(""))
    connections = server.connections
    await asyncio.sleep(0.2)
    assert server.connections == connections


async def test_requests_without_an_answer_are_bounded(
    server: Scripted, store: UnixStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "PENDING_MAX", 2)
    waiting = [asyncio.ensure_future(store.get(f"k{n}")) for n in range(2)]
    await until(lambda: kinds(server).count(Kind.GET) == 2)
    with pytest.raises(StoreUnavailableError, match="2 requests wait"):
        await store.txn(then=[Put("a", b"")])
    assert {decode_text(f.body) for f in server.asked if f.kind is Kind.GET} == {"k0", "k1"}
    server.cut()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_renewal_has_a_short_time(server: Scripted, store: UnixStore) -> None:
    server.answers[Kind.KEEP_ALIVE] = Frame(Kind.ANSWER, 0, encode_number(1_234))
    assert await store.keep_lease_alive(5) == 1_234
    del server.answers[Kind.KEEP_ALIVE]
    with pytest.raises(StoreUnavailableError, match="in 400 ms"):
        await store.keep_lease_alive(5)


async def test_the_stores_own_thread_renews_while_the_data_loop_stands_still(
    server: Scripted, store: UnixStore
) -> None:
    server.answers[Kind.KEEP_ALIVE] = Frame(Kind.ANSWER, 0, encode_number(1_234))
    server.answers[Kind.PING] = Frame(Kind.ANSWER, 0)
    renewed: list[int] = []

    async def renew() -> None:
        await store.ask_here()
        renewed.append(await store.renew_here(5))

    work = store.spawn(renew())
    await asyncio.wrap_future(work)
    assert renewed == [1_234]


async def test_who_waits_when_the_store_is_closed_is_answered(server: Scripted) -> None:
    """Also while a connection is being made that never comes about."""
    server.welcome = b""
    store = await UnixStore.unopened(str(server.path))
    waiting = asyncio.ensure_future(store.get("a"))
    await until(lambda: server.connections)
    await store.aclose()
    with pytest.raises((StoreClosedError, StoreUnavailableError)):
        await asyncio.wait_for(waiting, 30)
