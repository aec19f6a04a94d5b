"""Peers that read nothing, leave half-way, stop in the middle or come and go a thousand times."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import wire
from broker.network.connection_poller import DIRECT_MAX
from protocol.headers import encode_request_header
from protocol.messages import fetch
from protocol.records.builder import build_batch
from tests.system.hostile.conftest import Note
from tests.system.hostile.probe import HANG_MS
from tests.system.hostile.server import MIB, Target, rude_socket, running
from tests.system.hostile.test_bombs import create, produce_to

ALL_TOPICS = wire.frame(wire.METADATA, 1, 1, struct.pack(">i", -1))
API_VERSIONS = wire.frame(wire.API_VERSIONS, 0, 1, b"")
PARKED = "kafka_server_delayedoperationpurgatory_purgatorysize"
RESET = struct.pack("ii", 1, 0)

WATCHED = pytest.mark.parametrize(
    "beside", [pytest.param(0, id="by the loop"), pytest.param(DIRECT_MAX + 1, id="in the set")]
)
"""With how many connections open beside: those beyond DIRECT_MAX are watched another way."""


def pipelined(one: bytes, size: int) -> bytes:
    return one * (size // len(one))


def fetch_frame(max_wait_ms: int) -> bytes:
    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MIB)
    request = fetch.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1 if max_wait_ms == 0 else 2**31 - 1,
        max_bytes=50 * MIB,
        topics=[fetch.FetchTopic(topic="plain", partitions=[partition])],
    )
    body = encode_request_header(1, 12, 1, "slow") + fetch.encode_request(request, 12)
    return len(body).to_bytes(4, "big") + body


@contextlib.contextmanager
def others(target: Target, count: int) -> Iterator[None]:
    """So many connections that are answered once and stay."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(rude_socket(target.port)) for _ in range(count)]
        for one in opened:
            one.sendall(API_VERSIONS)
        for one in opened:
            wire.receive(one)
        yield


def push(connection: socket.socket, data: bytes, seconds: float) -> int:
    """Send until the broker stops taking it."""
    connection.settimeout(seconds)
    sent = 0
    try:
        while sent < len(data):
            sent += connection.send(data[sent : sent + 65_536])
    except TimeoutError:
        pass
    return sent


def filled(target: Target) -> None:
    create(target)
    batch = bytes(build_batch([(b"k", os.urandom(900_000), (), 0)]))
    for _ in range(20):
        assert produce_to(target, "plain", batch) in (0, 32)


@WATCHED
def test_slow_readers_are_bounded(tmp_path: Path, note: Note, beside: int) -> None:
    """Forty clients ask without end and take nothing: each holds its share, others go on."""
    with running(tmp_path) as target, contextlib.ExitStack() as stack:
        filled(target)
        stack.enter_context(others(target, beside))
        kinds = {
            "metadata": pipelined(ALL_TOPICS, 2 * MIB),
            "small": pipelined(API_VERSIONS, 2 * MIB),
            "fetch": pipelined(fetch_frame(0), 2 * MIB),
            # Answers that are ready wait in memory behind one that is not. No more than the
            # broker's receive buffer takes: behind that, the end would not arrive either.
            "behind a long poll": fetch_frame(600_000) + pipelined(ALL_TOPICS, 60_000),
        }
        before, descriptors = target.memory(), target.descriptors()
        with target.probe("metadata") as probe:
            sockets = [rude_socket(target.port) for _ in range(40)]
            for index, one in enumerate(sockets):
                stack.enter_context(one)
                push(one, list(kinds.values())[index % len(kinds)], 0.05)
            time.sleep(0.5)
            grown = target.memory() - before
            for one in sockets:
                one.close()
        assert target.eventually(lambda: target.descriptors() <= descriptors + 4)
        note(
            grown_mib=grown / MIB,
            left_mib=(target.memory() - before) / MIB,
            metadata=probe.seen,
        )
        # A megabyte of answers, a buffer of requests, and what Python adds to small pieces.
        assert grown <= 40 * 2 * MIB
        assert probe.seen.stall_ms <= HANG_MS
        assert not probe.seen.failures


@WATCHED
def test_half_closed_reset_and_silent_connections_leave_nothing(
    tmp_path: Path, note: Note, beside: int
) -> None:
    """However a client goes, its descriptor, its memory and its requests go with it."""
    with running(tmp_path) as target, contextlib.ExitStack() as stack:
        filled(target)
        stack.enter_context(others(target, beside))
        before, descriptors = target.memory(), target.descriptors()
        with target.probe() as probe:
            for round_ in range(200):
                one = rude_socket(target.port)
                match round_ % 5:
                    case 0:  # half-closed in the middle of a frame
                        one.sendall(ALL_TOPICS[:9])
                        one.shutdown(socket.SHUT_WR)
                    case 1:  # reset in the middle of an answer with a file in it
                        one.sendall(fetch_frame(0) * 3)
                        one.recv(10)
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    case 2:  # gone while it waits in a long poll
                        one.sendall(fetch_frame(600_000))
                    case 3:  # without a byte
                        pass
                    case 4:  # reset with requests under way
                        one.sendall(pipelined(API_VERSIONS, 20_000))
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                one.close()
        assert target.eventually(lambda: target.descriptors() <= descriptors)
        assert target.eventually(lambda: target.metric(PARKED) == 0)
        grown = target.memory() - before
        note(grown_mib=grown / MIB, ping=probe.seen)
        assert grown <= 8 * MIB
        assert probe.seen.stall_ms <= HANG_MS


@pytest.mark.parametrize(
    "count", [pytest.param(5_000, id="quick"), pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_connects_and_disconnects_leak_nothing(tmp_path: Path, note: Note, count: int) -> None:
    with running(tmp_path) as target:

        def come_and_go(times: int) -> None:
            for index in range(times):
                with socket.create_connection(("127.0.0.1", target.port), 30) as one:
                    if index % 2:
                        one.sendall(API_VERSIONS)
                    if index % 3:
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

        come_and_go(2_000)
        descriptors = target.descriptors()
        assert target.eventually(lambda: target.descriptors() <= 200)
        before = target.memory()
        begin = time.monotonic()
        with target.probe() as probe:
            come_and_go(count)
        rate = count / (time.monotonic() - begin)
        assert target.eventually(lambda: target.descriptors() <= descriptors)
        grown = target.memory() - before
        note(connects_per_s=rate, grown_mib=grown / MIB, ping=probe.seen)
        assert grown <= 4 * MIB
        assert probe.seen.stall_ms <= HANG_MS
        assert not probe.seen.failures


STOPPED_CLIENT = """
import socket, sys, time
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
frame = bytes.fromhex(sys.argv[2])
one.sendall(frame[:7])
print("half", flush=True)
time.sleep(0.3)
one.sendall(frame[7:])
size = int.from_bytes(one.recv(4, socket.MSG_WAITALL), "big")
print(len(one.recv(size, socket.MSG_WAITALL)) == size, flush=True)
"""


@WATCHED
def test_a_client_stopped_in_the_middle_of_a_frame_goes_on_later(
    tmp_path: Path, beside: int
) -> None:
    with running(tmp_path) as target, others(target, beside):
        with subprocess.Popen(
            [sys.executable, "-c", STOPPED_CLIENT, str(target.port), ALL_TOPICS.hex()],
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "half\n"
            client.send_signal(signal.SIGSTOP)
            with target.probe() as probe:
                time.sleep(1.0)
            client.send_signal(signal.SIGCONT)
            assert client.stdout.readline() == "True\n"
            assert client.wait(60) == 0
        assert probe.seen.stall_ms <= HANG_MS
