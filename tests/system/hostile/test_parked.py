"""Clients that have a broker keep requests for them, as many and for as long as it will."""

import contextlib
import os
import socket
import time
from pathlib import Path

import pytest

from bench import wire
from protocol.headers import encode_request_header
from protocol.messages import fetch
from protocol.records.builder import build_batch
from tests.system.hostile.conftest import Note
from tests.system.hostile.probe import HANG_MS
from tests.system.hostile.server import MIB, running
from tests.system.hostile.test_bombs import create, produce_to

FOREVER_MS = 2**31 - 1
PARKED = "kafka_server_delayedoperationpurgatory_purgatorysize"
ATTACKERS = "127.0.0.2"


def poll_frame(topic: str, offset: int, max_wait_ms: int, correlation_id: int = 1) -> bytes:
    """A Fetch that waits for one byte."""
    partition = fetch.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=MIB, current_leader_epoch=-1
    )
    request = fetch.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=MIB,
        session_epoch=-1,
        topics=[fetch.FetchTopic(topic=topic, partitions=[partition])],
    )
    body = encode_request_header(1, 12, correlation_id, "poll") + fetch.encode_request(request, 12)
    return len(body).to_bytes(4, "big") + body


def polls_in(port: int, seconds: float, topic: str) -> int:
    """How often a client asks that waits for half a second at a time, for what does not come."""
    count = 0
    with socket.create_connection(("127.0.0.1", port), 30) as one:
        frame = poll_frame(topic, 0, 500)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            one.sendall(frame)
            wire.receive(one)
            count += 1
    return count


@pytest.mark.parametrize(
    ("connections", "fetches"),
    [
        pytest.param(400, 256, id="many-each"),
        pytest.param(3_300, 10, id="many-of-one-address", marks=pytest.mark.slow),
    ],
)
def test_parked_fetches_leave_room_for_others(
    tmp_path: Path, note: Note, connections: int, fetches: int
) -> None:
    """They ask to wait for 24 days; an honest client goes on with two polls a second.

    And the append that wakes all of them holds nobody up.
    """
    with running(tmp_path) as target, contextlib.ExitStack() as stack:
        create(target)
        batch = bytes(build_batch([(b"k", os.urandom(100), (), 0)]))
        before = target.memory()
        frames = poll_frame("plain", 0, FOREVER_MS) * fetches
        for _ in range(connections):
            one = stack.enter_context(
                socket.create_connection(("127.0.0.1", target.port), 30, (ATTACKERS, 0))
            )
            one.sendall(frames)
        time.sleep(1.0)
        parked = target.metric(PARKED)
        grown = target.memory() - before
        polls = polls_in(target.port, 4.0, "compacted")
        with target.probe() as probe:
            time.sleep(0.2)
            begin = time.monotonic()
            assert produce_to(target, "plain", batch) == 0
            produced_ms = (time.monotonic() - begin) * 1000
            woken = target.eventually(lambda: target.metric(PARKED) == 0)
            woken_ms = (time.monotonic() - begin) * 1000
        note(
            parked=parked,
            grown_mib=grown / MIB,
            polls_per_s=polls / 4.0,
            produced_ms=produced_ms,
            woken_ms=woken_ms,
            ping=probe.seen,
        )
        assert parked <= 26_000
        assert polls <= 4 * 2 + 2
        assert woken
        assert not probe.seen.failures
        assert probe.seen.stall_ms <= HANG_MS
