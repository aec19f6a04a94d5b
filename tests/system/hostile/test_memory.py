"""Memory follows bytes that arrived, never bytes that were announced."""

import contextlib
import random
import select
import socket
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
