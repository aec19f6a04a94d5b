"""A whole broker in this process: real handlers, real storage, a real loop; only sockets are fake.

Every frame is fed through a `Connection` as if it had been received, so what is counted here went
the way a frame from a socket goes. How long the loop was away is taken after every frame.
"""

import asyncio
import contextlib
import logging
import os
import struct
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from typing_extensions import override

from broker.broker import Broker
from broker.network.connection import Connection
from broker.network.connection_info import ConnectionInfo
from broker.network.iteration_end import IterationEnd
from broker.network.loop_resources import LoopResources
from broker.network.processor import Processor
from broker.network.request_channel import Router
from broker.network.response import Pieces, ResponseMemory, ResponseSlot
from config.load import load
from protocol.api_keys import ApiKey
from protocol.errors import DecodeError
from protocol.headers import decode_response_header
from protocol.messages import module_of
from tests.fakes.network.sockets import FakePoller, FakeStream
from tests.system.hostile.frames import SERVED, TOPICS
from tests.system.hostile.probe import RunDelay

UNANSWERED_MAX = 64
TOPICS_MAX = 100

TOPIC_SETTINGS: dict[str, dict[str, str]] = {
    "compacted": {"cleanup.policy": "compact"},
    "walked": {"record.validation": "full", "message.timestamp.type": "LogAppendTime"},
    "packed": {"compression.type": "zstd", "max.message.bytes": "2000"},
}


class Complaints(logging.Handler):
    """Collects what the broker must never say: tracebacks and errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []
        self.warnings: Counter[str] = Counter()

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.found.append(logging.Formatter().format(record))
        else:
            self.warnings[record.msg] += 1


class CountingRouter:
    """Stands before the real router and counts the frames that reach it, by API and version."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self.handled = 0
        self.kinds: Counter[tuple[int, int]] = Counter()

    def needs_worker(self, frame: memoryview) -> bool:
        return self._router.needs_worker(frame)

    def _count(self, frame: memoryview) -> None:
        self.handled += 1
        self.kinds[struct.unpack_from(">hh", frame)] += 1

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self._count(frame)
        self._router.handle(connection, frame)

    def start(
        self, connection: Connection, frame: memoryview, slot: ResponseSlot
    ) -> Coroutine[Any, Any, Pieces | None] | None:
        self._count(frame)
        return self._router.start(connection, frame, slot)


class Stall:
    """One time the loop was away: how long, and for which frame."""

    def __init__(self, ms: float, frame: bytes, where: str) -> None:
        self.ms = ms
        self.frame = frame
        self.where = where

    def __str__(self) -> str:
        key, version = struct.unpack_from(">hh", self.frame)
        return f"{self.ms:.1f} ms in {self.where}, api {key} v{version}: {self.frame[:200].hex()}"


class World:
    """See the module."""

    def __init__(self, broker: Broker, complaints: Complaints) -> None:
        assert broker.network is not None
        assert broker.apis is not None
        self.broker = broker
        self.complaints = complaints
        self.router = CountingRouter(broker.apis)
        broker.network.channel.connect(self.router)
        self.fed = 0
        self.closed: Counter[bool] = Counter()
        self.answers = 0
        self.undecodable: list[str] = []
        self.longest = Stall(0.0, bytes(8), "nothing")
        self.report_above_ms = 50.0
        self.stalls: list[Stall] = []
        self._delay = RunDelay(os.getpid())
        self._starved = self._began = 0.0
        self._poller = FakePoller()
        self._processor = Processor(
            0,
            "PLAINTEXT",
            resources=LoopResources.of(
                self._poller,
                broker.local.clock,
                buffers=broker.network.buffers,
                responses=ResponseMemory(1 << 40),
                iteration_end=IterationEnd(self._poller.call_soon, broker.local.clock),
            ),
            channel=broker.network.channel,
            frame_size_max=100 * 1024 * 1024,
            warm=lambda connection, _slice: connection.warmed(),
            on_closed=lambda _connection, reason: self.closed.update([reason is not None]),
        )
        # Correlation ids are the client's: several frames may have the same.
        self._asked: dict[int, list[tuple[int, int]]] = {}
        self._connect()

    def close(self) -> None:
        """Let go of what is the test's own."""
        self._delay.close()

    def _connect(self) -> None:
        self.stream = FakeStream()
        self._asked = {}
        self.connection = self._processor.add(self.stream, ConnectionInfo("PLAINTEXT", "stranger"))

    async def feed(self, frame: bytes) -> None:
        """Let one frame arrive; afterwards the loop has had a turn."""
        self.fed += 1
        if self.connection.closed or self.connection.unanswered > UNANSWERED_MAX:
            self.connection.close(None)
            self._connect()
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        self._asked.setdefault(correlation_id, []).append((key, version))
        self.stream.incoming.append(len(frame).to_bytes(4, "big") + frame)
        while self.stream.incoming and not self.connection.closed:
            if self.stream.fd in self._poller.readers:
                self._begin()
                self._poller.readable(self.stream.fd)
                self._end(frame, "handling")
            else:
                await self._turn(frame)
        await self._turn(frame)
        if self.stream.sent:
            self._read_answers()

    async def settle(self) -> None:
        """Let every request that waits for a worker start."""
        assert self.broker.network is not None
        while self.broker.network.channel.queued:  # noqa: ASYNC110  because there is no event for it
            await asyncio.sleep(0)

    async def _turn(self, frame: bytes) -> None:
        """Give everybody else one turn of the loop."""
        self._begin()
        await asyncio.sleep(0)
        self._end(frame, "the turn after")

    def _begin(self) -> None:
        self._starved = self._delay.ms()
        self._began = time.perf_counter()

    def _end(self, frame: bytes, where: str) -> None:
        away = (time.perf_counter() - self._began) * 1000
        if away > self.longest.ms or away > self.report_above_ms:
            away -= self._delay.ms() - self._starved
            if away > self.longest.ms:
                self.longest = Stall(away, frame, where)
            if away > self.report_above_ms:
                self.stalls.append(Stall(away, frame, where))

    def _read_answers(self) -> None:
        sent = self.stream.sent
        at = 0
        while at + 8 <= len(sent):
            size, correlation_id = struct.unpack_from(">ii", sent, at)
            if at + 4 + size > len(sent):
                break
            data = memoryview(bytes(sent[at + 4 : at + 4 + size]))
            at += 4 + size
            self.answers += 1
            asked = self._asked.get(correlation_id)
            if not asked:
                self.undecodable.append(f"answer {correlation_id} to nobody's question")
                continue
            # A Produce with acks=0 has no answer: one of the same id must fit, the oldest first.
            problems = []
            while asked:
                problem = self._decode(data, *asked.pop(0))
                if problem is None:
                    break
                problems.append(problem)
            else:
                self.undecodable += problems
        del sent[:at]

    def _decode(self, data: memoryview, key: int, version: int) -> str | None:
        """What is wrong with an answer; None when nothing is."""
        low, high = SERVED.get(key, (0, 0))
        if key == ApiKey.API_VERSIONS and not low <= version <= high:
            version = 0
        try:
            _, position = decode_response_header(data, key, version)
            module_of(ApiKey(key)).decode_response(data[position:], version)
        except (DecodeError, ValueError) as error:
            return f"api {key} v{version}: {error}: {bytes(data[:100]).hex()}"
        return None

    async def tidy(self) -> None:
        """Bring back topics the frames have deleted, and remove those they have made."""
        controller = self.broker.controller
        assert controller is not None
        made = [name for name in controller.image.topics if name not in TOPICS]
        if len(made) > TOPICS_MAX:
            await delete_topics(self, made)
        await create_topics(self)

    def topic_ids(self) -> list[UUID]:
        """Ids of the topics that exist."""
        assert self.broker.controller is not None
        return [topic.topic_id for topic in self.broker.controller.image.topics.values()]

    async def run(self, frames: Iterable[bytes], count: int) -> None:
        """Feed `count` frames."""
        for done, frame in enumerate(frames, 1):
            await self.feed(frame)
            if done % 5000 == 0:
                await self.tidy()
            if done >= count:
                break

    def assert_well(self) -> None:
        """No traceback, no error, no answer that makes no sense."""
        assert not self.complaints.found, self.complaints.found[0]
        assert not self.undecodable, self.undecodable[0]


async def ask(world: World, key: ApiKey, version: int, request: Any) -> Any:
    """A well-behaved client's request and its answer."""
    from protocol.headers import encode_request_header

    module = module_of(key)
    stream = FakeStream(fd=200)
    connection = world._processor.add(stream, ConnectionInfo("PLAINTEXT", "friend"))
    frame = encode_request_header(key, version, 1, "friend") + module.encode_request(
        request, version
    )
    stream.incoming.append(len(frame).to_bytes(4, "big") + frame)
    while stream.incoming:
        if stream.fd in world._poller.readers:
            world._poller.readable(stream.fd)
        await asyncio.sleep(0.001)
    deadline = time.monotonic() + 30
    while not stream.sent:
        assert time.monotonic() < deadline, f"no answer to {key.name}"
        assert not connection.closed
        await asyncio.sleep(0.001)
    data = memoryview(bytes(stream.sent))[4:]
    connection.close(None)
    _, position = decode_response_header(data, key, version)
    return module.decode_response(data[position:], version)


async def create_topics(world: World) -> None:
    """Create what of `TOPICS` does not exist."""
    from protocol.messages import create_topics as api

    assert world.broker.controller is not None
    topics = [
        api.CreatableTopic(
            name=name,
            num_partitions=2,
            replication_factor=1,
            configs=[
                api.CreatableTopicConfig(name=key, value=value)
                for key, value in TOPIC_SETTINGS.get(name, {}).items()
            ],
        )
        for name in TOPICS
        if name not in world.broker.controller.image.topics
    ]
    if topics:
        request = api.CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        response = await ask(world, ApiKey.CREATE_TOPICS, 5, request)
        failed = [t for t in response.topics if t.error_code not in (0, 36)]
        assert not failed, failed


async def delete_topics(world: World, names: list[str]) -> None:
    """Delete topics."""
    from protocol.messages import delete_topics as api

    request = api.DeleteTopicsRequest(topic_names=names, timeout_ms=10_000)
    await ask(world, ApiKey.DELETE_TOPICS, 5, request)


@contextlib.asynccontextmanager
async def open_world(directory: Path, **properties: str) -> AsyncIterator[World]:
    """Start the broker, let the test play, stop it; it must stop cleanly."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dirs": str(directory),
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        "log.segment.delete.delay.ms": "0",
        **{key.replace("_", "."): value for key, value in properties.items()},
    }
    loaded = load(assignments=[f"{key}={value}" for key, value in settings.items()])
    complaints = Complaints()
    root = logging.getLogger()
    root.addHandler(complaints)
    loop = asyncio.get_running_loop()

    def lost(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        complaints.found.append(f"lost exception: {context}")

    loop.set_exception_handler(lost)
    interval = sys.getswitchinterval()
    # As `broker.app` does.
    sys.setswitchinterval(0.001)
    broker = Broker(loaded.broker)
    world: World | None = None
    try:
        await broker.start()
        world = World(broker, complaints)
        await create_topics(world)
        yield world
    finally:
        await broker.stop()
        if world is not None:
            world.close()
        sys.setswitchinterval(interval)
        root.removeHandler(complaints)
