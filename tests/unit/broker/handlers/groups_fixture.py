"""Group handlers on a coordinator over fakes; every answer goes through its version's codec."""

import asyncio
import inspect
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from uuid import UUID

from broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from broker.handlers import join_group, offset_commit, offset_fetch, sync_group
from broker.handlers.offset_commit import OffsetCommitHandler
from broker.network.connection_info import ConnectionInfo
from broker.network.response import ResponseSlot
from broker.requests.answer import Answer
from broker.requests.reply import PARKED, Reply
from broker.requests.request_context import RequestContext
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages import join_group as join_messages
from protocol.messages import offset_commit as commit_messages
from protocol.messages import offset_fetch as fetch_messages
from protocol.messages import sync_group as sync_messages
from storage.environment.randomness import SeededRandomness
from tests.fakes.answers import in_time
from tests.fakes.broker.offsets_partition import FakeController, FakeReplicaManager, topic_image
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.loop_turns import turns
from tests.fakes.timer import ManualTimer
from tests.unit.broker.network.harness import Harness

T, UNKNOWN = UUID(int=1), UUID(int=77)
IDS = {"t": T, "u": UUID(int=2), "nowhere": UNKNOWN}
NAMES = {topic_id: name for name, topic_id in IDS.items()}


class Answers:
    """A connection that keeps what is answered later."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.parked = 0
        self.info = ConnectionInfo("PLAINTEXT", "10.1.2.3")

    def answered(self, slot: ResponseSlot) -> None:
        self.sent.append(b"".join(slot.pieces or ()))

    def gather_answers(self) -> None:
        """Each is kept by itself."""

    def hold_back_polls(self) -> None:
        """There are none."""

    def admit_polls(self) -> None:
        """There are none."""


class Groups:
    """What handlers see of a broker with topics t (3 partitions) and u (1)."""

    def __init__(self, *, with_offsets_topic: bool = True) -> None:
        self.clock = ManualClock()
        self.timer = ManualTimer(self.clock)
        self.manager = FakeReplicaManager()
        topics = [topic_image("t", 1, 3), topic_image("u", 2, 1)]
        if with_offsets_topic:
            topics.append(topic_image(OFFSETS_TOPIC, 99, 1))
        self.controller = FakeController(*topics)
        self.coordinator = GroupCoordinator(
            BrokerConfig(),
            FakeEnvironment(timer=self.timer, randomness=SeededRandomness(3)),
            cast("Any", self.manager),
            cast("Any", self.controller),
        )
        self.connection = Harness().connection
        self.services = SimpleNamespace(groups=self.coordinator, controller=self.controller)

    async def start(self, *, elect: bool = True) -> None:
        await self.coordinator.start()
        if elect:
            self.coordinator.on_elected(0, 0)
            await turns(20)

    def send(self, handler: ModuleType, messages: ModuleType, request: Any, version: int) -> Any:
        """Encode, decode, handle; the answer as the client decodes it, or a future of it."""
        context = RequestContext(
            handler.API_KEY, version, 1, "app", ConnectionInfo("PLAINTEXT", "10.1.2.3")
        )
        encoded = messages.encode_request(request, version)
        if handler is offset_commit:
            return messages.decode_response(self.commit(context, encoded), version)
        decoded = messages.decode_request(encoded, version)
        answer = handler.handle(self.services, context, decoded)
        if isinstance(answer, Answer):
            answer = in_time(answer)
        if isinstance(answer, asyncio.Future):
            return self._decoded_later(answer, messages, version)
        return messages.decode_response(messages.encode_response(answer, version), version)

    def commit(self, context: RequestContext, body: bytes) -> bytes:
        """OffsetCommit; the body of its answer."""
        answers = Answers()
        handler = OffsetCommitHandler(
            cast("Any", self.services),
            lambda _connection, context: Reply(ResponseSlot(answers), context, lambda _: None),
        )
        frame = memoryview(b"head" + body)
        result = handler(self.connection, context, frame, 4)
        if isinstance(result, bytes):
            return result
        assert result is PARKED
        (answer,) = answers.sent
        return answer[9 if context.flexible_response else 8 :]

    async def _decoded_later(
        self, answer: "asyncio.Future[Any]", messages: ModuleType, version: int
    ) -> Any:
        response = await answer
        return messages.decode_response(messages.encode_response(response, version), version)


def versions(handler: ModuleType) -> range:
    """Served versions."""
    low, high = handler.VERSIONS
    return range(low, high + 1)


def join(groups: Groups, version: int, member_id: str = "") -> Any:
    return groups.send(
        join_group,
        join_messages,
        join_messages.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000 if version else -1,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[join_messages.JoinGroupRequestProtocol(name="range", metadata=b"m")],
        ),
        version,
    )


async def joined(groups: Groups, version: int) -> Any:
    answer = join(groups, version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = join(groups, version, answer.member_id)
    assert inspect.isawaitable(answer)
    waiting = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    groups.timer.advance(3_000)
    return await waiting


async def stable_member(groups: Groups) -> str:
    answer = groups.send(
        join_group,
        join_messages,
        join_messages.JoinGroupRequest(
            group_id="live",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[join_messages.JoinGroupRequestProtocol(name="range", metadata=b"meta")],
        ),
        3,
    )
    waiting = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    groups.timer.advance(3_000)
    member: str = (await waiting).member_id
    request = sync_messages.SyncGroupRequest(
        group_id="live",
        generation_id=1,
        member_id=member,
        assignments=[
            sync_messages.SyncGroupRequestAssignment(member_id=member, assignment=b"part")
        ],
    )
    assert groups.send(sync_group, sync_messages, request, 3).error_code == ErrorCode.NONE
    return member


def simple_group(groups: Groups) -> None:
    partition = commit_messages.OffsetCommitRequestPartition(committed_offset=5)
    topic = commit_messages.OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = commit_messages.OffsetCommitRequest(group_id="simple", topics=[topic])
    groups.send(offset_commit, commit_messages, request, 8)


def commit(
    groups: Groups, version: int, *partitions: tuple[str, int, int], group: str = "g"
) -> dict[tuple[str, int], int]:
    """Commit (topic, partition, offset); errors by topic and partition."""
    topics: dict[str, commit_messages.OffsetCommitRequestTopic] = {}
    for name, index, offset in partitions:
        topic = topics.setdefault(
            name,
            commit_messages.OffsetCommitRequestTopic(
                **({"topic_id": IDS[name]} if version >= 10 else {"name": name})
            ),
        )
        topic.partitions.append(
            commit_messages.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=4 if version >= 6 else -1,
                committed_metadata="note",
            )
        )
    request = commit_messages.OffsetCommitRequest(group_id=group, topics=list(topics.values()))
    answer = groups.send(offset_commit, commit_messages, request, version)
    return {
        (NAMES[topic.topic_id] if version >= 10 else topic.name, p.partition_index): p.error_code
        for topic in answer.topics
        for p in topic.partitions
    }


def fetch(
    groups: Groups,
    version: int,
    topics: dict[str, list[int]] | None,
    *,
    group: str = "g",
    stable: bool = False,
) -> tuple[int, dict[tuple[str, int], tuple[int, int, int]]]:
    """Error of the group; (offset, epoch, error) by topic and partition."""
    asked: list[Any] | None
    if version < 8:
        asked = None
        if topics is not None:
            asked = [
                fetch_messages.OffsetFetchRequestTopic(name=n, partition_indexes=p)
                for n, p in topics.items()
            ]
        request = fetch_messages.OffsetFetchRequest(group_id=group, topics=asked)
    else:
        asked = None
        if topics is not None:
            asked = [
                fetch_messages.OffsetFetchRequestTopics(
                    **({"topic_id": IDS[n]} if version >= 10 else {"name": n}),
                    partition_indexes=p,
                )
                for n, p in topics.items()
            ]
        request = fetch_messages.OffsetFetchRequest(
            groups=[fetch_messages.OffsetFetchRequestGroup(group_id=group, topics=asked)]
        )
    if stable:
        request.require_stable = True
    answer = groups.send(offset_fetch, fetch_messages, request, version)
    one = answer if version < 8 else answer.groups[0]
    return one.error_code, {
        (NAMES[topic.topic_id] if version >= 10 else topic.name, p.partition_index): (
            p.committed_offset,
            p.committed_leader_epoch,
            p.error_code,
        )
        for topic in one.topics
        for p in topic.partitions
    }
