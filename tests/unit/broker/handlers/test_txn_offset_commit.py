"""TxnOffsetCommit on a real offsets log: pending, decided, read back, refused."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from broker.handlers import txn_offset_commit
from broker.requests.answer import Answer
from broker.transactions.partitions.markers import LocalMarkerWriter
from config.broker import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages import txn_offset_commit as messages
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from storage.environment.randomness import SeededRandomness
from storage.errors import DiskError
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker
from tests.code_path import python_only
from tests.fakes.answers import in_time
from tests.fakes.broker.controller import context_of
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.fakes.environment import FakeEnvironment
from tests.unit.broker.world import World

PID = 7
OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
VERSIONS = range(6)


class Transactions:
    """A group coordinator over a log on disk, and producers that commit offsets."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.partition = world.add(OFFSETS_TOPIC, requires_verification=True)
        self.controller = FakeController(topic_image("t", 1, 3), topic_image(OFFSETS_TOPIC, 99, 1))
        self.settings = BrokerConfig()
        self.groups = self.new_coordinator()

    def new_coordinator(self) -> GroupCoordinator:
        world = self.world
        return GroupCoordinator(
            self.settings,
            FakeEnvironment(timer=world.timer, randomness=SeededRandomness(3)),
            world.replicas,
            cast("Any", self.controller),
        )

    async def start(self) -> None:
        await self.groups.start()
        self.groups.on_elected(0, 0)
        await self.world.until(
            lambda: self.groups.fetch_offsets("g", [], require_stable=False)[0] is ErrorCode.NONE
        )

    async def restart(self) -> None:
        """A new coordinator, from the log."""
        await self.groups.stop()
        self.groups = self.new_coordinator()
        await self.start()

    def commit(
        self,
        offset: int = 5,
        *,
        version: int = 5,
        partitions: tuple[int, ...] = (0,),
        topic: str = "t",
        epoch: int = 0,
        **options: Any,
    ) -> Any:
        request = TxnOffsetCommitRequest(
            **{"transactional_id": "tx", "group_id": "g", **options},
            producer_id=PID,
            producer_epoch=epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata="m"
                        )
                        for index in partitions
                    ],
                )
            ],
        )
        return self.send(request, version)

    def send(self, request: TxnOffsetCommitRequest, version: int) -> Any:
        decoded = messages.decode_request(messages.encode_request(request, version), version)
        services: Any = SimpleNamespace(
            groups=self.groups,
            controller=self.controller,
            replica_manager=self.world.replicas,
            registrar=self.world.registrar,
            clock=self.world.clock,
        )
        context = context_of(ApiKey.TXN_OFFSET_COMMIT, version)
        answer = txn_offset_commit.handle(services, context, decoded)
        if isinstance(answer, Answer):
            return in_time(answer)
        return messages.decode_response(messages.encode_response(answer, version), version)

    def end(self, *, commit: bool, epoch: int = 1, version: int = 2) -> ErrorCode:
        found: list[Any] = []
        LocalMarkerWriter(self.world.replicas, self.groups).write(
            TransactionMarker(PID, epoch, commit, 0, version), [OFFSETS], found.append
        )
        return ErrorCode(found[0][OFFSETS])

    def fetched(self, partition: int = 0) -> int | ErrorCode:
        """What a consumer that must not read undecided offsets gets."""
        code, topics = self.groups.fetch_offsets(
            "g", [("t", UUID(int=0), [partition])], require_stable=True
        )
        assert code is ErrorCode.NONE
        ((found,),) = topics
        return found.error if found.error is not ErrorCode.NONE else found.offset


@pytest.fixture
async def tx(world: World) -> AsyncIterator[Transactions]:
    transactions = Transactions(world)
    await transactions.start()
    yield transactions
    await transactions.groups.stop()


def codes(answer: Any) -> list[ErrorCode]:
    return [ErrorCode(one.error_code) for topic in answer.topics for one in topic.partitions]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("commit", [False, True])
async def test_offsets_count_once_the_marker_is_there(
    tx: Transactions, version: int, commit: bool
) -> None:
    """Until then nobody may rely on what is committed for the partition."""
    assert codes(tx.commit(version=version)) == [ErrorCode.NONE]
    (question,) = tx.world.registrar.asked
    assert question[:4] == ("tx", (PID, 0), (OFFSETS,), version == 5)
    assert tx.fetched() is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert tx.fetched(1) == -1
    log = tx.partition.log
    assert (log.last_stable_offset, log.high_watermark) == (0, 1)
    assert tx.end(commit=commit) is ErrorCode.NONE
    assert tx.fetched() == (5 if commit else -1)
    assert log.last_stable_offset == log.high_watermark == 2


@pytest.mark.parametrize("commit", [False, True])
async def test_what_is_undecided_is_read_back(tx: Transactions, commit: bool) -> None:
    """And what is decided, which a later plain commit overrules."""
    tx.commit(5)
    await tx.restart()
    assert tx.fetched() is ErrorCode.UNSTABLE_OFFSET_COMMIT
    tx.end(commit=commit)
    assert tx.fetched() == (5 if commit else -1)
    await tx.restart()
    assert tx.fetched() == (5 if commit else -1)


async def test_offsets_are_of_the_topic_that_there_is(tx: Transactions) -> None:
    """Not of one that is created under its name later."""
    assert codes(tx.commit()) == [ErrorCode.NONE]
    assert tx.end(commit=True) is ErrorCode.NONE
    for topic_id, offset in ((1, 5), (3, -1)):
        _, topics = tx.groups.fetch_offsets(
            "g", [("t", UUID(int=topic_id), [0])], require_stable=True
        )
        assert [one.offset for one in topics[0]] == [offset]


async def test_the_next_transaction(tx: Transactions) -> None:
    """Has its own epoch and is verified by itself; the last offset counts."""
    tx.commit(5)
    tx.commit(6)
    assert len(tx.world.registrar.asked) == 1
    tx.end(commit=True)
    tx.commit(7, epoch=1)
    assert len(tx.world.registrar.asked) == 2
    tx.end(commit=False, epoch=2)
    assert tx.fetched() == 6


async def test_a_marker_overtakes_the_commit(tx: Transactions) -> None:
    """The coordinator's yes came too late: offsets that nobody would decide are not written."""
    tx.world.registrar.hold = True
    answer = tx.commit(version=4)
    tx.end(commit=False, epoch=0, version=0)
    tx.world.registrar.answer_oldest()
    assert codes(await answer) == [ErrorCode.INVALID_TXN_STATE]
    assert tx.fetched() == -1
    assert codes(tx.commit(epoch=-1)) == [ErrorCode.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        (3, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (5, ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (5, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
async def test_refusals_of_the_coordinator(
    tx: Transactions, version: int, code: ErrorCode, told: ErrorCode
) -> None:
    """By what the version understands; nothing waits afterwards."""
    tx.world.registrar.code = code
    assert codes(tx.commit(version=version, partitions=(0, 1))) == [told, told]
    assert tx.fetched() == -1
    assert tx.partition.log.log_end_offset == 0


async def test_partitions_that_do_not_exist(tx: Transactions) -> None:
    """The others are committed; without any nobody is asked."""
    assert codes(tx.commit(partitions=(7, 0, -1))) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert tx.fetched() is ErrorCode.UNSTABLE_OFFSET_COMMIT
    tx.world.registrar.asked.clear()
    assert codes(tx.commit(topic="nowhere")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert tx.world.registrar.asked == []


async def test_members_commit_under_their_generation(tx: Transactions) -> None:
    """Of a group that does not exist, or that has members, nobody else does (KIP-447)."""
    assert codes(tx.commit(generation_id=3, member_id="m")) == [ErrorCode.ILLEGAL_GENERATION]
    assert codes(tx.commit()) == [ErrorCode.NONE]
    group = tx.groups.find_group("g")[1]
    assert group is not None
    cast("Any", group).state = ClassicGroupState.STABLE
    assert codes(tx.commit(generation_id=0, member_id="m")) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert codes(tx.commit(group_instance_id="i")) == [ErrorCode.UNKNOWN_MEMBER_ID]
    # A producer that says nothing of its consumer is not checked.
    assert codes(tx.commit()) == [ErrorCode.NONE]


async def test_metadata_that_is_too_large(tx: Transactions) -> None:
    """That partition only; none at all writes nothing."""
    limit = tx.settings.offset_metadata_max_bytes
    sizes = {0: "x" * (limit + 1), 1: "x" * limit, 2: "\N{GRINNING FACE}" * (limit // 2 + 1)}
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=PID,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=1, committed_metadata=metadata
                    )
                    for index, metadata in sizes.items()
                ],
            )
        ],
    )
    large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert codes(tx.send(request, 5)) == [large, ErrorCode.NONE, large]
    assert tx.partition.log.log_end_offset == 1
    del request.topics[0].partitions[1]
    assert codes(tx.send(request, 5)) == [large, large]
    assert tx.partition.log.log_end_offset == 1


@pytest.mark.parametrize("group_id", ["", "x" * 9_000])
async def test_bad_group_ids(tx: Transactions, group_id: str) -> None:
    """They cannot be recorded."""
    assert codes(tx.commit(group_id=group_id)) == [ErrorCode.INVALID_GROUP_ID]


async def test_a_coordinator_that_is_elsewhere_or_loading(tx: Transactions) -> None:
    """Both are worth another look."""
    tx.groups.on_resigned(0)
    assert codes(tx.commit()) == [ErrorCode.NOT_COORDINATOR]
    tx.groups.on_elected(0, 0)
    assert codes(tx.commit()) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert codes(tx.commit(version=1)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert tx.end(commit=True) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@python_only
async def test_a_disk_that_refuses(tx: Transactions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is offline: what it says is not known, as after any other write."""

    def fail(*_args: object, **_options: object) -> None:
        raise DiskError("write", "/d", 5)

    monkeypatch.setattr(type(tx.partition.log.writer), "append_as_leader", fail)
    assert codes(tx.commit()) == [ErrorCode.NOT_COORDINATOR]
    assert tx.groups.fetch_offsets("g", [], require_stable=True)[0] is ErrorCode.NOT_COORDINATOR
