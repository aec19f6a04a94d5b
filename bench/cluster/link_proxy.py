"""The process behind `bench.cluster.links`: TCP proxies whose directions stall and lag by command.

It obeys JSON lines on standard input and answers each with one; it ends with its input.

    {"routes": [{"source", "target", "port", "to"}, ...]}        listen
    {"cut": [["1", "2"], ...], "delay_ms": [["1", "2", 50.0]]}   all that is wrong now
    {"reset": [["1", "2"], ...]}                                 end connections
    {"counts": true}                                             bytes by `source>target`

A direction of a connection:

    READING ──cut, or too much waits──> STALLED     the source's kernel holds the rest
       ^                                   │
       └──────── healed, drained ──────────┘
    any ──source ended──> ENDING ──what was read is delivered──> the other side ends likewise

While a target refuses connections its proxy does not listen either, so that who connects is refused
as without it: a broker that was killed shows. Who is behind a connection to a broker is read from
the client id of its first request (`broker-1`); until then it is not delayed, and carries nothing.
"""

import asyncio
import contextlib
import json
import socket
import struct
import sys
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Final, cast

import uvloop
from typing_extensions import override

LANE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of one direction of a connection, read and not yet delivered."""

PROBE_S: Final = 0.02
"""A target that refuses is asked so often whether it listens again."""

CLIENT_ID_AT: Final = 12
"""Behind size, API key, version and correlation id of a request."""

_RST: Final = struct.pack("ii", 1, 0)
_LENGTH: Final = struct.Struct(">h")

Pair = tuple[str, str]


class Faults:
    """What is wrong now, by ordered pair of places."""

    def __init__(self) -> None:
        self.cut: set[Pair] = set()
        self.delay_s: dict[Pair, float] = {}
        self.passed: Counter[Pair] = Counter()


class Side(asyncio.Protocol):
    """One socket of a connection, and the direction that begins at it."""

    def __init__(self, faults: Faults, loop: asyncio.AbstractEventLoop) -> None:
        self._faults = faults
        self._loop = loop
        self.pair: Pair | None = None
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._is_paused = False
        self._is_full = False
        self._timer: asyncio.TimerHandle | None = None
        self._end: str | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass

    @override
    def data_received(self, data: bytes) -> None:
        delay_s = 0.0 if self.pair is None else self._faults.delay_s.get(self.pair, 0.0)
        self._waiting.append((self._loop.time() + delay_s, data))
        self._size += len(data)
        self.move()

    def move(self) -> None:
        """Deliver what may be delivered now; read on, or stop reading."""
        pair, other = self.pair, self.other
        is_cut = pair is not None and pair in self._faults.cut
        sink = None if other is None else other.transport
        if sink is not None and not is_cut:
            self._deliver(sink)
            if not self._waiting and self._end is not None:
                self._finish(sink)
        self._pause(is_cut or self._is_full or sink is None or self._size > LANE_BYTES_MAX)

    def _deliver(self, sink: asyncio.Transport) -> None:
        now = self._loop.time()
        while self._waiting and not self._is_full:
            due, data = self._waiting[0]
            if due > now:
                if self._timer is None:
                    self._timer = self._loop.call_at(due, self._on_due)
                return
            self._waiting.popleft()
            self._size -= len(data)
            if self.pair is not None:
                self._faults.passed[self.pair] += len(data)
            if not sink.is_closing():
                sink.write(data)

    def _on_due(self) -> None:
        self._timer = None
        self.move()

    def _pause(self, is_wanted: bool) -> None:
        transport = self.transport
        if transport is None or transport.is_closing() or is_wanted == self._is_paused:
            return
        self._is_paused = is_wanted
        if is_wanted:
            transport.pause_reading()
        else:
            transport.resume_reading()

    @override
    def pause_writing(self) -> None:
        if self.other is not None:
            self.other._is_full = True
            self.other.move()

    @override
    def resume_writing(self) -> None:
        if self.other is not None:
            self.other._is_full = False
            self.other.move()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._end = "closed" if exc is None else "reset"
        self._is_full = False
        other = self.other
        if other is not None and not other.has_ended:
            other._is_full = False
            self.move()

    @property
    def has_ended(self) -> bool:
        """Whether its socket is gone."""
        return self._end is not None

    def _finish(self, sink: asyncio.Transport) -> None:
        if self._end == "reset":
            reset(sink)
        else:
            sink.close()


def reset(transport: asyncio.Transport) -> None:
    """End a connection by RST, whatever waits to be sent."""
    found = transport.get_extra_info("socket")
    if found is not None and not transport.is_closing():
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
    transport.abort()


class NearSide(Side):
    """The side of who connects; the other is connected as soon as that may be."""

    def __init__(self, proxy: "Proxy") -> None:
        super().__init__(proxy.faults, proxy.loop)
        self._proxy = proxy
        self._head = b""
        self._dialling: asyncio.Task[None] | None = None
        self._is_dialled = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        proxy = self._proxy
        proxy.connections.add(self)
        if proxy.source:
            self.pair = (proxy.source, proxy.target)
        self.dial()

    def dial(self) -> None:
        """Connect to the target, unless who connects cannot reach it now, or is not known."""
        if self._is_dialled or self._end is not None:
            return
        faults, target = self._faults, self._proxy.target
        if self.pair is None:
            if any(target in pair for pair in faults.cut):
                return
        elif not {self.pair, self.pair[::-1]}.isdisjoint(faults.cut):
            return
        self._is_dialled = True
        self._dialling = self._loop.create_task(self._dial())

    async def _dial(self) -> None:
        proxy = self._proxy
        far = FarSide(proxy)
        try:
            await proxy.loop.create_connection(lambda: far, *proxy.to)
        except OSError:
            if self.transport is not None:
                reset(self.transport)
            proxy.target_refused()
            return
        if self._end is not None:
            assert far.transport is not None
            reset(far.transport)
            return
        self.other, far.other = far, self
        if self.pair is not None:
            far.pair = self.pair[::-1]
        self.move()

    @override
    def data_received(self, data: bytes) -> None:
        if self.pair is None:
            self._head += data
            source = client_id(self._head)
            if source is None:
                return
            data, self._head = self._head, b""
            self.pair = (source, self._proxy.target)
            if self.other is not None:
                self.other.pair = self.pair[::-1]
            self.dial()
        super().data_received(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.other is None or self.other.has_ended:
            self._proxy.connections.discard(self)

    def touched(self) -> None:
        """The faults have changed."""
        self.dial()
        self.move()
        if self.other is not None:
            self.other.move()


class FarSide(Side):
    """The side of the target."""

    def __init__(self, proxy: "Proxy") -> None:
        super().__init__(proxy.faults, proxy.loop)
        self._proxy = proxy

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        near = self.other
        if isinstance(near, NearSide):
            if near.has_ended:
                self._proxy.connections.discard(near)
            else:
                self._proxy.target_ended()


def client_id(head: bytes) -> str | None:
    """The place that a broker's first request names; None while too little has come."""
    if len(head) < CLIENT_ID_AT + _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack_from(head, CLIENT_ID_AT)
    begin = CLIENT_ID_AT + _LENGTH.size
    if len(head) < begin + size:
        return None
    name = head[begin : begin + max(size, 0)].decode(errors="replace")
    # Writers of the remote metadata name their broker epoch, too: `broker-2-77`.
    return name.removeprefix("broker-").partition("-")[0]


class Proxy:
    """One listening socket, and its connections."""

    def __init__(
        self, route: dict[str, Any], faults: Faults, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.source: str = route["source"]
        self.target: str = route["target"]
        host, _, port = str(route["to"]).rpartition(":")
        self.to = (host, int(port))
        self.faults = faults
        self.loop = loop
        self.connections: set[NearSide] = set()
        self._port = int(route["port"])
        self._server: asyncio.Server | None = None
        self._probing: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Accept connections, if the target does."""
        self._probing = self.loop.create_task(self._probe())

    def target_refused(self) -> None:
        """A connect has failed: nobody is to get another impression here."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._probing is None or self._probing.done():
            self._probing = self.loop.create_task(self._probe())

    def target_ended(self) -> None:
        """A connection has ended from behind: was it the target's end?"""
        if self._probing is None or self._probing.done():
            self._probing = self.loop.create_task(self._probe())

    async def _is_refused(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(*self.to)
        except OSError:
            return True
        writer.close()
        return False

    async def _probe(self) -> None:
        """Until the target listens; then so does the proxy."""
        while await self._is_refused():
            if self._server is not None:
                self._server.close()
                self._server = None
            await asyncio.sleep(PROBE_S)
        if self._server is None:
            self._server = await self.loop.create_server(
                lambda: NearSide(self), "127.0.0.1", self._port, backlog=256
            )


class Process:
    """Commands to proxies."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._faults = Faults()
        self._proxies: list[Proxy] = []

    async def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do one thing; the answer."""
        if "routes" in command:
            for route in command["routes"]:
                proxy = Proxy(route, self._faults, self._loop)
                self._proxies.append(proxy)
                await proxy.listen()
        if "cut" in command:
            self._faults.cut = {(source, target) for source, target in command["cut"]}
            delays = command["delay_ms"]
            self._faults.delay_s = {(s, t): delay_ms / 1000 for s, t, delay_ms in delays}
            for side in self._sides():
                side.touched()
        if "reset" in command:
            ends = {(source, target) for source, target in command["reset"]}
            for side in self._sides():
                if side.pair in ends:
                    for one in (side, side.other):
                        if one is not None and one.transport is not None:
                            reset(one.transport)
        if "counts" in command:
            passed = sorted(self._faults.passed.items())
            return {"counts": {f"{source}>{target}": count for (source, target), count in passed}}
        return {"ok": True}

    def _sides(self) -> Iterable[NearSide]:
        return [side for proxy in self._proxies for side in list(proxy.connections)]


async def main() -> None:
    """Obey until standard input ends."""
    process = Process()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    while line := await reader.readline():
        try:
            answer = await process.obey(json.loads(line))
        except (KeyError, TypeError, ValueError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main())
