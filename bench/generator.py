"""The load: frames encoded in advance, sent and counted by a process of its own.

A generator must never be the bottleneck, so nothing is encoded or decoded per request: a connection
keeps a ring of ready frames and sends slices of it; answers to one topic have one size, so they are
counted by division and checked by strided slices (correlation ids in order, no error code). Each
result says how busy the generator was; above 0.95 of a core the figure is the generator's.
"""

import gc
import multiprocessing
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench import wire
from bench.process import cpu_seconds

_CONTEXT = multiprocessing.get_context("fork")
_RECEIVE_SIZE = 1 << 20


class GeneratorError(RuntimeError):
    """The generator's process ended without a result, or the broker answered wrongly."""


def run_apart(core: int | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run `function` in a process of its own, bound to `core`; its result or its exception."""
    return _result_of(_start_apart(core, function, *arguments))


_Apart = tuple[Any, Any]
"""A process under way, and the end of the pipe through which its result comes."""


def _start_apart(core: int | None, function: Callable[..., Any], *arguments: Any) -> _Apart:
    ours, theirs = _CONTEXT.Pipe(duplex=False)

    def main() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            theirs.send((True, function(*arguments)))
        except BaseException as error:  # noqa: BLE001  because it crosses the process border
            theirs.send((False, f"{type(error).__name__}: {error}"))

    process = _CONTEXT.Process(target=main, daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _result_of(apart: _Apart) -> Any:
    process, ours = apart
    try:
        good, value = ours.recv()
    except EOFError:
        raise GeneratorError("the generator's process ended without a result") from None
    finally:
        process.join()
    if not good:
        raise GeneratorError(value)
    return value


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which `fraction` of the ordered samples lie."""
    return ordered[min(int(len(ordered) * fraction), len(ordered) - 1)]


@dataclass(frozen=True, slots=True)
class ProduceLoad:
    """What to send: one connection per entry of `partitions`."""

    port: int
    pid: int
    topic: str
    partitions: tuple[int, ...]
    batch: bytes
    window: int
    """Requests in flight per connection."""
    duration_s: float
    size_limit_bytes: int = 2 << 30
    """Of all connections; with one it is reached by as many batches as it takes, and no more."""
    host: str = "127.0.0.1"
    ports: tuple[int, ...] = ()
    """Of each connection, where partitions are led by several brokers."""


@dataclass(slots=True)
class LoadResult:
    """What came of a load; `requests` were all acknowledged without error."""

    requests: int
    seconds: float
    size_bytes: int
    broker_cpu_s: float
    generator_busy: float
    latencies_ms: tuple[float, float] = (0.0, 0.0)
    """Median and 99th percentile, where requests were sent one at a time."""


class _Pipe:
    """One connection with a ring of ready frames."""

    def __init__(self, load: ProduceLoad, partition: int, port: int) -> None:
        frames = [
            wire.produce_frame(load.topic, partition, load.batch, correlation_id=index)
            for index in range(load.window)
        ]
        self.frame_size = len(frames[0])
        self.ring = memoryview(b"".join(frames))
        self.position = 0
        self.to_send = self.ring.nbytes
        self.layout = wire.ProduceResponseLayout.of(load.topic)
        self.window = load.window
        self.answered = 0
        self.sent_bytes = 0
        self.buffer = bytearray(_RECEIVE_SIZE)
        self.have = 0
        self.socket = socket.create_connection((load.host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)

    def send(self) -> None:
        """Send what may be sent now."""
        while self.to_send:
            end = min(self.position + self.to_send, self.ring.nbytes)
            try:
                count = self.socket.send(self.ring[self.position : end])
            except BlockingIOError:
                return
            self.to_send -= count
            self.sent_bytes += count
            self.position = (self.position + count) % self.ring.nbytes

    def receive(self) -> int:
        """Read answers; how many there were."""
        try:
            count = self.socket.recv_into(memoryview(self.buffer)[self.have :])
        except BlockingIOError:
            return 0
        if not count:
            raise GeneratorError("the broker closed the connection")
        self.have += count
        size = self.layout.size
        whole = self.have // size
        if whole:
            self._check(whole)
            rest = self.have - whole * size
            self.buffer[:rest] = self.buffer[whole * size : self.have]
            self.have = rest
            self.answered += whole
        return whole

    def _check(self, whole: int) -> None:
        size, buffer, end = self.layout.size, self.buffer, whole * self.layout.size
        at = self.layout.error_code
        if any(buffer[at:end:size]) or any(buffer[at + 1 : end : size]):
            raise GeneratorError(f"Produce was refused: {bytes(buffer[:size]).hex()}")
        if buffer[3:end:size] != bytes([size - 4]) * whole:
            raise GeneratorError(f"answer of another size: {bytes(buffer[:size]).hex()}")
        first = self.answered % self.window
        low = bytes((first + n) % self.window & 0xFF for n in range(whole))
        if buffer[7:end:size] != low:
            raise GeneratorError("answers out of order")


def produce(load: ProduceLoad) -> LoadResult:
    """Keep every connection's window full until the time or the size is used up, then drain."""
    ports = load.ports or (load.port,) * len(load.partitions)
    pipes = [_Pipe(load, *pair) for pair in zip(load.partitions, ports, strict=True)]
    by_fd = {pipe.socket.fileno(): pipe for pipe in pipes}
    poll = select.epoll()
    both, read = select.EPOLLIN | select.EPOLLOUT, select.EPOLLIN
    for fd in by_fd:
        poll.register(fd, read)
    wants_write = dict.fromkeys(by_fd, False)
    size_left = load.size_limit_bytes
    cpu_before, own_before = cpu_seconds(load.pid), time.process_time()
    begin = time.perf_counter()
    end = begin + load.duration_s
    in_flight = 0
    for pipe in pipes:
        in_flight += load.window
        size_left -= load.window * len(load.batch)
        pipe.send()
    open_for_more = size_left > 0
    while in_flight:
        for fd, pipe in by_fd.items():
            if bool(pipe.to_send) != wants_write[fd]:
                wants_write[fd] = bool(pipe.to_send)
                poll.modify(fd, both if pipe.to_send else read)
        for fd, events in poll.poll(30.0):
            pipe = by_fd[fd]
            if events & (select.EPOLLERR | select.EPOLLHUP):
                raise GeneratorError("the broker closed the connection")
            if events & select.EPOLLIN:
                whole = pipe.receive()
                in_flight -= whole
                if whole and open_for_more:
                    # No batch above the limit, however many were answered at once.
                    more = min(whole, -(-size_left // len(load.batch)))
                    in_flight += more
                    size_left -= more * len(load.batch)
                    pipe.to_send += more * pipe.frame_size
                    open_for_more = size_left > 0 and time.perf_counter() < end
            if pipe.to_send:
                pipe.send()
    seconds = time.perf_counter() - begin
    own = time.process_time() - own_before
    cpu = cpu_seconds(load.pid) - cpu_before
    poll.close()
    for pipe in pipes:
        pipe.socket.close()
    requests = sum(pipe.answered for pipe in pipes)
    return LoadResult(requests, seconds, requests * len(load.batch), cpu, own / seconds)


def produce_ping_pong(load: ProduceLoad) -> LoadResult:
    """One request at a time on one connection, spinning for the answer."""
    pipe = _Pipe(load, load.partitions[0], load.port)
    laps: list[float] = []
    clock = time.perf_counter
    cpu_before = cpu_seconds(load.pid)
    begin = now = clock()
    end = begin + load.duration_s
    limit = load.size_limit_bytes // len(load.batch)
    while now < end and len(laps) < limit:
        pipe.to_send = pipe.frame_size
        pipe.send()
        while pipe.to_send:
            pipe.send()
        while not pipe.receive():
            pass
        before, now = now, clock()
        laps.append(now - before)
    seconds = now - begin
    cpu = cpu_seconds(load.pid) - cpu_before
    pipe.socket.close()
    laps.sort()
    return LoadResult(
        len(laps),
        seconds,
        len(laps) * len(load.batch),
        cpu,
        # It spins on purpose; the broker's share of a lap is what counts.
        0.0,
        (percentile(laps, 0.5) * 1e3, percentile(laps, 0.99) * 1e3),
    )


@dataclass(frozen=True, slots=True)
class FetchLoad:
    """Read `topic` from the start, over and over, one Fetch in flight."""

    port: int
    pid: int
    topic: str
    batch_size: int
    batch_records: int
    end_offset: int
    max_bytes: int
    duration_s: float
    host: str = "127.0.0.1"
    partition: int = 0


def fetch_all(loads: Sequence[FetchLoad]) -> LoadResult:
    """`fetch` of each load in a process of its own, all at the same time."""
    barrier = _CONTEXT.Barrier(len(loads))
    together = [_start_apart(None, fetch, load, barrier) for load in loads]
    return added_up([_result_of(apart) for apart in together], [load.pid for load in loads])


def added_up(results: Sequence[LoadResult], pids: Sequence[int]) -> LoadResult:
    """One result of loads that ran at the same time, each on the process of its `pids`."""
    cpu_s: dict[int, float] = {}
    for pid, result in zip(pids, results, strict=True):
        # Each load has seen what all of its process cost.
        cpu_s[pid] = max(cpu_s.get(pid, 0.0), result.broker_cpu_s)
    return LoadResult(
        sum(result.requests for result in results),
        max(result.seconds for result in results),
        sum(result.size_bytes for result in results),
        sum(cpu_s.values()),
        sum(result.generator_busy for result in results),
    )


def fetch(load: FetchLoad, barrier: Any = None) -> LoadResult:
    """Fetch as fast as the broker answers; only whole batches count.

    The log holds batches of one size, so the next offset follows from the length of an answer.

    Args:
        load: What is fetched.
        barrier: Of processes that begin together.
    """
    connection = socket.create_connection((load.host, load.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = bytearray(load.max_bytes + (1 << 16))
    view = memoryview(buffer)
    frames = [
        wire.fetch_frame(load.topic, load.partition, offset, max_bytes=load.max_bytes)
        for offset in range(0, load.end_offset, load.batch_records)
    ]
    total = requests = index = 0
    if barrier is not None:
        barrier.wait(60.0)
    cpu_before, own_before = cpu_seconds(load.pid), time.process_time()
    begin = time.perf_counter()
    end = begin + load.duration_s
    while time.perf_counter() < end:
        connection.sendall(frames[index])
        have = connection.recv_into(view, 4, socket.MSG_WAITALL)
        if have != 4:
            raise GeneratorError("the broker closed the connection")
        (size,) = struct.unpack_from(">i", buffer)
        if connection.recv_into(view, size, socket.MSG_WAITALL) != size:
            raise GeneratorError("the broker closed the connection")
        answer = wire.parse_fetch(view[:size])
        whole = len(answer.records) // load.batch_size
        if answer.error_code or not whole:
            raise GeneratorError(f"Fetch: error {answer.error_code}, {len(answer.records)} bytes")
        total += whole * load.batch_size
        requests += 1
        index += whole
        if index >= len(frames):
            index = 0
    seconds = time.perf_counter() - begin
    own = time.process_time() - own_before
    cpu = cpu_seconds(load.pid) - cpu_before
    connection.close()
    return LoadResult(requests, seconds, total, cpu, own / seconds)
