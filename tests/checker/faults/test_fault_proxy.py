"""The fault proxy, with a server that answers every frame with its correlation id."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import pytest

from tests.fakes.network.fault_proxy import FaultProxy, Faults, Lane, ProxyProcess, RequestFault

PRODUCE, FETCH, END_TXN = 0, 1, 26


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something another task does."""
    async with asyncio.timeout(10):
        while not happened():  # noqa: ASYNC110  what is waited for has no event to set
            await asyncio.sleep(0.002)


class EchoBroker:
    """Answers `size, correlation id, payload`; remembers what came, in order."""

    def __init__(self) -> None:
        self.received: list[tuple[int, int]] = []
        self.ended = 0
        self.resets = 0
        self.port = 0
        self.open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                body = await reader.readexactly(size)
                key, _, correlation_id = struct.unpack_from(">hhi", body)
                self.received.append((key, correlation_id))
                writer.write(struct.pack(">ii", size - 4, correlation_id) + body[8:])
        except asyncio.IncompleteReadError:
            self.ended += 1
        except ConnectionError:
            self.resets += 1
        finally:
            writer.close()
            self.open -= 1

    async def until(self, count: int) -> None:
        """Wait until so many requests came."""
        await until(lambda: len(self.received) >= count)


@pytest.fixture
async def broker() -> AsyncIterator[EchoBroker]:
    echo = EchoBroker()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    echo.port = server.sockets[0].getsockname()[1]
    yield echo
    server.close()
    Client.abort_all()
    await until(lambda: not echo.open)
    await asyncio.sleep(0.01)  # the transports' last turn of the loop


@pytest.fixture
async def proxy(broker: EchoBroker) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(("127.0.0.1", broker.port), seed=1) as one:
        yield one
        Client.abort_all()


def frame(key: int, correlation_id: int, payload: bytes = b"....") -> bytes:
    return struct.pack(">ihhi", 8 + len(payload), key, 0, correlation_id) + payload


class Client:
    opened: ClassVar[list["Client"]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.opened.append(self)

    @classmethod
    def abort_all(cls) -> None:
        for client in cls.opened:
            client.writer.transport.abort()
        cls.opened.clear()

    @classmethod
    async def connect(cls, proxy: FaultProxy) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port))

    def send(self, key: int, correlation_id: int, payload: bytes = b"....") -> None:
        self.writer.write(frame(key, correlation_id, payload))

    async def answer(self) -> tuple[int, bytes]:
        async with asyncio.timeout(10):
            size, correlation_id = struct.unpack(">ii", await self.reader.readexactly(8))
            return correlation_id, await self.reader.readexactly(size - 4)

    async def call(self, key: int, correlation_id: int, payload: bytes = b"....") -> bytes:
        self.send(key, correlation_id, payload)
        got, body = await self.answer()
        assert got == correlation_id
        return body

    async def ended(self) -> str:
        async with asyncio.timeout(10):
            try:
                return "closed" if await self.reader.read(1) == b"" else "data"
            except ConnectionError:
                return "reset"


async def test_passes_everything_on_in_order(proxy: FaultProxy, broker: EchoBroker) -> None:
    client = await Client.connect(proxy)
    payloads = [bytes([i]) * (1 << i) for i in range(19)]
    for i, payload in enumerate(payloads):
        client.send(FETCH, i, payload)
    for i, payload in enumerate(payloads):
        assert await client.answer() == (i, payload)
    assert proxy.counts.requests == {FETCH: 19}
    assert broker.received == [(FETCH, i) for i in range(19)]
    client.writer.close()


async def test_delays_both_ways(proxy: FaultProxy) -> None:
    client = await Client.connect(proxy)
    proxy.faults = Faults(to_broker=Lane(delay_ms=(30, 30)), to_client=Lane(delay_ms=(40, 40)))
    time = asyncio.get_running_loop().time
    before = time()
    for i in range(5):
        client.send(FETCH, i)
    for i in range(5):
        assert (await client.answer())[0] == i
    # All five together: a delay is latency, not a queue of one.
    assert 0.07 <= time() - before < 0.3
    client.writer.close()


async def test_late_request_is_overtaken_by_another_connection(
    proxy: FaultProxy, broker: EchoBroker
) -> None:
    """What the delayed-request run is built on: the client gives up, the request does not."""
    client = await Client.connect(proxy)
    await client.call(PRODUCE, 1)
    proxy.faults = Faults(requests=(RequestFault("delay", (END_TXN,), 1.0, (150, 150)),))
    client.send(END_TXN, 2)
    await asyncio.sleep(0.02)
    client.writer.close()
    proxy.faults = Faults()
    other = await Client.connect(proxy)
    await other.call(END_TXN, 3)
    await other.call(PRODUCE, 4)
    await broker.until(4)
    assert broker.received == [(PRODUCE, 1), (END_TXN, 3), (PRODUCE, 4), (END_TXN, 2)]
    assert proxy.counts.done == {"delay": 1}
    other.writer.close()


async def test_share_draws_from_the_seed(broker: EchoBroker) -> None:
    hits = []
    for _ in range(2):
        async with FaultProxy(("127.0.0.1", broker.port), seed=5) as proxy:
            rule = RequestFault("delay", (PRODUCE,), 0.3, (0, 0.01))
            hits.append([proxy_rule is rule for proxy_rule in _drawn(proxy, rule)])
    assert hits[0] == hits[1]
    assert 20 < sum(hits[0]) < 40


def _drawn(proxy: FaultProxy, rule: RequestFault) -> list[RequestFault | None]:
    proxy.faults = Faults(requests=(rule,))
    assert proxy.fault_of(FETCH) is None
    return [proxy.fault_of(PRODUCE) for _ in range(100)]


async def test_lost_answer(proxy: FaultProxy, broker: EchoBroker) -> None:
    proxy.faults = Faults(requests=(RequestFault("lose_answer", (END_TXN,)),))
    client = await Client.connect(proxy)
    await client.call(FETCH, 1)
    client.send(END_TXN, 2)
    assert await client.ended() == "closed"
    assert broker.received == [(FETCH, 1), (END_TXN, 2)]


@pytest.mark.parametrize(("action", "arrives"), [("reset", False), ("reset_after", True)])
async def test_reset(proxy: FaultProxy, broker: EchoBroker, action: str, arrives: bool) -> None:
    proxy.faults = Faults(requests=(RequestFault(action, (PRODUCE,)),))
    client = await Client.connect(proxy)
    await client.call(FETCH, 1)
    client.send(PRODUCE, 2)
    assert await client.ended() == "reset"
    assert broker.received == [(FETCH, 1), (PRODUCE, 2)][: 1 + arrives]


async def test_close_does_not_deliver(proxy: FaultProxy, broker: EchoBroker) -> None:
    proxy.faults = Faults(requests=(RequestFault("close", (PRODUCE,)),))
    client = await Client.connect(proxy)
    client.send(PRODUCE, 2)
    assert await client.ended() == "closed"
    assert broker.received == []


async def test_half_close_lets_the_answer_through(proxy: FaultProxy, broker: EchoBroker) -> None:
    proxy.faults = Faults(requests=(RequestFault("half_close", (PRODUCE,)),))
    client = await Client.connect(proxy)
    assert await client.call(PRODUCE, 2) == b"...."
    assert await client.ended() == "closed"
    assert broker.ended == 1
    assert broker.received == [(PRODUCE, 2)]


async def test_swallow_and_black_hole(proxy: FaultProxy, broker: EchoBroker) -> None:
    client = await Client.connect(proxy)
    proxy.faults = Faults(requests=(RequestFault("swallow", (PRODUCE,)),))
    client.send(PRODUCE, 1)
    client.send(FETCH, 2)
    other = await Client.connect(proxy)
    await other.call(FETCH, 3)
    proxy.faults = Faults(to_client=Lane(black_hole=True))
    other.send(FETCH, 4)
    await broker.until(2)
    assert broker.received == [(FETCH, 3), (FETCH, 4)]
    for one in (client, other):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(one.reader.read(1), 0.05)
        one.writer.close()


async def test_throttle(proxy: FaultProxy) -> None:
    proxy.faults = Faults(to_broker=Lane(bytes_per_s=1_000_000))
    client = await Client.connect(proxy)
    time = asyncio.get_running_loop().time
    before = time()
    for i in range(4):
        await client.call(PRODUCE, i, bytes(50_000))
    assert time() - before >= 0.14
    client.writer.close()


async def test_buffers_are_bounded(proxy: FaultProxy, broker: EchoBroker) -> None:
    """A held-up lane stops reading: the client feels it, the proxy's memory does not."""
    proxy.faults = Faults(requests=(RequestFault("delay", (PRODUCE,), 1.0, (60_000, 60_000)),))
    client = await Client.connect(proxy)
    client.writer.write(frame(PRODUCE, 1, bytes(64 << 20)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.writer.drain(), 0.5)
    left = client.writer.transport.get_write_buffer_size()
    assert left > 50 << 20
    assert broker.received == []
    client.writer.transport.abort()


async def test_sever_and_refuse(proxy: FaultProxy) -> None:
    clients = [await Client.connect(proxy) for _ in range(3)]
    for client in clients:
        await client.call(FETCH, 1)
    assert proxy.sever("reset") == 3
    assert [await client.ended() for client in clients] == ["reset"] * 3
    proxy.faults = Faults(refuse=True)
    refused = await Client.connect(proxy)
    assert await refused.ended() == "reset"
    proxy.faults = Faults()
    client = await Client.connect(proxy)
    await client.call(FETCH, 1)
    assert proxy.sever("close") == 1
    assert await client.ended() == "closed"
    await until(lambda: not proxy.open_sessions)


async def test_no_broker_behind_it() -> None:
    async with FaultProxy(("127.0.0.1", 9)) as proxy:
        client = await Client.connect(proxy)
        assert await client.ended() == "reset"
        client.writer.close()


def test_faults_read_back_from_json() -> None:
    rule = RequestFault("delay", (0, 26), 0.5, (1.0, 2.0))
    faults = Faults(Lane((1, 2), 3, True), Lane(), (rule,), True)
    as_json = {
        "to_broker": {"delay_ms": [1, 2], "bytes_per_s": 3, "black_hole": True},
        "requests": [{"action": "delay", "apis": [0, 26], "share": 0.5, "delay_ms": [1.0, 2.0]}],
        "refuse": True,
    }
    assert Faults.from_json(as_json) == faults
    assert Faults.from_json({}) == Faults()
    with pytest.raises(ValueError, match="duplicate"):
        RequestFault("duplicate")


async def test_as_a_process(broker: EchoBroker) -> None:
    process = await asyncio.to_thread(ProxyProcess, ("127.0.0.1", broker.port))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
        client = Client(reader, writer)
        await client.call(FETCH, 1)
        await asyncio.to_thread(
            process.set_faults, {"requests": [{"action": "reset", "apis": [PRODUCE]}]}
        )
        await client.call(FETCH, 2)
        client.send(PRODUCE, 3)
        assert await client.ended() == "reset"
        counts = await asyncio.to_thread(process.counts)
        assert counts["requests"] == {"0": 1, "1": 2}
        assert counts["done"] == {"reset": 1}
    finally:
        await asyncio.to_thread(process.stop)


async def test_severed_before_the_broker_is_reached(
    proxy: FaultProxy, broker: EchoBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is cut off while its connection to the broker is made leaves nothing open."""
    connect = asyncio.open_connection
    severed: list[int] = []

    async def slowly(*arguments: Any, **named: Any) -> Any:
        made = await connect(*arguments, **named)
        if arguments[1] == broker.port:
            severed.append(proxy.sever("reset"))
            await asyncio.sleep(0.01)  # the transport's last turn of the loop
        return made

    monkeypatch.setattr(asyncio, "open_connection", slowly)
    client = await Client.connect(proxy)
    assert await client.ended() == "reset"
    await until(lambda: broker.ended + broker.resets == 1)
    assert severed == [1]
