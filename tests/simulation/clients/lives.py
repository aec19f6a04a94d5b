"""A client whose topic is deleted and made again under the same name, life after life.

    make ──> write ──> read ──> delete ──> make ...

Each life has a topic id, and all is asked by it: what was on its way to a former life cannot reach
the next one. What was acknowledged in a life is read in it, where it was said to be, and nothing of
another life. What was deleted stays deleted.
"""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.fakes.network.client import Read, RefusedError, read_of
from tests.simulation.clients.session import BACK_OFF_S, BROKEN_PROMISE, LOST, Session, within
from tests.simulation.world import Place, Violation

FLEETING: Final = "fleeting"
PLACE: Final = Place(FLEETING, 0)

PRODUCE_BY_ID: Final = 13
FETCH_BY_ID: Final = 13

BATCHES_MAX: Final = 8
TRIES_MAX: Final = 40
"""So often a batch is sent; then the life ends without it."""

GONE: Final = {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Life:
    """A topic from its making to its deletion.

    Attributes:
        acked: Offset and value of what was acknowledged.
        end: The offset behind the last of that.
        values: All that was sent, acknowledged or not.
    """

    def __init__(self, topic_id: UUID, number: int) -> None:
        self.topic_id = topic_id
        self.number = number
        self.acked: dict[int, bytes] = {}
        self.end = 0
        self.values: set[bytes] = set()
        self.sequence = 0
        self.leader = -1
        self.epoch = -1

    def __str__(self) -> str:
        return f"{FLEETING} {self.number} ({self.topic_id})"


class TopicLives:
    """See the module.

    Attributes:
        life: The topic as it should be there; None while it is made or deleted.
        dead: Ids of the topics whose deletion was asked for.
        deleted: Those of them whose deletion was confirmed.
    """

    def __init__(self, session: Session, pause_s: float, configs: dict[str, object]) -> None:
        self._session = session
        self._pause_s = pause_s
        self._configs = configs
        self._producer = (-1, -1)
        self.life: Life | None = None
        self.dead: set[UUID] = set()
        self.deleted: set[UUID] = set()

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            life = await self._make()
            if life is None:
                return
            self.life = life
            random = self._session.world.loop.random
            for _ in range(random.randint(1, BATCHES_MAX)):
                if not await self._write(life):
                    break
                await self._session.rest(self._pause_s)
            if random.random() < 0.5:
                await self._session.rest(4 * self._pause_s)
            await self.read(self._session, life, lambda: self._session.is_over)
            if not self._session.is_over:
                self.life = None
                await self._delete(life)

    # -- one step ----------------------------------------------------------------------------------

    async def _make(self) -> Life | None:
        """A new topic of the name; None: the session is over."""
        configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
            for key, value in self._configs.items()
        ]
        topic = CreatableTopic(
            name=FLEETING, num_partitions=1, replication_factor=-1, configs=configs
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=3_000)
        while not self._session.is_over:
            try:
                answer = await self._session.call(self._session.any_broker(), request)
                code = answer.topics[0].error_code
                if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    topic_id = answer.topics[0].topic_id
                    if code != ErrorCode.NONE:
                        topic_id = (await self._described(self._session)).topic_id
                    if topic_id.int and topic_id not in self.dead:
                        return Life(topic_id, len(self.dead))
            except LOST:
                pass
            await self._session.pause(BACK_OFF_S)
        return None

    async def _described(self, session: Session) -> Any:
        """The topic of the name as some broker has it.

        Raises:
            OSError, asyncio.IncompleteReadError, TimeoutError: No answer.
        """
        node_id = session.any_broker()
        try:
            client = await session.client(node_id)
            return (await within(client.metadata(FLEETING))).topics[0]
        except LOST:
            session.drop(node_id)
            raise

    async def _ask_leader(self, session: Session, life: Life, request: Any, version: int) -> Any:
        """The leader's answer; None: there is none, or nobody knows who leads."""
        try:
            if life.leader < 0:
                topic = await self._described(session)
                if topic.topic_id != life.topic_id or not topic.partitions:
                    return None
                (partition,) = topic.partitions
                if partition.leader_epoch < life.epoch or partition.leader_id < 0:
                    return None
                life.leader, life.epoch = partition.leader_id, partition.leader_epoch
            return await session.call(life.leader, request(), version)
        except LOST:
            life.leader = -1
            return None

    async def _write(self, life: Life) -> bool:
        """Write a batch; whether it was acknowledged."""
        session = self._session
        while self._producer[0] < 0 and not session.is_over:
            try:
                client = await session.client(node_id := session.any_broker())
                self._producer = await within(client.init_producer_id())
            except RefusedError:
                await session.pause(BACK_OFF_S)
            except LOST:
                session.drop(node_id)
                await session.pause(BACK_OFF_S)
        random = session.world.loop.random
        values = [
            f"life{life.number}-{life.sequence + at}".encode() for at in range(random.randint(1, 5))
        ]
        life.values.update(values)
        now_ms = session.world.now_ms()
        batch = build_batch(
            [(None, value, (), now_ms) for value in values],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=life.sequence,
        )

        def request() -> ProduceRequest:
            data = PartitionProduceData(index=0, records=bytearray(batch))
            topic = TopicProduceData(topic_id=life.topic_id, partition_data=[data])
            return ProduceRequest(acks=-1, timeout_ms=3_000, topic_data=[topic])

        for _ in range(TRIES_MAX):
            if session.is_over:
                return False
            answer = await self._ask_leader(session, life, request, PRODUCE_BY_ID)
            if answer is not None:
                partition = answer.responses[0].partition_responses[0]
                code = ErrorCode(partition.error_code)
                if code is ErrorCode.NONE:
                    life.sequence += len(values)
                    life.acked.update(enumerate(values, partition.base_offset))
                    life.end = max(life.end, partition.base_offset + len(values))
                    return True
                if code in BROKEN_PROMISE:
                    raise Violation(f"{life}: {code.name} for {values}")
                life.leader = -1
            await session.pause(BACK_OFF_S)
        # Whether it is there is not known: who goes on under its id could be out of order.
        self._producer = (-1, -1)
        return False

    async def read(self, session: Session, life: Life, is_over: Callable[[], bool]) -> None:
        """Read a life from its start up to what was acknowledged.

        Raises:
            Violation: Something of it is missing, or of another life is there.
        """
        position, found = 0, dict[int, bytes]()
        while position < life.end and not is_over():
            read = await self._fetch(session, life, position)
            if read is None:
                await session.pause(BACK_OFF_S)
                continue
            for record in read.records:
                if record.offset >= position:
                    found[record.offset] = record.value or b""
                    position = record.offset + 1
        foreign = [value for value in found.values() if value not in life.values]
        if foreign:
            raise Violation(f"I16 {life} has {foreign}, which was not written to it")
        for offset, value in life.acked.items():
            if offset < position and found.get(offset) != value:
                raise Violation(f"I16 {life}: at {offset} is {found.get(offset)!r}, not {value!r}")

    async def _fetch(self, session: Session, life: Life, position: int) -> Read | None:
        """The leader's answer; None: none yet."""

        def request() -> FetchRequest:
            wanted = FetchPartition(
                partition=0,
                current_leader_epoch=life.epoch,
                fetch_offset=position,
                partition_max_bytes=1 << 20,
            )
            topic = FetchTopic(topic_id=life.topic_id, partitions=[wanted])
            return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[topic])

        answer = await self._ask_leader(session, life, request, FETCH_BY_ID)
        if answer is None:
            return None
        read = read_of(answer)
        if read.error is ErrorCode.NONE:
            return read
        if read.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise Violation(f"I16 {life} lacks {position}; {life.end} was acknowledged")
        life.leader = -1
        return None

    async def _delete(self, life: Life) -> None:
        """Delete the topic, however often it takes."""
        self.dead.add(life.topic_id)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=None, topic_id=life.topic_id)], timeout_ms=3_000
        )
        # Also when the session is over: what is half deleted could not be judged.
        while True:
            try:
                answer = await self._session.call(self._session.any_broker(), request)
                code = answer.responses[0].error_code
                if code == ErrorCode.NONE or code in GONE:
                    self.deleted.add(life.topic_id)
                    return
            except LOST:
                pass
            await self._session.pause(BACK_OFF_S)
