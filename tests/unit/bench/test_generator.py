"""A load writes as much as it was told to, however the broker answers."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from bench import wire
from bench.generator import ProduceLoad, produce

BATCH = wire.record_batch([b"v" * 100])
WINDOW = 5


class Broker:
    """Takes Produce requests, and answers `at_once` of them in one piece."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self.taken = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        connection, _ = self.listener.accept()
        size = wire.ProduceResponseLayout.of("t").size
        waiting: list[int] = []
        connection.settimeout(0.05)
        with closing(connection):
            while True:
                try:
                    request = wire.receive(connection)
                except TimeoutError:
                    # Nothing more is on its way: what is left is answered too.
                    pass
                except (wire.WireError, OSError):
                    return
                else:
                    self.taken += 1
                    waiting.append(struct.unpack_from(">i", request, 4)[0])
                    if len(waiting) < self.at_once:
                        continue
                connection.sendall(
                    b"".join(
                        struct.pack(">ii", size - 4, number).ljust(size, b"\0")
                        for number in waiting
                    )
                )
                waiting.clear()

    def close(self) -> None:
        self.thread.join()
        self.listener.close()


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with closing(Broker(request.param)) as one:
        yield one


@pytest.mark.parametrize("broker", [1, 2, 3, 5], indirect=True, ids="{}-at-once".format)
@pytest.mark.parametrize("batches", [5, 6, 13])
def test_the_size_ends_it_exactly(broker: Broker, batches: int) -> None:
    size = batches * len(BATCH)
    load = ProduceLoad(broker.port, os.getpid(), "t", (0,), BATCH, WINDOW, 60.0, size)
    result = produce(load)
    assert result.requests == batches
    assert result.size_bytes == size
    broker.thread.join()
    assert broker.taken == batches


def test_each_connection_goes_to_its_own_broker() -> None:
    """Where several brokers lead the partitions of a topic."""
    with closing(Broker(1)) as first, closing(Broker(1)) as second:
        ports = (first.port, second.port)
        size = 2 * WINDOW * len(BATCH)
        load = ProduceLoad(
            first.port, os.getpid(), "t", (0, 1), BATCH, WINDOW, 60.0, size, ports=ports
        )
        assert produce(load).requests == first.taken + second.taken
    assert first.taken >= WINDOW
    assert second.taken >= WINDOW
