"""What the way of a replicated record costs without a broker: `python -m bench.hop_floor`.

Three processes on one core relay a record as three brokers do, with plain sockets and nothing else:
no protocol, no log but its `pwrite`, no event loop but epoll. A generator on the other core spins
over the producer's and the consumer's connection, as `bench.latency` does.

    producer ──record──> leader ──record──> follower 2 ──> its offset ──┐
                         pwrite └─record──> follower 3 ──> its offset ──┤
    consumer <──record── leader <───────────────────────────────────────┘
    producer <──────ack──┘                    each follower: pwrite

With `--followers 0` the leader answers at once, as a broker that is alone does. It is the floor of
the rows `rf3-latency-...`, or `latency-...`, on this machine, at this moment: wake-ups, copies and
system calls. Figures of brokers are to be read as multiples of it.
"""

import argparse
import contextlib
import multiprocessing
import os
import select
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.generator import percentile
from bench.latency import STALL_S, undisturbed
from bench.rows import BROKER_CORE, GENERATOR_CORE

RECORD: Final = bytes(1171)
"""A follower's answer with a record of 1 KB."""

OFFSET: Final = bytes(114)
"""A follower's next Fetch."""

ACK: Final = bytes(54)
PRODUCER: Final = b"p"
CONSUMER: Final = b"c"
FOLLOWER: Final = b"f"
FOLLOWERS: Final = 2
_CONTEXT: Final = multiprocessing.get_context("fork")


def _connect(port: int, role: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(role)
    return connection


def _receive(connection: socket.socket, size: int) -> bool:
    """Receive so many bytes, in one call as a rule; False at the end."""
    left = size
    while left:
        got = len(connection.recv(left))
        if not got:
            return False
        left -= got
    return True


def _lead(listener: socket.socket, log: Path, follower_count: int) -> None:
    os.sched_setaffinity(0, {BROKER_CORE})
    poll = select.epoll()
    roles: dict[int, tuple[bytes, socket.socket]] = {}
    for _ in range(follower_count + 2):
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        roles[connection.fileno()] = (connection.recv(1), connection)
        poll.register(connection, select.EPOLLIN)
    of_role = {
        role: [one for other, one in roles.values() if other == role]
        for role in (PRODUCER, CONSUMER, FOLLOWER)
    }
    (producer,), (consumer,), followers = of_role.values()
    file, position, fetched = os.open(log, os.O_CREAT | os.O_RDWR), 0, 0
    while True:
        for descriptor, _ in poll.poll():
            role, connection = roles[descriptor]
            if not _receive(connection, len(RECORD) if role == PRODUCER else len(OFFSET)):
                return
            if role == PRODUCER:
                position += os.pwrite(file, RECORD, position)
                for follower in followers:
                    follower.send(RECORD)
            elif role == FOLLOWER:
                fetched += 1
            if fetched == follower_count and role != CONSUMER:
                fetched = 0
                consumer.send(RECORD)
                producer.send(ACK)


def _follow(port: int, log: Path) -> None:
    os.sched_setaffinity(0, {BROKER_CORE})
    leader = _connect(port, FOLLOWER)
    poll = select.epoll()
    poll.register(leader, select.EPOLLIN)
    file, position = os.open(log, os.O_CREAT | os.O_RDWR), 0
    while True:
        poll.poll()
        if not _receive(leader, len(RECORD)):
            return
        position += os.pwrite(file, RECORD, position)
        leader.send(OFFSET)


def measure(
    rate_per_s: int, duration_s: float, followers: int = FOLLOWERS
) -> tuple[list[float], float]:
    """Milliseconds from when a record was due until the consumer had it, ascending.

    And the share of the records that are left out, as `bench.latency` leaves them out.
    """
    with tempfile.TemporaryDirectory(prefix="varve-floor-") as directory:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        logs = [Path(directory) / f"{number}" for number in range(followers + 1)]
        processes = [
            _CONTEXT.Process(target=_lead, args=(listener, logs[0], followers), daemon=True)
        ]
        processes += [
            _CONTEXT.Process(target=_follow, args=(port, log), daemon=True) for log in logs[1:]
        ]
        for process in processes:
            process.start()
        listener.close()
        os.sched_setaffinity(0, {GENERATOR_CORE})
        try:
            with _connect(port, PRODUCER) as producer, _connect(port, CONSUMER) as consumer:
                time.sleep(0.5)
                return _drive(producer, consumer, rate_per_s, duration_s)
        finally:
            for process in processes:
                process.terminate()
                process.join()


def _drive(
    producer: socket.socket, consumer: socket.socket, rate_per_s: int, duration_s: float
) -> tuple[list[float], float]:
    """As `bench.latency`: records are due at fixed moments, and the loop spins."""
    for connection in (producer, consumer):
        connection.setblocking(False)
    clock = time.perf_counter
    total, sent, received = int(rate_per_s * duration_s), 0, 0
    done: list[float] = []
    stalls: list[tuple[float, float]] = []
    now = clock()
    begin = now + 0.1
    while len(done) < total:
        before, now = now, clock()
        if now - before > STALL_S:
            stalls.append((before, now))
        if sent < total and now >= begin + sent / rate_per_s:
            producer.send(RECORD)
            sent += 1
        with contextlib.suppress(BlockingIOError):
            producer.recv(4096)
        try:
            received += len(consumer.recv(1 << 16))
        except BlockingIOError:
            continue
        at = clock()
        while received >= len(RECORD):
            received -= len(RECORD)
            done.append(at)
            consumer.send(OFFSET)
    due = [begin + number / rate_per_s for number in range(total)]
    kept = undisturbed(due, done, stalls)
    return sorted((done[n] - due[n]) * 1e3 for n in kept), 1 - len(kept) / total


def main() -> int:
    """Print the floor at the rates of the rows."""
    parser = argparse.ArgumentParser(prog="bench.hop_floor", description=__doc__)
    parser.add_argument("--rates", default="200,2000", help="records a second, comma-separated")
    parser.add_argument("--duration", type=float, default=4.0, help="seconds of each")
    parser.add_argument("--followers", type=int, default=FOLLOWERS, help="0: one broker alone")
    chosen = parser.parse_args()
    for rate in map(int, chosen.rates.split(",")):
        taken, left_out = measure(rate, chosen.duration, chosen.followers)
        if not taken:
            print(f"{rate:5} records/s: the machine is too busy")
            continue
        shown = ", ".join(
            f"p{fraction * 100:g} {percentile(taken, fraction):.3f}"
            for fraction in (0.02, 0.25, 0.5, 0.99)
        )
        print(f"{rate:5} records/s: {shown} ms; left out {left_out:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
