"""The process's side of the conversation; what it does with logs is in `test_process_cleaner`."""

import queue
import socket
import threading

import pytest

from broker.cleaning.messages import decode, encode
from broker.cleaning.worker import Worker
from tests.fakes.filesystem import FakeFilesystem


@pytest.mark.parametrize("before", [b"", encode({"abort": True}), encode({"rate": 1e6})])
def test_it_leaves_when_the_broker_has_gone(before: bytes) -> None:
    """Whatever it was told last."""
    ours, theirs = socket.socketpair()
    left: queue.SimpleQueue[bool] = queue.SimpleQueue()
    worker = Worker(theirs, FakeFilesystem(), leave=lambda: left.put(True))
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    with ours:
        ours.sendall(before)
    assert left.get(timeout=10)
    thread.join(10)
    assert not thread.is_alive()
    theirs.close()


def test_a_job_that_cannot_be_done_is_told() -> None:
    """And the next one may come."""
    ours, theirs = socket.socketpair()
    worker = Worker(theirs, FakeFilesystem(), leave=lambda: None)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    job = {
        "directory": "/absent",
        "segments": [[0, 10], [5, 0]],
        "first_dirty_offset": 0,
        "first_uncleanable_offset": 5,
        "now_ms": 1,
        "segment_bytes": 100,
        "segment_index_bytes": 100,
        "index_interval_bytes": 100,
        "delete_retention_ms": 0,
        "last_records": [],
    }
    with ours, ours.makefile("rb") as lines:
        for _ in range(2):
            ours.sendall(encode({"do": job, "limits": [1024, 0.9, 1024, 0.0]}))
            (kind, _, path, errno) = decode(lines.readline())["failed"]
            assert (kind, errno) == ("disk", 2)
            assert path.startswith("/absent/")
        ours.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    theirs.close()
