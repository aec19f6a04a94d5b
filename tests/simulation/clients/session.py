"""Clients of a simulated cluster: producers and consumers that go on whatever happens."""

import asyncio
from collections.abc import Awaitable
from itertools import count
from typing import Any, Final, TypeVar

from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.builder import build_batch
from tests.fakes.network.client import Client, RefusedError, produce_request, read_of
from tests.simulation.brokers import PORT
from tests.simulation.clients.history import History
from tests.simulation.clients.streams import open_client
from tests.simulation.loop import Process
from tests.simulation.world import Place, Violation, World

T = TypeVar("T")

TOPIC: Final = "orders"
"""What most clients write to and read from."""

ANSWER_S: Final = 5.0
CONNECT_S: Final = 1.0
BACK_OFF_S: Final = 0.3

LOST: Final = (OSError, asyncio.IncompleteReadError, TimeoutError)
"""How a call fails whose answer does not come."""

BROKEN_PROMISE: Final = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}
"""Answers to a batch repeated by an idempotent producer that say that earlier ones are lost."""


async def within(work: Awaitable[T], more_s: float = 0.0) -> T:
    """Wait for an answer, but not for ever."""
    async with asyncio.timeout(ANSWER_S + more_s):
        return await work


class Session:
    """A client's process and its connections, one to a broker.

    Attributes:
        is_over: The run ends: nothing new is begun.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.process = Process(name)
        self.is_over = False
        self._network = world.network.host(name, self.process)
        self._clients: dict[int, Client] = {}
        self._leaders: dict[Place, int] = {}
        self._epochs: dict[Place, int] = {}

    def begin(self, work: Any) -> "asyncio.Task[None]":
        """Run the client's work."""
        return self.world.loop.spawn(self.process, self._guard(work))

    async def _guard(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Violation as violation:
            self.world.problems.append(f"{self.name}: {violation}")

    async def pause(self, duration_s: float) -> None:
        """Wait for up to so long."""
        await asyncio.sleep(self.world.loop.random.random() * duration_s)

    async def rest(self, duration_s: float) -> None:
        """Wait between two pieces of work, for up to so long; longer in quiet time."""
        await self.world.pace.pause(self.world.loop.random.random(), duration_s)

    async def client(self, node_id: int) -> Client:
        """A connection to a broker.

        Raises:
            OSError, asyncio.IncompleteReadError: There is none.
        """
        client = self._clients.get(node_id)
        if client is None:
            host = self.world.brokers[node_id].host
            async with asyncio.timeout(ANSWER_S):
                client = await open_client(self._network, host, PORT, timeout_s=CONNECT_S)
            self._clients[node_id] = client
        return client

    def drop(self, node_id: int) -> None:
        """Forget a connection, and where partitions are led."""
        client = self._clients.pop(node_id, None)
        if client is not None:
            client._writer.close()
        self._leaders.clear()

    def forget_leaders(self) -> None:
        """Ask again who leads."""
        self._leaders.clear()

    def epoch(self, place: Place) -> int:
        """The newest leader epoch heard of, -1: none."""
        return self._epochs.get(place, -1)

    def believe(self, place: Place, node_id: int) -> None:
        """Take a broker for the leader until it refuses."""
        self._leaders[place] = node_id

    def fetch_of(
        self, place: Place, offset: int, max_wait_ms: int, isolation_level: int = 0
    ) -> FetchRequest:
        """A fetch of one partition, with the leader epoch that is known (KIP-320).

        Without it a broker that has become a follower would answer from its own log (KIP-392).
        """
        wanted = FetchPartition(
            partition=place.partition,
            current_leader_epoch=self.epoch(place),
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
        )
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=isolation_level,
            topics=[FetchTopic(topic=place.topic, partitions=[wanted])],
        )

    def known_leader(self, place: Place) -> int:
        """The leader last heard of, -1: none."""
        return self._leaders.get(place, -1)

    def any_broker(self) -> int:
        """Some broker."""
        return self.world.loop.random.choice(list(self.world.brokers))

    async def leader(self, place: Place) -> int:
        """The leader as a broker names it; asked again after `drop`.

        Raises:
            OSError: Nobody says.
        """
        if place not in self._leaders:
            node_id = self.any_broker()
            try:
                client = await self.client(node_id)
                answer = await within(client.metadata(place.topic))
            except LOST:
                self.drop(node_id)
                raise
            for partition in answer.topics[0].partitions:
                # As in Kafka's clients: what is older than what was heard before is not believed.
                if (
                    partition.partition_index == place.partition
                    and partition.leader_id >= 0
                    and partition.leader_epoch >= self.epoch(place)
                ):
                    self._leaders[place] = partition.leader_id
                    self._epochs[place] = partition.leader_epoch
        if place not in self._leaders:
            raise ConnectionError(f"no leader of {place}")
        return self._leaders[place]

    async def call(self, node_id: int, request: Any, version: int | None = None) -> Any:
        """Any request; a broker that does not answer is left.

        Args:
            node_id: Of the broker.
            request: Of any API.
            version: None: the newest that names topics by name.

        Raises:
            OSError, asyncio.IncompleteReadError, TimeoutError: No answer.
        """
        try:
            client = await self.client(node_id)
            return await within(client.send(request, version))
        except LOST:
            self.drop(node_id)
            raise


async def create_topic(session: Session, name: str, partitions: int, **configs: object) -> None:
    """Create a topic, however often it takes."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
            for key, value in configs.items()
        ],
    )
    while True:
        try:
            answer = await session.call(
                session.any_broker(), CreateTopicsRequest(topics=[topic], timeout_ms=3000)
            )
        except LOST:
            await session.pause(BACK_OFF_S)
            continue
        code = answer.topics[0].error_code
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        await session.pause(BACK_OFF_S)


class Producer:
    """Writes to one partition, one batch after the other.

    With acks=all it is idempotent, and repeats a batch until it is acknowledged; with acks=1 a
    batch is sent once.
    """

    def __init__(
        self, session: Session, history: History, place: Place, *, acks: int, pause_s: float
    ) -> None:
        self._session = session
        self._history = history
        self._place = place
        self._acks = acks
        self._pause_s = pause_s
        self._producer = (-1, -1)
        self._numbers = count()
        self._sequence = 0

    async def run(self) -> None:
        """Until the session is over."""
        random = self._session.world.loop.random
        while not self._session.is_over:
            await self.write(random.randint(1, 5))
            await self._session.rest(self._pause_s)

    async def _begin(self) -> None:
        while self._producer[0] < 0:
            try:
                client = await self._session.client(node_id := self._session.any_broker())
                self._producer = await within(client.init_producer_id())
            except RefusedError:
                await self._session.pause(BACK_OFF_S)
            except LOST:
                self._session.drop(node_id)
                await self._session.pause(BACK_OFF_S)

    async def write(self, records: int) -> None:
        """Write a batch of so many records, which are numbered."""
        if self._acks < 0:
            await self._begin()
        values = [f"{self._session.name}-{next(self._numbers)}".encode() for _ in range(records)]
        now_ms = self._session.world.now_ms()
        batch = build_batch(
            [(None, value, (), now_ms) for value in values],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequence if self._acks < 0 else -1,
        )
        self._history.sent[self._session.name] += values
        if self._acks < 0:
            self._history.written_ms.update(dict.fromkeys(values, now_ms))
        self._sequence += len(values)
        if self._acks < 0:
            await self._until_acked(batch, values)
        else:
            await self._once(batch, values)

    async def _until_acked(self, batch: bytearray, values: list[bytes]) -> None:
        while not self._session.is_over:
            answer = await self._send(batch)
            if answer is None:
                await self._session.pause(BACK_OFF_S)
                continue
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.NONE:
                self._history.ack(self._place, answer.base_offset, values)
                return
            if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                self._history.ack(self._place, -1, values)
                return
            if code in BROKEN_PROMISE:
                raise Violation(f"{self._place}: {code.name} for a batch sent again: {values}")
            await self._session.pause(BACK_OFF_S)

    async def _once(self, batch: bytearray, values: list[bytes]) -> None:
        answer = await self._send(batch)
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self._history.lone_acks += len(values)

    async def _send(self, batch: bytearray) -> Any:
        """The partition's part of the answer; None: there is none, or no leader."""
        request = produce_request(*self._place, bytearray(batch), acks=self._acks, timeout_ms=3000)
        try:
            leader = await self._session.leader(self._place)
            answer = await self._session.call(leader, request)
        except LOST:
            return None
        partition = answer.responses[0].partition_responses[0]
        if partition.error_code:
            self._session.forget_leaders()
        return partition


class Consumer:
    """Reads one partition from its start, again and again the next records."""

    def __init__(self, session: Session, history: History, place: Place) -> None:
        self._session = session
        self.history = history
        self._place = place
        self.position = 0

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            if not await self.read():
                await self._session.pause(BACK_OFF_S)

    async def read(self, *, max_wait_ms: int | None = None) -> bool:
        """Fetch once; whether the leader answered."""
        if max_wait_ms is None:
            max_wait_ms = self._session.world.pace.poll_ms
        try:
            leader = await self._session.leader(self._place)
            client = await self._session.client(leader)
            request = self._session.fetch_of(self._place, self.position, max_wait_ms)
            read = read_of(await within(client.send(request), max_wait_ms / 1000))
        except LOST:
            self._session.drop(self._session.known_leader(self._place))
            return False
        if read.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            start = self._session.world.log_start(self._place)
            if self.position >= start:
                raise Violation(f"{self._place} ends before {self.position}, which was committed")
            # Expired since it was named, or since the last read.
            self.position = start
            return True
        if read.error is not ErrorCode.NONE:
            self._session.forget_leaders()
            return False
        for record in read.records:
            if record.offset >= self.position:
                # Only markers of transactions have keys here.
                if record.key is None:
                    self.history.saw(self._place, record.offset, record.value or b"")
                self.position = record.offset + 1
        return True


class HistoryReader(Consumer):
    """Reads one partition from its start up to its end, again and again."""

    def __init__(self, session: Session, history: History, place: Place, pause_s: float) -> None:
        super().__init__(session, history, place)
        self._pause_s = pause_s

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            before = self.position
            if not await self.read():
                await self._session.pause(BACK_OFF_S)
            elif self.position == before:
                await self._session.rest(4 * self._pause_s)
                self.position = 0
