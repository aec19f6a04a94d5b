"""A TCP proxy for Kafka connections that delays, swallows, cuts and throttles; it rewrites nothing.

Clients must stay on it, so the broker behind it advertises the proxy's address. Each direction is
a lane: a reader takes bytes off one socket, frame by frame, and a writer puts them on the other one
when they are due. A lane holds a bounded number of pieces; then its reader stops reading, and TCP
pushes back.

    client ══> [reader ─ faults ─> lane of (due, piece)] ══> broker
    client <══ [lane of (due, piece) <─ faults ─ reader] <══ broker

Of a request only size, API key, version and correlation id are looked at; a rule may choose single
requests by API key. A delayed request holds up those behind it on its connection, as TCP would; a
client that gives up and reconnects overtakes it, and the late request still arrives: the proxy
keeps its half open until everything it has taken is delivered and answered.

`python -m tests.fakes.network.fault_proxy --target HOST:PORT` runs one as a process: it prints its
port as a JSON line, then obeys JSON lines on standard input. `ProxyProcess` is the other end of
that.
"""

import argparse
import asyncio
import contextlib
import json
import random
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Self

HEAD: Final = struct.Struct(">ihhi")
"""Size, API key, version, correlation id: all that is read of a request."""

ANSWER_HEAD: Final = struct.Struct(">ii")
"""Size, correlation id: all that is read of an answer."""

PIECE_SIZE_MAX: Final = 64 * 1024
LANE_PIECES_MAX: Final = 32
UNANSWERED_MAX: Final = 4096
CONNECTIONS_MAX: Final = 4096
LINGER_S: Final = 3.0
"""How long the broker's half stays open for answers after the client has gone."""

ACTIONS: Final = ("delay", "swallow", "lose_answer", "reset", "reset_after", "close", "half_close")

_GONE: Final = (OSError, RuntimeError, ValueError)
"""What a connection that has ended raises; all but the first when we have closed it ourselves."""

_RST: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Lane:
    """What happens to everything in one direction."""

    delay_ms: tuple[float, float] = (0.0, 0.0)
    """Lowest and highest; drawn for each piece, order is kept."""
    bytes_per_s: int = 0
    """0: no limit."""
    black_hole: bool = False
    """Taken and never delivered."""


@dataclass(frozen=True, slots=True)
class RequestFault:
    """What happens to single requests.

    Attributes:
        action: `delay`; `swallow` this and all after it on the connection; `lose_answer`: the
            broker gets it, the client a closed connection in place of the answer; `reset` before
            it is delivered, `reset_after` it was; `close` instead of delivering; `half_close`:
            it is delivered and nothing more can follow, the answer may still come.
        apis: API keys it applies to; empty means all.
        share: Probability for each such request.
        delay_ms: Lowest and highest of `delay`.
    """

    action: str
    apis: tuple[int, ...] = ()
    share: float = 1.0
    delay_ms: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"{self.action}: one of {', '.join(ACTIONS)}")


@dataclass(frozen=True, slots=True)
class Faults:
    """All that the proxy does; the default does nothing."""

    to_broker: Lane = Lane()
    to_client: Lane = Lane()
    requests: tuple[RequestFault, ...] = ()
    refuse: bool = False
    """New connections are reset."""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Make one from what `dataclasses.asdict` wrote."""

        def lane(name: str) -> Lane:
            given = dict(value.get(name, {}))
            if "delay_ms" in given:
                given["delay_ms"] = tuple(given["delay_ms"])
            return Lane(**given)

        rules = tuple(
            RequestFault(
                rule["action"],
                tuple(rule.get("apis", ())),
                rule.get("share", 1.0),
                tuple(rule.get("delay_ms", (0.0, 0.0))),
            )
            for rule in value.get("requests", ())
        )
        return cls(lane("to_broker"), lane("to_client"), rules, bool(value.get("refuse", False)))


NO_FAULTS: Final = Faults()


@dataclass(slots=True)
class ProxyCounts:
    """What went through, and what was done to it."""

    connections: int = 0
    requests: Counter[int] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """For the process's answer."""
        return {
            "connections": self.connections,
            "requests": {str(key): count for key, count in sorted(self.requests.items())},
            "done": dict(self.done),
        }


class FaultProxy:
    """See the module. `faults` may be replaced at any time; `async with` starts and stops it."""

    def __init__(
        self, target: tuple[str, int], *, faults: Faults = NO_FAULTS, seed: int = 0
    ) -> None:
        self.target = target
        self.faults = faults
        self.counts = ProxyCounts()
        self.random = random.Random(seed)
        self.port = 0
        self._server: asyncio.Server | None = None
        self._sessions: dict[_Session, asyncio.Task[None]] = {}

    async def start(self, port: int = 0) -> None:
        """Listen on loopback; `port` says where."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", port, limit=PIECE_SIZE_MAX, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Cut everything and end."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._sessions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def open_sessions(self) -> int:
        """Connections of which something is still open."""
        return len(self._sessions)

    def sever(self, how: str = "reset") -> int:
        """End all present connections: `reset`, `close`, or `half_close` towards the broker."""
        sessions = list(self._sessions)
        for session in sessions:
            session.sever(how)
            self.counts.done[f"sever_{how}"] += 1
        return len(sessions)

    def draw(self, bounds: tuple[float, float]) -> float:
        """Seconds, from bounds in ms."""
        low, high = bounds
        return 0.0 if high <= 0 else self.random.uniform(low, high) / 1000

    def fault_of(self, api_key: int) -> RequestFault | None:
        """The first rule that applies to a request of this API, after drawing its share."""
        for rule in self.faults.requests:
            if rule.apis and api_key not in rule.apis:
                continue
            if rule.share >= 1.0 or self.random.random() < rule.share:
                self.counts.done[rule.action] += 1
                return rule
        return None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.faults.refuse or len(self._sessions) >= CONNECTIONS_MAX:
            self.counts.done["refuse"] += 1
            reset(writer)
            return
        self.counts.connections += 1
        session = _Session(self, reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        try:
            await session.run()
        except asyncio.CancelledError:
            # The proxy ends; asyncio's server would report the cancellation as an error.
            pass
        finally:
            del self._sessions[session]


class _Session:
    """One client connection and its connection to the broker."""

    def __init__(
        self, proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client_reader, self._client_writer = reader, writer
        self._broker_reader: asyncio.StreamReader | None = None
        self._broker_writer: asyncio.StreamWriter | None = None
        # Correlation ids that came, oldest first, and those whose answer the client must not see.
        self._unanswered: set[int] = set()
        self._cut_at_answer: dict[int, str] = {}
        self._all_answered = asyncio.Event()
        self._all_answered.set()
        self._client_gone = False

    async def run(self) -> None:
        try:
            self._broker_reader, self._broker_writer = await asyncio.open_connection(
                *self._proxy.target, limit=PIECE_SIZE_MAX
            )
        except OSError:
            reset(self._client_writer)
            return
        if self._client_writer.is_closing():
            # Severed before the connection to the broker was there.
            self._broker_writer.close()
            return
        for writer in (self._client_writer, self._broker_writer):
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = asyncio.create_task(self._carry_answers())
        try:
            await self._carry_requests()
            await self._wait_for_answers(answers)
        finally:
            answers.cancel()
            with contextlib.suppress(asyncio.CancelledError, *_GONE):
                await answers
            self._client_writer.close()
            self._broker_writer.close()

    async def _wait_for_answers(self, answers: "asyncio.Task[None]") -> None:
        """The client sends no more: let the broker finish what it was given."""
        waiting = asyncio.create_task(self._all_answered.wait())
        await asyncio.wait({waiting, answers}, timeout=LINGER_S, return_when="FIRST_COMPLETED")
        waiting.cancel()
        if not answers.done() and self._broker_writer is not None:
            with contextlib.suppress(*_GONE):
                self._broker_writer.write_eof()
            await asyncio.wait({answers}, timeout=LINGER_S)

    def sever(self, how: str) -> None:
        if how == "half_close":
            if self._broker_writer is not None:
                with contextlib.suppress(*_GONE):
                    self._broker_writer.write_eof()
            return
        for writer in (self._client_writer, self._broker_writer):
            if writer is None:
                continue
            if how == "reset":
                reset(writer)
            else:
                writer.close()

    # -- requests --------------------------------------------------------------------------------

    async def _carry_requests(self) -> None:
        assert self._broker_writer is not None
        lane = _LaneQueue(self._proxy, self._broker_writer, to_broker=True)
        carrier = asyncio.create_task(lane.carry())
        try:
            await self._read_requests(lane)
            await lane.put(None)
            await carrier
        except _GONE:
            pass
        finally:
            carrier.cancel()
            with contextlib.suppress(asyncio.CancelledError, *_GONE):
                await carrier

    async def _read_requests(self, lane: "_LaneQueue") -> None:
        reader, proxy = self._client_reader, self._proxy
        while True:
            try:
                head = await reader.readexactly(HEAD.size)
            except (asyncio.IncompleteReadError, *_GONE):
                return
            size, api_key, _version, correlation_id = HEAD.unpack(head)
            proxy.counts.requests[api_key] += 1
            fault = proxy.fault_of(api_key)
            held_s = 0.0
            if fault is not None:
                if fault.action == "delay":
                    held_s = proxy.draw(fault.delay_ms)
                elif fault.action == "swallow":
                    await self._discard()
                    return
                elif fault.action in ("reset", "close"):
                    self.sever(fault.action)
                    return
                elif fault.action in ("lose_answer", "reset_after"):
                    self._cut_at_answer[correlation_id] = fault.action
            if len(self._unanswered) < UNANSWERED_MAX:
                self._unanswered.add(correlation_id)
                self._all_answered.clear()
            if not await self._carry_frame(reader, lane, head, size - HEAD.size + 4, held_s):
                return
            if fault is not None and fault.action == "half_close":
                return

    async def _carry_frame(
        self,
        reader: asyncio.StreamReader,
        lane: "_LaneQueue",
        head: bytes,
        left: int,
        held_s: float,
    ) -> bool:
        """Pass on a frame whose head was read; False when its sender ended within it."""
        piece = head
        while True:
            if left > 0:
                data = await _read_some(reader, min(left, PIECE_SIZE_MAX))
                if not data:
                    await lane.put(piece, held_s)
                    return False
                piece += data
                left -= len(data)
            if left <= 0 or len(piece) >= PIECE_SIZE_MAX:
                await lane.put(piece, held_s)
                piece, held_s = b"", 0.0
                if left <= 0:
                    return True

    async def _discard(self) -> None:
        while await _read_some(self._client_reader, PIECE_SIZE_MAX):
            pass

    # -- answers ---------------------------------------------------------------------------------

    async def _carry_answers(self) -> None:
        lane = _LaneQueue(self._proxy, self._client_writer, to_broker=False)
        carrier = asyncio.create_task(lane.carry())
        try:
            await self._read_answers(lane)
            await lane.put(None)
            await carrier
        except _GONE:
            pass
        finally:
            carrier.cancel()
            with contextlib.suppress(asyncio.CancelledError, *_GONE):
                await carrier

    async def _read_answers(self, lane: "_LaneQueue") -> None:
        reader = self._broker_reader
        assert reader is not None
        while True:
            try:
                head = await reader.readexactly(ANSWER_HEAD.size)
            except (asyncio.IncompleteReadError, *_GONE):
                return
            size, correlation_id = ANSWER_HEAD.unpack(head)
            cut = self._cut_at_answer.pop(correlation_id, None)
            if cut is not None:
                self._answered(correlation_id)
                self.sever("reset" if cut == "reset_after" else "close")
                return
            if not await self._carry_frame(reader, lane, head, size - ANSWER_HEAD.size + 4, 0.0):
                return
            self._answered(correlation_id)

    def _answered(self, correlation_id: int) -> None:
        self._unanswered.discard(correlation_id)
        if not self._unanswered:
            self._all_answered.set()


class _LaneQueue:
    """A bounded queue of pieces, each written when it is due and in order."""

    def __init__(self, proxy: FaultProxy, writer: asyncio.StreamWriter, *, to_broker: bool) -> None:
        self._proxy = proxy
        self._writer = writer
        self._to_broker = to_broker
        self._queue: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue(LANE_PIECES_MAX)
        self._time = asyncio.get_running_loop().time
        self._gone = False

    @property
    def _lane(self) -> Lane:
        faults = self._proxy.faults
        return faults.to_broker if self._to_broker else faults.to_client

    async def put(self, piece: bytes | None, held_s: float = 0.0) -> None:
        """Queue a piece; None is the end of the stream."""
        lane = self._lane
        wait_s = held_s + self._proxy.draw(lane.delay_ms)
        if wait_s <= 0 and not lane.bytes_per_s and self._queue.empty() and piece is not None:
            # Nothing is before it and nothing holds it up: no need to wake another task.
            await self._write(piece, lane)
            return
        await self._queue.put((self._time() + wait_s, piece))

    async def carry(self) -> None:
        """Write what is due until the end of the stream."""
        while True:
            due, piece = await self._queue.get()
            wait_s = due - self._time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            if piece is None:
                return
            lane = self._lane
            await self._write(piece, lane)
            if lane.bytes_per_s:
                await asyncio.sleep(len(piece) / lane.bytes_per_s)

    async def _write(self, piece: bytes, lane: Lane) -> None:
        if self._gone or lane.black_hole:
            return
        try:
            self._writer.write(piece)
            await self._writer.drain()
        except _GONE:
            # The other end has gone. A client that left must not keep its requests' answers from
            # being taken off the broker's socket.
            self._gone = True


async def _read_some(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        return await reader.read(size)
    except _GONE:
        return b""


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(*_GONE):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
    writer.transport.abort()


# -- as a process --------------------------------------------------------------------------------


class ProxyProcess:
    """A proxy in a process of its own, for clients that would take its time on one core."""

    def __init__(self, target: tuple[str, int], *, port: int = 0, seed: int = 0) -> None:
        host, target_port = target
        command = [sys.executable, "-m", "tests.fakes.network.fault_proxy"]
        command += ["--target", f"{host}:{target_port}", "--port", str(port), "--seed", str(seed)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[3],
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        self.port: int = self._answer()["port"]

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def _answer(self) -> dict[str, Any]:
        line = self._stdout.readline()
        if not line:
            raise RuntimeError("the proxy process ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ask(self, **command: Any) -> dict[str, Any]:
        self._stdin.write(json.dumps(command).encode() + b"\n")
        self._stdin.flush()
        return self._answer()

    def set_faults(self, faults: dict[str, Any]) -> None:
        """Replace what it does; in the shape of `Faults.from_json`."""
        self._ask(faults=faults)

    def sever(self, how: str = "reset") -> int:
        """End all present connections."""
        return int(self._ask(sever=how)["severed"])

    def counts(self) -> dict[str, Any]:
        """What it has done."""
        return self._ask()

    def stop(self) -> None:
        """End the process."""
        self._stdin.close()
        self._process.wait(60)
        self._stdout.close()


async def _serve(target: tuple[str, int], port: int, seed: int) -> None:
    proxy = FaultProxy(target, seed=seed)
    await proxy.start(port)
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    _say({"port": proxy.port})
    while line := await commands.readline():
        command = json.loads(line)
        answer = proxy.counts.as_json()
        if "faults" in command:
            proxy.faults = Faults.from_json(command["faults"])
        if "sever" in command:
            answer["severed"] = proxy.sever(command["sever"])
        _say(answer)
    await proxy.stop()


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.network.fault_proxy")
    parser.add_argument("--target", required=True, help="HOST:PORT of the broker")
    parser.add_argument("--port", type=int, default=0, help="where to listen, 0 for any")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    host, _, port = options.target.rpartition(":")
    work: Coroutine[Any, Any, None] = _serve((host, int(port)), options.port, options.seed)
    try:
        import uvloop

        uvloop.run(work)
    except ImportError:
        asyncio.run(work)


if __name__ == "__main__":
    main()
