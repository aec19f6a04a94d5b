"""Readers of history: from offset 0 to the end, as a consumer that starts anew would read.

One Fetch in flight per reader, 1 MiB per partition and answer, as clients do by default. An answer
may be empty while remote storage is read (`remote.fetch.max.wait.ms`): then it is asked again,
and counted.
"""

import contextlib
import gc
import multiprocessing
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench import wire
from bench.generator import GeneratorError
from bench.process import cpu_seconds, rss_bytes

_CONTEXT = multiprocessing.get_context("fork")
_EMPTY_ANSWERS_MAX = 240
"""In a row: with 500 ms each a broker that never comes up with anything."""


@dataclass(frozen=True, slots=True)
class History:
    """What is to be read: equal batches in every partition."""

    topic: str
    partitions: tuple[int, ...]
    batch_records: int
    batch_size: int
    end_offset: int
    """Of each partition, exclusive."""

    @property
    def size_bytes(self) -> int:
        """Of all partitions."""
        return self.end_offset // self.batch_records * self.batch_size * len(self.partitions)


@dataclass(frozen=True, slots=True)
class ReplayLoad:
    """Who reads what."""

    port: int
    pid: int
    history: History
    readers: int = 1
    """Reader n reads partition n modulo their count, all of it."""
    max_bytes: int = 1 << 20
    bytes_per_s: float | None = None
    """Of each reader; None: as fast as the broker answers."""
    host: str = "127.0.0.1"


@dataclass(slots=True)
class ReplayResult:
    """What all readers have read together."""

    seconds: float
    size_bytes: int
    requests: int
    empty_answers: int
    longest_wait_ms: float
    broker_cpu_s: float
    generator_busy: float
    rss_peak_bytes: int = 0


@dataclass(slots=True)
class _Reader:
    """One connection; `run` reads its partition once."""

    load: ReplayLoad
    partition: int
    size_bytes: int = 0
    requests: int = 0
    empty_answers: int = 0
    longest_wait_s: float = 0.0
    error: str | None = None
    stop: Any = field(default_factory=threading.Event)

    def run(self) -> None:
        """To the end, or until it is stopped."""
        try:
            with socket.create_connection((self.load.host, self.load.port)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._read(connection)
        except (OSError, wire.WireError, GeneratorError) as error:
            self.error = f"partition {self.partition}: {type(error).__name__}: {error}"

    def _read(self, connection: socket.socket) -> None:
        load, history = self.load, self.load.history
        buffer = bytearray(load.max_bytes + history.batch_size + (1 << 16))
        view = memoryview(buffer)
        offset = empty = 0
        begin = time.perf_counter()
        while offset < history.end_offset and not self.stop.is_set():
            if load.bytes_per_s is not None:
                ahead = self.size_bytes / load.bytes_per_s - (time.perf_counter() - begin)
                if ahead > 0:
                    time.sleep(ahead)
            asked = time.perf_counter()
            connection.sendall(
                wire.fetch_frame(history.topic, self.partition, offset, max_bytes=load.max_bytes)
            )
            if connection.recv_into(view, 4, socket.MSG_WAITALL) != 4:
                raise GeneratorError("the broker closed the connection")
            (size,) = struct.unpack_from(">i", buffer)
            if connection.recv_into(view, size, socket.MSG_WAITALL) != size:
                raise GeneratorError("the broker closed the connection")
            self.longest_wait_s = max(self.longest_wait_s, time.perf_counter() - asked)
            answer = wire.parse_fetch(view[:size])
            if answer.error_code:
                raise GeneratorError(f"Fetch at {offset}: error {answer.error_code}")
            self.requests += 1
            whole = len(answer.records) // history.batch_size
            if whole:
                (first,) = struct.unpack_from(">q", answer.records)
                if first != offset:
                    raise GeneratorError(f"asked for {offset}, got a batch at {first}")
                offset += whole * history.batch_records
                self.size_bytes += whole * history.batch_size
                empty = 0
            else:
                self.empty_answers += 1
                empty += 1
                if empty > _EMPTY_ANSWERS_MAX:
                    raise GeneratorError(f"nothing at {offset} in {empty} answers")


def replay(load: ReplayLoad) -> ReplayResult:
    """Read it all once with every reader; the peak of the broker's memory is sampled meanwhile."""
    partitions = load.history.partitions
    readers = [_Reader(load, partitions[n % len(partitions)]) for n in range(load.readers)]
    threads = [threading.Thread(target=reader.run, daemon=True) for reader in readers]
    cpu_before, own_before = cpu_seconds(load.pid), time.process_time()
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    peak = rss_bytes(load.pid)
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
            peak = max(peak, rss_bytes(load.pid))
    seconds = time.perf_counter() - begin
    result = _sum(readers, seconds, time.process_time() - own_before)
    result.broker_cpu_s = cpu_seconds(load.pid) - cpu_before
    result.rss_peak_bytes = peak
    return result


def _sum(readers: list[_Reader], seconds: float, own_cpu_s: float) -> ReplayResult:
    errors = [reader.error for reader in readers if reader.error]
    if errors:
        raise GeneratorError("; ".join(errors))
    return ReplayResult(
        seconds,
        sum(reader.size_bytes for reader in readers),
        sum(reader.requests for reader in readers),
        sum(reader.empty_answers for reader in readers),
        max(reader.longest_wait_s for reader in readers) * 1e3,
        0.0,
        own_cpu_s / seconds,
    )


class BackgroundReader:
    """One reader in a process of its own that reads again and again until it is stopped."""

    def __init__(self, load: ReplayLoad, core: int | None) -> None:
        self._ours, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=self._main, args=(load, core, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @staticmethod
    def _main(load: ReplayLoad, core: int | None, pipe: Any) -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        gc.disable()
        reader = _Reader(load, load.history.partitions[0])
        begin, own = time.perf_counter(), time.process_time()

        def repeat() -> None:
            while not reader.stop.is_set() and reader.error is None:
                reader.run()

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        pipe.recv()
        reader.stop.set()
        thread.join(30.0)
        try:
            seconds = time.perf_counter() - begin
            pipe.send((True, _sum([reader], seconds, time.process_time() - own)))
        except GeneratorError as error:
            pipe.send((False, str(error)))

    def stop(self) -> ReplayResult:
        """End it; what it has read."""
        try:
            self._ours.send(None)
            good, value = self._ours.recv()
        except (EOFError, OSError):
            raise GeneratorError("the background reader ended early") from None
        finally:
            self._process.join()
        if not good:
            raise GeneratorError(value)
        result: ReplayResult = value
        return result


@contextlib.contextmanager
def reading(load: ReplayLoad, core: int | None, results: list[ReplayResult]) -> Iterator[None]:
    """A background reader for as long as the block lasts; its result is appended."""
    reader = BackgroundReader(load, core)
    try:
        yield
    finally:
        results.append(reader.stop())
