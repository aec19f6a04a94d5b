"""The bounded queue between the network and the handlers; requests that need no worker pass it.

    Processor ──offer──> RequestChannel ──start──> KafkaApis (the router)
                            │ when all `num.io.threads` workers are taken by handlers that wait for
                            v a disk or for SQLite, requests that need one wait here
                          [ queue of at most queued.max.requests ] ──> next free worker

A handler that never waits (Produce, Fetch, Heartbeat …) is called in place, 3 us cheaper than any
hop; a request of a connection that already has one in the queue waits behind it, whatever it needs,
so that requests start in order. It takes its place in the order of answers when it starts. When the
queue is full, or requests hold `queued.max.request.bytes` in all, the request is refused: its
connection keeps it, and pauses reading its socket.

Source of the shape: Kafka, RequestChannel.scala and KafkaRequestHandlerPool.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, Protocol

from typing_extensions import override

from broker.network.connection import Channel, Connection
from broker.network.read_gate import PAUSED_BY_CHANNEL
from broker.network.receive_buffers import SMALL_SIZE_MAX, ReceiveBuffers
from broker.network.response import Pieces, ResponseSlot


class Router(Protocol):
    """Decodes and handles one frame: `broker.requests.kafka_apis.KafkaApis`."""

    def needs_worker(self, frame: memoryview) -> bool:
        """Whether the frame's handler may wait for a disk."""
        ...

    def handle(self, connection: Connection, frame: memoryview) -> None:
        """Handle a frame in place: it answers through the connection."""
        ...

    def start(
        self, connection: Connection, frame: memoryview, slot: ResponseSlot
    ) -> Coroutine[Any, Any, Pieces | None] | None:
        """Begin a frame that needs a worker; None when the slot is complete."""
        ...


class RequestChannel(Channel):
    """See the module."""

    __slots__ = (
        "_blocked",
        "_memory",
        "_queue",
        "_router",
        "_tasks",
        "_workers",
        "capacity",
        "queued_bytes",
        "refused",
        "stopped",
        "worker_count",
    )

    def __init__(self, *, capacity: int, worker_count: int, memory: ReceiveBuffers) -> None:
        self.capacity = capacity
        self._memory = memory
        self.worker_count = worker_count
        self.queued_bytes = 0
        self.refused = 0
        self.stopped = False
        self._router: Router | None = None
        self._queue: deque[tuple[Connection, bytearray]] = deque()
        self._blocked: list[Connection] = []
        self._workers = 0
        self._tasks: dict[asyncio.Task[None], None] = {}

    def connect(self, router: Router) -> None:
        """Set the router: requests are handled from now on."""
        self._router = router

    @property
    def queued(self) -> int:
        """Requests that wait for a worker."""
        return len(self._queue)

    @property
    def busy_workers(self) -> int:
        """Workers taken."""
        return self._workers

    def resize(self, worker_count: int) -> None:
        """Have more workers, or fewer: those that are taken beyond that end their requests."""
        self.worker_count = worker_count
        self._drain()

    @override
    def offer(self, connection: Connection, frame: memoryview) -> bool:
        """Take a whole frame (without its size), valid during the call only.

        Returns:
            False when the channel is full: the connection keeps the frame and is resumed later.
        """
        router = self._router
        assert router is not None
        if not connection.waiting_in_channel:
            if not router.needs_worker(frame):
                router.handle(connection, frame)
                return True
            if self._workers < self.worker_count:
                self._start(connection, frame)
                return True
        # One request is always taken, however large: it would never fit otherwise.
        if len(self._queue) >= self.capacity or (
            self._queue
            and len(frame) > SMALL_SIZE_MAX
            and self._memory.charged + len(frame) > self._memory.limit
        ):
            self.refused += 1
            self._blocked.append(connection)
            return False
        kept = bytearray(frame)
        self.queued_bytes += len(kept)
        self._memory.charged += len(kept)
        connection.waiting_in_channel += 1
        self._queue.append((connection, kept))
        return True

    def _start(self, connection: Connection, frame: memoryview) -> None:
        router = self._router
        assert router is not None
        slot = connection.open_slot()
        work = router.start(connection, frame, slot)
        if work is not None:
            self._workers += 1
            task = asyncio.get_running_loop().create_task(self._run(work, connection, slot))
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

    async def _run(
        self,
        work: Coroutine[Any, Any, Pieces | None],
        connection: Connection,
        slot: ResponseSlot,
    ) -> None:
        try:
            slot.complete(await work)
        except asyncio.CancelledError:
            slot.abandon()
            raise
        finally:
            self._workers -= 1
            self._drain()

    def _drain(self) -> None:
        """Give waiting requests to free workers, then let blocked connections read again."""
        queue = self._queue
        router = self._router
        assert router is not None
        while queue and self._workers < self.worker_count:
            connection, kept = queue.popleft()
            self.queued_bytes -= len(kept)
            self._memory.uncharge(len(kept))
            connection.waiting_in_channel -= 1
            if connection.closed:
                continue
            frame = memoryview(kept)
            if router.needs_worker(frame):
                self._start(connection, frame)
            else:
                router.handle(connection, frame)
        if self._blocked and len(queue) < self.capacity:
            blocked, self._blocked = self._blocked, []
            for connection in blocked:
                connection.resume(PAUSED_BY_CHANNEL)

    async def stop(self, timeout_s: float) -> None:
        """Let running handlers finish, then cancel what is left."""
        self.stopped = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        # One that ends may start the next that waits.
        while self._tasks and (left_s := deadline - loop.time()) > 0:
            await asyncio.wait(list(self._tasks), timeout=left_s)
        for connection, _ in self._queue:
            connection.waiting_in_channel = 0
        self._queue.clear()
        self._memory.uncharge(self.queued_bytes)
        self.queued_bytes = 0
        late = list(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
