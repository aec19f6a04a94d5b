"""A connection with everything around it replaced, and a router that does what the test says."""

from collections.abc import Callable, Coroutine
from typing import Any

from broker.network.connection import Connection
from broker.network.connection_info import ConnectionInfo
from broker.network.iteration_end import IterationEnd
from broker.network.loop_resources import LoopResources
from broker.network.processor import Processor
from broker.network.receive_buffers import ReceiveBuffers
from broker.network.request_channel import RequestChannel
from broker.network.response import Pieces, ResponseMemory, ResponseSlot
from tests.fakes.clock import ManualClock
from tests.fakes.network.sockets import FakePoller, FakeStream

SHARED_SIZE = 4096


class ScriptedRouter:
    """Frames beginning with `W` need a worker, with `P` are parked; others are echoed at once."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.parked: list[tuple[bytes, ResponseSlot]] = []
        self.work: Callable[[bytes], Coroutine[Any, Any, Pieces | None]] | None = None

    def needs_worker(self, frame: memoryview) -> bool:
        return frame[0] == ord("W")

    def handle(self, connection: Connection, frame: memoryview) -> None:
        data = bytes(frame)
        self.seen.append(data)
        if data[:1] == b"P":
            self.parked.append((data, connection.open_slot()))
        else:
            connection.answer_now([b"<" + data + b">"])

    def start(
        self, connection: Connection, frame: memoryview, slot: ResponseSlot
    ) -> Coroutine[Any, Any, Pieces | None] | None:
        data = bytes(frame)
        assert self.needs_worker(frame)
        self.seen.append(data)
        assert self.work is not None
        return self.work(data)


class Harness:
    """One processor, one connection."""

    def __init__(
        self,
        *,
        limit: int = 1 << 40,
        capacity: int = 4,
        workers: int = 1,
        frame_max: int = 1 << 20,
        responses_max: int = 1 << 40,
        shared_size: int = SHARED_SIZE,
    ) -> None:
        self.clock = ManualClock()
        self.poller = FakePoller()
        self.buffers = ReceiveBuffers(limit)
        self.channel = RequestChannel(capacity=capacity, worker_count=workers, memory=self.buffers)
        self.responses = ResponseMemory(responses_max)
        self.router = ScriptedRouter()
        self.channel.connect(self.router)
        self.closed: list[str | None] = []
        self.warming: list[tuple[Connection, Any]] = []
        self.resources = LoopResources.of(
            self.poller,
            self.clock,
            buffers=self.buffers,
            responses=self.responses,
            iteration_end=IterationEnd(self._call_soon, self.clock),
            receive_buffer_size=shared_size,
        )
        self.processor = Processor(
            0,
            "PLAINTEXT",
            resources=self.resources,
            channel=self.channel,
            frame_size_max=frame_max,
            warm=lambda connection, slice_: self.warming.append((connection, slice_)),
            on_closed=lambda _connection, reason: self.closed.append(reason),
        )
        self.stream = FakeStream()
        self.connection = self.processor.add(self.stream, ConnectionInfo("PLAINTEXT", "127.0.0.1"))

    def _call_soon(self, callback: Callable[..., object]) -> None:
        """As the poller does now: a test may have replaced what it does."""
        self.poller.call_soon(callback)

    def receive(self, *chunks: bytes) -> None:
        """Let the peer send chunks, one readiness event each."""
        for chunk in chunks:
            self.stream.incoming.append(chunk)
            while self.stream.incoming and self.stream.fd in self.poller.readers:
                self.poller.readable(self.stream.fd)

    @property
    def reading(self) -> bool:
        return self.stream.fd in self.poller.readers


def frame(payload: bytes) -> bytes:
    """A payload (8 bytes or more) with its size before it."""
    return len(payload).to_bytes(4, "big") + payload
