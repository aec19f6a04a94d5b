"""Memory follows bytes that arrived, never bytes that were announced."""

import contextlib
import random
import select
import selectors
import socket
import struct
import time
from pathlib import Path

from tests.system.hostile.conftest import Note
from tests.system.hostile.probe import HANG_MS
from tests.system.hostile.server import MIB, running

ANNOUNCED = (100 * MIB).to_bytes(4, "big")


def test_2000_sockets_that_announce_100_mib_cost_next_to_nothing(
    tmp_path: Path, note: Note
) -> None:
    """A default Kafka with a 1 GiB heap dies at 16 of them; here 64 MB at most, and no delay."""
    with running(tmp_path) as target, contextlib.ExitStack() as stack:
        with target.probe("metadata"):
            time.sleep(0.3)
        before, descriptors = target.memory(), target.descriptors()
        with target.probe("metadata") as probe:
            sockets = [
                stack.enter_context(socket.create_connection(("127.0.0.1", target.port)))
                for _ in range(2000)
            ]
            for one in sockets:
                one.sendall(ANNOUNCED + bytes(12))
            assert target.eventually(lambda: target.descriptors() >= descriptors + 2000)
            time.sleep(2.0)
            grown = target.memory() - before
            for one in sockets:
                one.close()
        # One more: the set that watches what the loop does not, once it was needed, stays.
        assert target.eventually(lambda: target.descriptors() <= descriptors + 1)
        left = target.memory() - before
        note(grown_mib=grown / MIB, left_mib=left / MIB, metadata=probe.seen)
        assert grown <= 64 * 1000 * 1000
        assert left <= 16 * MIB
        assert probe.seen.stall_p99_ms <= HANG_MS
        assert not probe.seen.failures
        assert "peer=" not in target.log(), "a peer that leaves is no news"


def test_5000_half_frames_that_dribble_cost_what_they_sent(tmp_path: Path, note: Note) -> None:
    """Slow lorises hold a connection each and their bytes; others connect as quickly as before."""
    chance = random.Random(5)
    with running(tmp_path) as target, contextlib.ExitStack() as stack:
        with target.probe("connect"):
            time.sleep(0.3)
        before = target.memory()
        sent = 0
        sockets = [
            stack.enter_context(socket.create_connection(("127.0.0.1", target.port)))
            for _ in range(5000)
        ]
        left = {}
        for one in sockets:
            size = int(10 ** chance.uniform(2, 6))
            # Four bytes follow the size; the last one is never sent.
            left[one] = size - 5
            one.sendall(size.to_bytes(4, "big") + b"\0\3\0\1")
            sent += 8
        # Whoever comes behind a crowd waits until it has been let in: one connection, unmeasured.
        with target.probe("connect", interval_ms=10):
            time.sleep(0.3)
        with target.probe("connect", interval_ms=10) as probe:
            deadline = time.monotonic() + 3.0
            while time.monotonic() < deadline:
                one = chance.choice(sockets)
                count = min(chance.choice((1, 1, 1, 10, 1000)), left[one])
                if count > 0:
                    done = one.send(bytes(count))
                    left[one] -= done
                    sent += done
            grown = target.memory() - before
        readable = select.poll()
        for one in sockets:
            readable.register(one, select.POLLIN)
        assert not readable.poll(0), "a frame that makes progress is not cut off"
        for one in sockets:
            one.close()
        note(sent_mib=sent / MIB, grown_mib=grown / MIB, connect=probe.seen)
        # A connection has its object, one page of its buffer, and up to a page at the end of it.
        assert grown <= sent + 5000 * 16 * 1024
        assert probe.seen.stall_p99_ms <= HANG_MS
        assert not probe.seen.failures


def large_produce(size: int) -> bytes:
    """A Produce (version 3) for a topic that there is not, of about `size` bytes of records."""
    head = struct.pack(">hhihhhi", 0, 3, 7, -1, -1, 1, 1000)
    body = struct.pack(">ih1sii", 1, 1, b"t", 1, 0) + struct.pack(">i", size) + bytes(size)
    return struct.pack(">i", len(head) + len(body)) + head + body


def send_all(port: int, data: bytes, clients: int) -> list[int]:
    """Have so many clients send `data` at once; how many bytes each was answered."""
    answered = [0] * clients
    left = memoryview(data)
    with selectors.DefaultSelector() as ready, contextlib.ExitStack() as stack:
        at = [0] * clients
        sockets: list[socket.socket] = []
        for number in range(clients):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            sockets.append(one)
            one.setblocking(False)
            ready.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE, number)
        deadline = time.monotonic() + 120.0
        while ready.get_map():
            assert time.monotonic() < deadline, f"{answered.count(0)} have no answer"
            for key, events in ready.select(1.0):
                number, one = key.data, sockets[key.data]
                if events & selectors.EVENT_WRITE:
                    with contextlib.suppress(BlockingIOError):
                        at[number] += one.send(left[at[number] : at[number] + MIB])
                    if at[number] == len(data):
                        ready.modify(one, selectors.EVENT_READ, number)
                if events & selectors.EVENT_READ:
                    answered[number] = len(one.recv(4096))
                    ready.unregister(one)
    return answered


def test_large_requests_of_100_clients_hold_the_limit_and_one_request(
    tmp_path: Path, note: Note
) -> None:
    """Begun all at once, each with what its socket holds; and one is larger than the limit."""
    limit, size = 64 * MIB, 20 * MIB
    with running(tmp_path, {"queued.max.request.bytes": str(limit)}) as target:
        assert all(send_all(target.port, large_produce(size), 1))
        before = target.resident()
        target.forget_peak()
        began = time.monotonic()
        assert all(send_all(target.port, large_produce(size), 100))
        took_s = time.monotonic() - began
        grown = target.peak_memory() - before
        assert all(send_all(target.port, large_produce(limit + size), 2))
        larger = target.peak_memory() - before
        note(grown_mib=grown / MIB, larger_mib=larger / MIB, took_s=took_s)
        # One receive brings what a socket holds, 6 MiB as a rule; 32 MiB are kept for reuse.
        assert grown <= limit + size + 40 * MIB
        assert larger <= limit + (limit + size) + 40 * MIB
        assert target.metric("kafka_network_socketserver_memorypoolused") == 0
        assert "while memory is short" not in target.log()
