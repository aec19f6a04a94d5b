"""The least that three copies of a batch cost on this machine: no protocol, no interpreter's work.

    generator ──1 MiB──> leader ──sendfile──> two followers
                           │                     │
                        CRC, pwrite           CRC, pwrite        into new files

Each is a process with blocking sockets and one buffer that is used again and again; what is left is
the kernel's: receiving, fresh pages of the page cache, sending. A follower answers with a byte, and
five batches are under way, as in the rows that are compared with it.
"""

import os
import socket
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastcrc.crc32 import iscsi as crc32c

BATCH_BYTES = 1 << 20
WINDOW = 5
SOCKET_BYTES = 4 << 20

_CONTEXT = get_context("fork")


@dataclass(frozen=True, slots=True)
class Floor:
    """What came of it; CPU of the leader and its followers, of a GB that was produced."""

    mb_per_s: float
    cpu_s_per_gb: float


def _tuned(connection: socket.socket) -> socket.socket:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    return connection


def _receive(connection: socket.socket, into: memoryview) -> None:
    got = 0
    while got < len(into):
        count = connection.recv_into(into[got:])
        if not count:
            raise ConnectionError("the other end of the floor has gone")
        got += count


def _follow(address: Any, path: Path, batches: int, report: Any) -> None:
    with (
        _tuned(socket.create_connection(address)) as leader,
        path.open("wb", buffering=0) as file,
    ):
        memory = memoryview(bytearray(BATCH_BYTES))
        begin = time.process_time()
        for number in range(batches):
            _receive(leader, memory)
            crc32c(memory)
            os.pwrite(file.fileno(), memory, number * BATCH_BYTES)
            leader.send(b"\0")
        report.send(time.process_time() - begin)


def _lead(listener: socket.socket, path: Path, batches: int, report: Any) -> None:
    followers = [_tuned(listener.accept()[0]) for _ in range(2)]
    report.send(None)  # the generator may come
    generator = listener.accept()[0]
    with path.open("w+b", buffering=0) as file:
        memory = memoryview(bytearray(BATCH_BYTES))
        begin = time.process_time()
        for number in range(batches):
            _receive(generator, memory)
            crc32c(memory)
            position = number * BATCH_BYTES
            os.pwrite(file.fileno(), memory, position)
            for follower in followers:
                sent = 0
                while sent < BATCH_BYTES:
                    sent += os.sendfile(
                        follower.fileno(), file.fileno(), position + sent, BATCH_BYTES - sent
                    )
            for follower in followers:
                follower.recv(1)
            generator.send(b"\0")
        report.send(time.process_time() - begin)
    for connection in (*followers, generator):
        connection.close()


def replication_floor(directory: Path, batches: int = 512) -> Floor:
    """Send so many batches through a leader to two followers, below `directory`."""
    batch = os.urandom(BATCH_BYTES)
    with (
        TemporaryDirectory(dir=directory) as made,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        address = listener.getsockname()
        reports: list[Any] = []
        for role, target, given in (
            ("leader", _lead, listener),
            ("follower-1", _follow, address),
            ("follower-2", _follow, address),
        ):
            ours, theirs = _CONTEXT.Pipe(duplex=False)
            _CONTEXT.Process(
                target=target, args=(given, Path(made) / role, batches, theirs), daemon=True
            ).start()
            theirs.close()
            reports.append(ours)
        reports[0].recv()
        with socket.create_connection(address) as generator:
            begin = time.perf_counter()
            for number in range(batches + WINDOW):
                if number < batches:
                    generator.sendall(batch)
                if number >= WINDOW:
                    generator.recv(1)
            seconds = time.perf_counter() - begin
        cpu_s = sum(report.recv() for report in reports)
    gb = batches * BATCH_BYTES / 1e9
    return Floor(gb * 1e3 / seconds, cpu_s / gb)
