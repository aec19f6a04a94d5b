"""The coordinator as a whole: shards that come and go, and what handlers are told meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from broker.coordinator.shard_log import AtIterationEnd
from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from broker.groups.offsets.transactional import TransactionalOffsetCommit
from broker.network.connection_info import ConnectionInfo
from broker.requests.answer import Answer
from broker.requests.request_context import RequestContext
from config.broker import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.hot.offset_commit import CommittedPartition, CommittedTopic, OffsetCommitRequest
from protocol.internal.consumer_offsets import NO_TOPIC_ID
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.leave_group import MemberIdentity
from protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponsePartition,
)
from storage.environment.randomness import SeededRandomness
from tests.fakes.answers import in_time
from tests.fakes.broker.offsets_partition import FakeController, FakeReplicaManager, topic_image
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.timer import ManualTimer


class Broker:
    """A coordinator on fakes; `restart` is what kill -9 leaves: the log."""

    def __init__(
        self,
        manager: FakeReplicaManager | None = None,
        partitions: int = 2,
        *,
        settings: BrokerConfig | None = None,
        at_iteration_end: AtIterationEnd | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.timer = ManualTimer(self.clock)
        self.manager = manager or FakeReplicaManager(range(partitions))
        self.controller = FakeController(
            topic_image(OFFSETS_TOPIC, 99, partitions), topic_image("t", 1, 3)
        )
        self.groups = GroupCoordinator(
            settings or BrokerConfig(),
            FakeEnvironment(timer=self.timer, randomness=SeededRandomness(2)),
            cast("Any", self.manager),
            cast("Any", self.controller),
            at_iteration_end=at_iteration_end,
        )

    async def start(self) -> "Broker":
        await self.groups.start()
        for index in self.manager.batches:
            self.groups.on_elected(index, 0)
        await self.loaded()
        return self

    async def loaded(self) -> None:
        for _ in range(10_000):
            if not self.groups.is_loading:
                return
            await asyncio.sleep(0)
        raise AssertionError("still loading")

    async def begin_to_load(self, index: int) -> None:
        """The log has been read, but nothing made of it yet."""
        reads = self.manager.reads
        self.groups.on_elected(index, 0)
        for _ in range(100):
            if self.manager.reads > reads:
                return
            await asyncio.sleep(0)
        raise AssertionError("nobody reads")

    def context(self, version: int) -> RequestContext:
        return RequestContext(
            ApiKey.JOIN_GROUP, version, 1, "app", ConnectionInfo("PLAINTEXT", "10.1.2.3")
        )

    def join(
        self, group: str = "g", member_id: str = "", *, version: int = 9, session_ms: int = 10_000
    ) -> "JoinGroupResponse | Answer[JoinGroupResponse]":
        return self.groups.join_group(
            self.context(version),
            JoinGroupRequest(
                group_id=group,
                member_id=member_id,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
        )

    def commit(
        self, group: str = "g", offset: int = 5, *, member_id: str = "", generation: int = -1
    ) -> list[ErrorCode]:
        codes: list[ErrorCode] = []
        topic = CommittedTopic("t", NO_TOPIC_ID, [CommittedPartition(0, offset, -1, "")])
        request = OffsetCommitRequest(group, generation, member_id, None, -1, [topic])
        self.groups.commit_offsets(request, 9, codes.append)
        return codes

    def fetch(self, group: str = "g") -> tuple[ErrorCode, int]:
        code, topics = self.groups.fetch_offsets(
            group, [("t", NO_TOPIC_ID, [0])], require_stable=True
        )
        return code, topics[0][0].offset if topics else -1

    def fetched(self) -> list[int | ErrorCode]:
        """The committed offset of each of two partitions, or its error."""
        code, topics = self.groups.fetch_offsets(
            "g", [("t", NO_TOPIC_ID, [0, 1])], require_stable=True
        )
        assert code is ErrorCode.NONE
        return [one.error or one.offset for one in topics[0]]

    async def stable_member(self, group: str = "g") -> tuple[str, int]:
        first = self.join(group)
        assert isinstance(first, JoinGroupResponse)
        parked = self.join(group, first.member_id)
        assert isinstance(parked, Answer)
        waiting = in_time(parked)
        self.timer.advance(3_000)
        joined = await waiting
        answer = self.groups.sync_group(
            SyncGroupRequest(
                group_id=group,
                member_id=joined.member_id,
                generation_id=joined.generation_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"a")
                ],
            )
        )
        assert isinstance(answer, SyncGroupResponse)
        assert answer.assignment == b"a"
        return joined.member_id, joined.generation_id


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    broker = await Broker().start()
    yield broker
    await broker.groups.stop()


async def test_group_lives_through_a_crash(broker: Broker) -> None:
    """Members go on under their generation, offsets are there, sessions run anew."""
    member, generation = await broker.stable_member()
    assert broker.commit(member_id=member, generation=generation) == [ErrorCode.NONE]
    after = await Broker(broker.manager).start()
    assert after.groups.heartbeat("g", member, None, generation) is ErrorCode.NONE
    assert after.fetch() == (ErrorCode.NONE, 5)
    after.timer.advance(10_000)
    assert after.groups.heartbeat("g", member, None, generation) is ErrorCode.UNKNOWN_MEMBER_ID
    await after.groups.stop()


async def test_join_is_checked_before_anything_else(broker: Broker) -> None:
    """group.min.session.timeout.ms, group.max.session.timeout.ms, and a name."""
    for options, code in (
        ({"session_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "g" * 40_000}, ErrorCode.INVALID_GROUP_ID),
    ):
        answer = broker.join(**cast("Any", options))
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == code


@pytest.mark.parametrize("field", ["group_instance_id", "protocol_type", "protocol"])
async def test_names_too_long_for_a_record_are_refused(broker: Broker, field: str) -> None:
    """Otherwise the generation could not be written, and the group would never be stable."""
    for length, code in ((8_155, ErrorCode.INVALID_REQUEST), (8_154, ErrorCode.NONE)):
        name = "😀" * length
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            group_instance_id=name if field == "group_instance_id" else None,
            protocol_type=name if field == "protocol_type" else "consumer",
            protocols=[JoinGroupRequestProtocol(name=name if field == "protocol" else "range")],
        )
        answer = broker.groups.join_group(broker.context(3), request)
        if code is not ErrorCode.NONE:
            assert isinstance(answer, JoinGroupResponse)
            assert answer.error_code == code
            continue
        assert isinstance(answer, Answer)
        waiting = in_time(answer)
        broker.timer.advance(3_000)
        joined = await waiting
        sync = broker.groups.sync_group(
            SyncGroupRequest(group_id="g", member_id=joined.member_id, generation_id=1)
        )
        assert isinstance(sync, SyncGroupResponse)
        assert sync.error_code == ErrorCode.NONE


async def test_member_knows_its_host_and_client(broker: Broker) -> None:
    """As Kafka's tools show them: the address with its slash."""
    await broker.stable_member()
    _, group = broker.groups.find_group("g")
    assert isinstance(group, ClassicGroup)
    (member,) = group.members.values()
    assert (member.client_id, member.client_host) == ("app", "/10.1.2.3")


@pytest.mark.parametrize("version", [0, 6, 7])
async def test_old_versions_have_no_null_protocol_name(broker: Broker, version: int) -> None:
    answer = broker.join(member_id="x", version=version)
    assert isinstance(answer, JoinGroupResponse)
    assert answer.protocol_name == (None if version >= 7 else "")


async def test_stopped_coordinator_is_not_available(broker: Broker) -> None:
    await broker.groups.stop()
    assert broker.commit() == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert broker.groups.heartbeat("g", "m", None, 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert broker.timer.pending == 0


async def test_partitions_of_others_are_not_coordinated_here(broker: Broker) -> None:
    broker.groups.on_resigned(0)
    broker.groups.on_resigned(1)
    code = ErrorCode.NOT_COORDINATOR
    assert broker.commit() == [code]
    assert broker.fetch() == (code, -1)
    assert broker.groups.heartbeat("g", "m", None, 1) is code
    left: list[object] = []
    broker.groups.leave_group("g", [MemberIdentity(member_id="m")], lambda *a: left.append(a))
    assert left == [(code, [])]
    assert broker.groups.find_group("g") == (code, None)
    join = broker.join()
    assert isinstance(join, JoinGroupResponse)
    assert join.error_code == code


async def test_while_loading_clients_are_held_off() -> None:
    """Heartbeats are taken on trust; a SyncGroup starts over, its rebalance is lost anyway."""
    broker = Broker()
    await broker.groups.start()
    for index in (0, 1):
        broker.groups.on_elected(index, 0)
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert broker.groups.is_loading
    assert broker.commit() == [code]
    assert broker.fetch() == (code, -1)
    assert broker.groups.heartbeat("g", "m", None, 1) is ErrorCode.NONE
    sync = broker.groups.sync_group(SyncGroupRequest(group_id="g", member_id="m"))
    assert isinstance(sync, SyncGroupResponse)
    assert sync.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    await broker.loaded()
    assert broker.commit() == [ErrorCode.NONE]
    await broker.groups.stop()


async def test_resigning_while_loading_forgets_the_load() -> None:
    broker = Broker()
    await broker.groups.start()
    for index in (0, 1):
        broker.groups.on_elected(index, 0)
    await asyncio.sleep(0)
    for index in (0, 1):
        broker.groups.on_resigned(index)
    await asyncio.sleep(0)
    assert broker.commit() == [ErrorCode.NOT_COORDINATOR]
    await broker.groups.stop()


async def test_elected_again_while_loading_means_loading_again(broker: Broker) -> None:
    """Somebody else may have written meanwhile: what was read for the old election is old."""
    broker.commit("g", 5)
    index = broker.groups.partition_for("g")
    after = Broker(broker.manager)
    await after.groups.start()
    await after.begin_to_load(index)
    after.groups.on_resigned(index)
    broker.commit("g", 6)
    after.groups.on_elected(index, 0)
    await after.loaded()
    assert after.fetch("g") == (ErrorCode.NONE, 6)
    await after.groups.stop()


async def test_log_is_read_when_its_end_is_committed(broker: Broker) -> None:
    """What another shard has written counts once it is on disk; without it state would be old."""
    broker.commit("g", 5)
    index = broker.groups.partition_for("g")
    end = broker.manager.ends[index]
    broker.commit("g", 6)
    after = Broker(broker.manager)
    after.manager.committed[index] = end
    await after.groups.start()
    after.groups.on_elected(index, 0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert after.fetch("g") == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    after.manager.commit_all()
    after.timer.advance(50)
    await after.loaded()
    assert after.fetch("g") == (ErrorCode.NONE, 6)
    await after.groups.stop()


async def test_load_that_fails_unexpectedly_does_not_keep_others(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = broker.groups.partition_for("g")
    other = next(f"g{n}" for n in range(100) if broker.groups.partition_for(f"g{n}") != index)
    after = Broker(broker.manager)
    leader_of = after.manager.leader_of

    def broken(topic: str, number: int) -> object:
        if number == index:
            raise RuntimeError("no idea")
        return leader_of(topic, number)

    monkeypatch.setattr(after.manager, "leader_of", broken)
    await after.groups.start()
    for number in (index, 1 - index):
        after.groups.on_elected(number, 0)
    await after.loaded()
    assert after.commit("g") == [ErrorCode.NOT_COORDINATOR]
    assert after.commit(other) == [ErrorCode.NONE]
    assert "no idea" in caplog.text
    await after.groups.stop()


async def test_offsets_of_topics_deleted_while_loading_are_gone(broker: Broker) -> None:
    """A topic of the same name that comes later must not find them."""
    broker.commit("g", 5)
    index = broker.groups.partition_for("g")
    after = Broker(broker.manager)
    await after.groups.start()
    await after.begin_to_load(index)
    offsets_topic = topic_image(OFFSETS_TOPIC, 99, 2)
    await after.controller.set_topics(offsets_topic)
    await after.controller.set_topics(offsets_topic, topic_image("t", 2, 3))
    await after.loaded()
    assert after.fetch("g") == (ErrorCode.NONE, -1)
    await after.groups.stop()


async def test_offsets_of_topics_deleted_while_others_coordinated_are_gone(broker: Broker) -> None:
    """The broker that did crashed between the deletion and the tombstones."""
    broker.commit("g", 5)
    after = Broker(broker.manager)
    await after.groups.start()
    await after.controller.set_topics(topic_image(OFFSETS_TOPIC, 99, 2))
    for index in after.manager.batches:
        after.groups.on_elected(index, 0)
    await after.loaded()
    await asyncio.sleep(0)
    assert after.fetch("g") == (ErrorCode.NONE, -1)
    await after.groups.stop()


async def test_offsets_of_topics_that_are_only_not_there_are_kept(broker: Broker) -> None:
    """Their replicas are on a broker that a lost metadata store was filled without."""
    broker.commit("g", 5)
    after = Broker(broker.manager)
    offsets_topic = topic_image(OFFSETS_TOPIC, 99, 2)
    after.controller.image = after.controller._image_of([offsets_topic])
    await after.start()
    for _ in range(10):
        await asyncio.sleep(0)
    assert after.fetch("g") == (ErrorCode.NONE, 5)
    await after.controller.set_topics(offsets_topic, topic_image("t", 1, 3))
    assert after.fetch("g") == (ErrorCode.NONE, 5)
    await after.controller.set_topics(offsets_topic)
    assert after.fetch("g") == (ErrorCode.NONE, -1)
    await after.groups.stop()


async def test_partition_that_cannot_be_read_is_not_served(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Better no coordinator than one that has forgotten offsets; the others are served."""
    broker.commit()
    index = broker.groups.partition_for("g")
    damaged = broker.manager.batches[index][0]
    broker.manager.batches[index][0] = damaged[:62] + b"\xff" * (len(damaged) - 62)
    after = await Broker(broker.manager).start()
    assert after.commit() == [ErrorCode.NOT_COORDINATOR]
    assert after.groups.stats.load_failures == 1
    assert "cannot be loaded" in caplog.text
    other = next(f"g{n}" for n in range(100) if after.groups.partition_for(f"g{n}") != index)
    assert after.commit(other) == [ErrorCode.NONE]
    await after.groups.stop()


async def test_resigning_answers_parked_requests(broker: Broker) -> None:
    first = broker.join()
    assert isinstance(first, JoinGroupResponse)
    parked = broker.join(member_id=first.member_id)
    assert isinstance(parked, Answer)
    waiting = in_time(parked)
    broker.groups.on_resigned(broker.groups.partition_for("g"))
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR


async def test_electing_twice_is_electing_once(broker: Broker) -> None:
    broker.commit()
    for index in (0, 1):
        broker.groups.on_elected(index, 0)
    assert broker.fetch() == (ErrorCode.NONE, 5)


async def test_deleted_topics_take_their_offsets_along(broker: Broker) -> None:
    broker.commit()
    await broker.controller.set_topics(topic_image(OFFSETS_TOPIC, 99, 2))
    assert broker.fetch() == (ErrorCode.NONE, -1)


async def test_groups_go_with_the_offsets_topic(broker: Broker) -> None:
    """What was committed there is lost with the next start, so nobody is told of it until then."""
    broker.commit()
    await broker.controller.set_topics(topic_image("t", 1, 3))
    assert broker.fetch()[0] is ErrorCode.NOT_COORDINATOR
    broker.manager.batches = {index: [] for index in broker.manager.batches}
    broker.manager.ends = dict.fromkeys(broker.manager.ends, 0)
    await broker.controller.set_topics(topic_image("t", 1, 3), topic_image(OFFSETS_TOPIC, 100, 2))
    for index in (0, 1):
        broker.groups.on_elected(index, 0)
    await broker.loaded()
    assert broker.fetch() == (ErrorCode.NONE, -1)
    assert list(broker.groups.groups()) == []


async def delete_group(broker: Broker) -> list[ErrorCode]:
    """DeleteGroups of `g`, and what becomes of the shard afterwards."""
    codes: list[ErrorCode] = []
    broker.groups.delete_group("g", codes.append)
    broker.timer.advance(0)
    await broker.loaded()
    return codes


async def test_a_change_that_the_log_refuses_is_undone(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """The log is read anew; that it was necessary is an error."""
    broker.commit()
    # As where the disk is full.
    broker.manager.fail_next = [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert await delete_group(broker) != [ErrorCode.NONE]
    assert broker.fetch() == (ErrorCode.NONE, 5)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def commit_transactionally(broker: Broker, *partitions: int) -> list[ErrorCode]:
    """TxnOffsetCommit of producer 8 for partitions of `t`."""
    codes: list[ErrorCode] = []
    broker.groups.commit_transactional_offsets(
        TxnOffsetCommitRequest(
            transactional_id="x", group_id="g", producer_id=8, producer_epoch=0, generation_id=-1
        ),
        5,
        [
            TransactionalOffsetCommit(
                "t",
                NO_TOPIC_ID,
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=6, committed_metadata=""
                ),
                TxnOffsetCommitResponsePartition(partition_index=index),
            )
            for index in partitions
        ],
        codes.append,
    )
    return codes


@pytest.mark.parametrize("lost", [True, False])
async def test_transactional_offsets_wait_only_where_they_are_in_the_log(
    broker: Broker, lost: bool
) -> None:
    """They were queued for the directory's thread, which found no room; or it takes its time."""
    broker.commit()
    broker.manager.hold = True
    codes = commit_transactionally(broker, 0, 1)
    broker.manager.hold = False
    assert broker.fetched() == [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2
    if lost:
        broker.manager.fail_held(ErrorCode.KAFKA_STORAGE_ERROR)
    else:
        broker.manager.fail_held(ErrorCode.REQUEST_TIMED_OUT, lost=False)
    assert len(codes) == 1
    assert codes[0].retriable
    await broker.loaded()
    await asyncio.sleep(0)
    assert broker.fetched() == ([5, -1] if lost else [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2)


async def test_nothing_is_deleted_while_the_log_lacks_replicas(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """It may last for hours, and a shard that is loaded again and again serves nobody."""
    broker.commit()
    broker.manager.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert await delete_group(broker) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert broker.fetch() == (ErrorCode.NONE, 5)
    broker.manager.fail_with = None
    assert await delete_group(broker) == [ErrorCode.NONE]
    assert not caplog.records


async def test_a_change_after_the_partition_has_left_is_no_error(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """The offsets topic is being deleted, or moves: nobody is alarmed, and it may come back."""
    broker.commit()
    index = broker.groups.partition_for("g")
    gone = broker.manager.batches.pop(index)
    broker.manager.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await delete_group(broker) == [ErrorCode.NOT_COORDINATOR]
    assert broker.fetch()[0] is ErrorCode.NOT_COORDINATOR
    assert not caplog.records
    assert not len(broker.groups.unavailable)
    broker.manager.fail_with = None
    broker.manager.batches[index] = gone
    broker.groups.on_elected(index, 0)
    await broker.loaded()
    assert broker.fetch() == (ErrorCode.NONE, 5)


async def test_members_whose_time_is_over_do_not_keep_a_group(broker: Broker) -> None:
    """Also when only the timer is late: who deletes waited for the session's end."""
    await broker.stable_member()
    codes: list[ErrorCode] = []
    broker.clock.advance(9_999)
    broker.groups.delete_group("g", codes.append)
    assert codes == [ErrorCode.NON_EMPTY_GROUP]
    broker.clock.advance(1)
    broker.groups.delete_group("g", codes.append)
    assert codes[1:] == [ErrorCode.NONE]


async def test_offsets_expire_at_every_check(broker: Broker) -> None:
    broker.commit()
    broker.timer.advance(7 * 24 * 60 * 60_000)
    for _ in range(10):
        await asyncio.sleep(0)
    assert broker.groups.committed_offset_count == 0
    assert list(broker.groups.groups()) == []
    assert broker.groups.stats.offset_expirations == 1


async def test_metrics_see_groups_members_and_offsets(broker: Broker) -> None:
    member, generation = await broker.stable_member("a")
    broker.commit("a", 7, member_id=member, generation=generation)
    broker.commit("b", 8)
    assert sorted(group.state_name for group in broker.groups.groups()) == ["Empty", "Stable"]
    assert {tuple(s) for s in broker.groups.snapshots()} == {
        ("a", "Stable", "consumer", 1, 1, 1),
        ("b", "Empty", "", 0, 0, 1),
    }
    assert {tuple(o) for o in broker.groups.committed_offsets()} == {
        ("a", "t", 0, 7),
        ("b", "t", 0, 8),
    }
    assert broker.groups.committed_offset_count == 2
    assert broker.groups.stats.offset_commits == 2
    assert broker.groups.stats.completed_rebalances == 1


async def test_long_logs_are_loaded_without_holding_up_the_loop() -> None:
    """The loop gets a turn at least every few hundred records."""
    broker = await Broker(partitions=1).start()
    for number in range(2_000):
        broker.commit(f"g{number % 50}", number)
    after = Broker(broker.manager, partitions=1)
    after.clock.per_look_ms = 0.2
    await after.groups.start()
    after.groups.on_elected(0, 0)
    turns = 0
    while after.groups.is_loading:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 2_000 // 250
    assert after.groups.committed_offset_count == 50
    await after.groups.stop()
    await broker.groups.stop()


@pytest.mark.parametrize(("linger_ms", "waits_for"), [(-1, "turn"), (0, "nothing"), (20, "time")])
async def test_commits_are_gathered_as_long_as_the_setting_says(
    linger_ms: int, waits_for: str
) -> None:
    due: list[Callable[[], None]] = []
    broker = await Broker(
        settings=BrokerConfig(group_coordinator_append_linger_ms=linger_ms),
        at_iteration_end=due.append,
    ).start()
    broker.commit()
    written = sum(broker.manager.ends.values())
    assert written == (1 if waits_for == "nothing" else 0)
    assert len(due) == (1 if waits_for == "turn" else 0)
    for callback in due:
        callback()
    broker.timer.advance(20)
    assert sum(broker.manager.ends.values()) == 1


async def test_what_was_gathered_is_written_before_another_leads() -> None:
    """It may read the log at once; and whoever committed has its answer."""
    due: list[Callable[[], None]] = []
    broker = await Broker(at_iteration_end=due.append).start()
    outcome = broker.commit()
    assert outcome == []
    broker.groups.on_resigned(broker.groups.partition_for("g"))
    assert sum(broker.manager.ends.values()) == 1
    for callback in due:
        callback()
    assert sum(broker.manager.ends.values()) == 1
    assert outcome == [ErrorCode.NONE]
