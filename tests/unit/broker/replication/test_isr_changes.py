"""Changes of the ISR: what is asked for, when, and what each answer means."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.replication.isr_changes import PARTITIONS_MAX, RETRY_MS, IsrChanges
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from tests.unit.broker.replication.followers.follower_world import FollowerWorld, record


class Channel:
    """A controller that answers with `code` for each partition once it is let."""

    def __init__(self) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self.code = ErrorCode.NONE
        self.error = ErrorCode.NONE
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.requests.append(request)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return AlterPartitionResponse(
            error_code=self.error,
            topics=[
                AlterPartitionResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        AlterPartitionResponsePartitionData(
                            partition_index=partition.partition_index, error_code=self.code
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )


class IsrWorld(FollowerWorld):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.channel = Channel()
        self.changes = IsrChanges(
            self.channel,
            self.replicas.terms,
            self.clock,
            self.timer,
            node_id=1,
            broker_epoch=lambda: 10,
            led=self.replicas.partitions,
        )
        self.changes.start()

    def listen(self, silence_max_ms: float) -> None:
        """Begin anew, with followers that are silent after so long."""
        self.replicas.terms.listening.silence_max_ms = silence_max_ms
        self.changes._listen()

    @property
    def asked(self) -> list[list[tuple[int, int]]]:
        """(node, epoch) of each ISR that was asked for."""
        return [
            [(one.broker_id, one.broker_epoch) for one in partition.new_isr_with_epochs]
            for request in self.channel.requests
            for topic in request.topics
            for partition in topic.partitions
        ]


@pytest.fixture
async def i(tmp_path: Path) -> AsyncIterator[IsrWorld]:
    world = IsrWorld(tmp_path)
    yield world
    await world.changes.aclose()
    world.close()


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_has_caught_up_is_proposed_with_its_epoch(i: IsrWorld) -> None:
    partition = i.led(state=record((1, 2)))
    i.write(partition, b"a")
    partition.become_leader(record((1, 2), leader_epoch=6), now_ms=0.0)
    i.fetch_one(0, replica=3, current_leader_epoch=6)
    await turn()
    assert i.asked == []
    i.fetch_one(1, replica=3, current_leader_epoch=6)
    await turn()
    assert i.asked == [[(1, 10), (2, 20), (3, 30)]]
    (request,) = i.channel.requests
    (asked,) = request.topics[0].partitions
    assert (request.broker_id, request.broker_epoch) == (1, 10)
    assert (asked.leader_epoch, asked.partition_epoch) == (6, 0)
    assert partition.leading is not None
    assert partition.leading.isr == (1, 2)
    assert partition.leading.proposed == (1, 2, 3)
    assert (i.changes.expanded, i.changes.shrunk) == (1, 0)


async def test_partitions_of_one_turn_go_in_one_request(i: IsrWorld) -> None:
    for topic in ("a", "b"):
        i.led(topic, record((1, 2)))
    i.fetch({"a": 0, "b": 0}, replica=3)
    await turn()
    (request,) = i.channel.requests
    assert len(request.topics) == 2


async def test_one_request_is_under_way_at_a_time(i: IsrWorld) -> None:
    for topic in ("a", "b"):
        i.led(topic, record((1, 2)))
    i.channel.gate.clear()
    i.fetch({"a": 0}, replica=3)
    await turn()
    i.fetch({"b": 0}, replica=3)
    await turn()
    assert len(i.channel.requests) == 1
    i.channel.gate.set()
    await turn()
    assert len(i.channel.requests) == 2


async def test_the_image_settles_and_lets_the_next_be_asked_for(i: IsrWorld) -> None:
    partition = i.led(state=record((1,)))
    i.fetch_one(0, replica=2)
    await turn()
    i.fetch_one(0, replica=3)
    await turn()
    assert len(i.asked) == 1
    partition.update_isr(record((1, 2), partition_epoch=1))
    await turn()
    assert i.asked[1:] == [[(1, 10), (2, 20), (3, 30)]]


async def test_a_request_has_the_partition_epoch_in_which_its_isr_was_proposed(i: IsrWorld) -> None:
    """A record between them ends the proposal: with its epoch the controller would make the change.

    The ISR would have a member that the high watermark does not wait for.
    """
    partition = i.led(state=record((1, 2)))
    leading = partition.leading
    assert leading is not None
    i.fetch_one(0, replica=3)
    for _ in range(5):
        if leading.proposed is None:
            await asyncio.sleep(0)
    assert leading.proposed is not None
    assert i.asked == []
    # As when a replica's log directory is written down.
    partition.update_isr(record((1, 2), partition_epoch=1))
    assert leading.proposed is None
    i.channel.code = ErrorCode.INVALID_UPDATE_VERSION
    await turn()
    epochs = [r.topics[0].partitions[0].partition_epoch for r in i.channel.requests]
    assert epochs[0] == 0


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
async def test_who_is_out_of_date_waits_for_the_image(i: IsrWorld, code: ErrorCode) -> None:
    """It stays proposed: it may have been made by an earlier request."""
    partition = i.led(state=record((1, 2)))
    i.channel.code = code
    i.fetch_one(0, replica=3)
    await turn()
    i.timer.advance(10 * RETRY_MS)
    await turn()
    assert len(i.asked) == 1
    assert partition.leading is not None
    assert partition.leading.proposed == (1, 2, 3)


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
async def test_what_was_not_changed_is_withdrawn_and_asked_for_later(
    i: IsrWorld, code: ErrorCode
) -> None:
    partition = i.led(state=record((1, 2)))
    i.channel.code = code
    i.fetch_one(0, replica=3)
    await turn()
    assert partition.leading is not None
    assert partition.leading.proposed is None
    i.fetch_one(0, replica=3)
    await turn()
    assert len(i.asked) == 1
    i.timer.advance(RETRY_MS)
    await turn()
    assert len(i.asked) == 2
    assert i.changes.failed == 2


@pytest.mark.parametrize("failure", ["code", "error", "exception"])
async def test_an_unknown_outcome_stays_proposed_and_is_asked_for_again(
    i: IsrWorld, failure: str
) -> None:
    """By the same partition epoch, so that it cannot be made twice."""
    partition = i.led(state=record((1, 2)))
    if failure == "code":
        i.channel.code = ErrorCode.UNKNOWN_SERVER_ERROR
    elif failure == "error":
        i.channel.error = ErrorCode.NOT_CONTROLLER
    else:
        i.channel.failure = ConnectionError("gone")
    i.fetch_one(0, replica=3)
    await turn()
    assert partition.leading is not None
    assert partition.leading.proposed == (1, 2, 3)
    i.channel.code = i.channel.error = ErrorCode.NONE
    i.channel.failure = None
    i.timer.advance(RETRY_MS)
    await turn()
    assert i.asked == [[(1, 10), (2, 20), (3, 30)]] * 2


async def test_members_that_lag_are_found_by_time(i: IsrWorld) -> None:
    """The high watermark waits for them until the image has the smaller ISR."""
    partition = i.led()
    i.write(partition, b"a")
    i.fetch_one(1, replica=2)
    for _ in range(3):
        i.timer.advance(15_001)
        i.fetch_one(1, replica=2)
        await turn()
    assert i.asked == [[(1, 10), (2, 20)]]
    assert partition.log.high_watermark == 0
    partition.update_isr(record((1, 2), partition_epoch=1))
    assert partition.log.high_watermark == 1
    assert (i.changes.expanded, i.changes.shrunk) == (0, 1)


async def test_a_follower_that_falls_silent_leaves_soon(i: IsrWorld) -> None:
    """It lives, and is cut off from its leader alone; the other one fetches on."""
    partition = i.led()
    i.listen(4_000.0)
    sessions = {node: i.fetch({"t": 0}, replica=node).session_id for node in (2, 3)}
    i.write(partition, b"a")
    for second in range(1, 6):
        i.timer.advance(1_000)
        i.fetch({"t": 1} if second == 1 else {}, session=(sessions[2], second))
        await turn()
        assert i.asked == ([] if second <= 4 else [[(1, 10), (2, 20)]])
    partition.update_isr(record((1, 2), partition_epoch=1))
    assert partition.log.high_watermark == 1


async def test_who_is_dead_is_not_looked_for_as_silent(i: IsrWorld) -> None:
    """Its session stays until it is back; the controller takes it out of ISRs."""
    i.led()
    i.listen(4_000.0)
    i.fetch({"t": 0}, replica=3)
    del i.live[3]
    looks: list[None] = []
    i.changes.brokers_changed = lambda: looks.append(None)  # type: ignore[method-assign]  # counted
    i.timer.advance(10_000)
    assert looks == []
    i.live[3] = 30
    i.timer.advance(1_000)
    assert looks == [None]


async def test_followers_of_idle_partitions_stay(i: IsrWorld) -> None:
    partition = i.led()
    i.fetch_one(0, replica=2)
    i.fetch_one(0, replica=3)
    i.timer.advance(120_000)
    await turn()
    assert i.asked == []
    assert partition.leading is not None


async def test_who_has_never_fetched_leaves_after_its_grace(i: IsrWorld) -> None:
    partition = i.led()
    i.timer.advance(29_000)
    await turn()
    assert i.asked == []
    i.timer.advance(31_000)
    await turn()
    assert i.asked == [[(1, 10)]]
    assert partition.leading is not None
    assert partition.leading.isr == (1, 2, 3)


async def test_an_answer_for_an_earlier_epoch_changes_nothing(i: IsrWorld) -> None:
    partition = i.led(state=record((1, 2)))
    i.channel.gate.clear()
    i.channel.code = ErrorCode.INELIGIBLE_REPLICA
    i.fetch_one(0, replica=3)
    await turn()
    partition.become_leader(record((1, 2), leader_epoch=6), now_ms=0.0)
    i.fetch_one(0, replica=3, current_leader_epoch=6)
    await turn()
    i.channel.code = ErrorCode.NONE
    i.channel.gate.set()
    await turn()
    assert [r.topics[0].partitions[0].leader_epoch for r in i.channel.requests] == [5, 6]


async def test_a_partition_that_is_led_no_longer_is_not_asked_for(i: IsrWorld) -> None:
    partition = i.led(state=record((1, 2)))
    i.fetch_one(0, replica=3)
    partition.become_follower(2, 6)
    await turn()
    assert i.asked == []


async def test_a_request_is_bounded(i: IsrWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.replication.isr_changes.PARTITIONS_MAX", 2)
    assert PARTITIONS_MAX > 2
    topics = ("a", "b", "c")
    for topic in topics:
        i.led(topic, record((1, 2)))
    i.fetch(dict.fromkeys(topics, 0), replica=3)
    await turn()
    assert [len(request.topics) for request in i.channel.requests] == [2, 1]


async def test_the_look_at_all_partitions_yields(i: IsrWorld) -> None:
    partitions = [i.led(f"t{n}") for n in range(5)]
    ticks = i.clock.monotonic_ms

    def slow() -> float:
        i.clock.advance(1.5)
        return ticks()

    i.timer.advance(29_000)
    i.clock.monotonic_ms = slow  # type: ignore[method-assign]  # each look at the clock takes long
    i.changes._look_at_all()
    i.clock.monotonic_ms = ticks  # type: ignore[method-assign]  # as it was
    assert i.changes.waiting < len(partitions)
    for _ in range(20):
        i.timer.advance(1_000)
        await turn()
    assert len(i.asked) >= len(partitions)


async def test_who_was_about_to_join_and_has_gone_is_not_waited_for(i: IsrWorld) -> None:
    """Nothing else may ever happen in the partition: its producer waits for this very offset."""
    partition = i.led(state=record((1, 2)))
    i.fetch_one(0, replica=3)
    await turn()
    partition.update_isr(record((1, 2), partition_epoch=1))
    i.write(partition, b"a")
    i.fetch_one(1, replica=2)
    assert partition.log.high_watermark == 0
    i.channel.code = ErrorCode.INELIGIBLE_REPLICA
    del i.live[3]
    i.changes.brokers_changed()
    assert partition.log.high_watermark == 1


async def test_who_is_let_in_after_its_fetch_joins(i: IsrWorld) -> None:
    """In an idle partition it does not fetch again at another offset."""
    partition = i.led(state=record((1, 2)))
    del i.live[3]
    i.fetch_one(0, replica=3)
    await turn()
    assert i.asked == []
    i.live[3] = 30
    i.changes.brokers_changed()
    await turn()
    assert i.asked == [[(1, 10), (2, 20), (3, 30)]]
    assert partition.leading is not None


async def test_who_has_stopped_fetching_is_not_waited_for_for_ever(i: IsrWorld) -> None:
    partition = i.led(state=record((1, 2)))
    i.channel.code = ErrorCode.INELIGIBLE_REPLICA
    i.fetch_one(0, replica=3)
    await turn()
    i.write(partition, b"a")
    i.fetch_one(1, replica=2)
    assert partition.log.high_watermark == 0
    for _ in range(46):
        i.timer.advance(1_000)
        await turn()
    assert partition.log.high_watermark == 1


async def test_an_error_is_logged_once_however_often_it_comes(
    i: IsrWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """What is refused is asked for again every 50 ms."""
    i.led(state=record((1, 2)))
    i.channel.error = ErrorCode.STALE_BROKER_EPOCH
    i.fetch_one(0, replica=3)
    for _ in range(5):
        await turn()
        i.timer.advance(RETRY_MS)
    assert i.changes.failed == 5
    assert [one.message.count("STALE_BROKER_EPOCH") for one in caplog.records] == [1]
    i.channel.error, i.channel.failure = ErrorCode.NONE, ConnectionError("gone")
    await turn()
    assert len(caplog.records) == 2


async def test_another_try_names_the_lives_of_the_first(i: IsrWorld) -> None:
    """Who has come back meanwhile may have lost what it had caught up with."""
    partition = i.led(state=record((1, 2)))
    i.write(partition, b"a")
    i.channel.failure = ConnectionError("gone")
    i.fetch_one(1, replica=3)
    await turn()
    i.registered[3] = i.live[3] = 31
    i.fetch_one(0, replica=3)
    i.timer.advance(RETRY_MS)
    await turn()
    assert i.asked == [[(1, 10), (2, 20), (3, 30)]] * 2
    i.channel.failure = None
    i.channel.code = ErrorCode.INELIGIBLE_REPLICA
    i.timer.advance(RETRY_MS)
    await turn()
    assert len(i.asked) == 3
    assert partition.leading is not None
    assert partition.leading.proposed is None
    i.channel.code = ErrorCode.NONE
    i.fetch_one(1, replica=2)
    i.fetch_one(1, replica=3)
    i.timer.advance(2 * RETRY_MS)
    await turn()
    assert i.asked[3:] == [[(1, 10), (2, 20), (3, 31)]]


async def test_what_is_under_way_counts_where_the_log_is_opened_again(i: IsrWorld) -> None:
    """In the same epoch of the same record: it was moved to another log directory."""
    partition = i.led(state=record((1, 2)))
    i.channel.gate.clear()
    i.fetch_one(0, replica=3)
    await turn()
    proposal = partition.proposal
    assert proposal is not None
    partition.resign(ErrorCode.KAFKA_STORAGE_ERROR)
    assert partition.proposal is None
    i.channel.gate.set()
    i.channel.error = ErrorCode.NOT_CONTROLLER
    partition.become_leader(record((1, 2)), now_ms=0.0, proposed=proposal)
    i.write(partition, b"a")
    i.fetch_one(1, replica=2)
    assert partition.log.high_watermark == 0
    await turn()
    i.channel.error = ErrorCode.NONE
    i.timer.advance(RETRY_MS)
    await turn()
    assert i.asked[-1] == [(1, 10), (2, 20), (3, 30)]
    i.fetch_one(1, replica=3)
    assert partition.log.high_watermark == 1


async def test_what_was_under_way_in_another_record_does_not_count(i: IsrWorld) -> None:
    partition = i.led(state=record((1, 2)))
    i.fetch_one(0, replica=3)
    await turn()
    proposal = partition.proposal
    for later in (record((1, 2), leader_epoch=6), record((1, 2), partition_epoch=1)):
        partition.resign(ErrorCode.KAFKA_STORAGE_ERROR)
        partition.become_leader(later, now_ms=0.0, proposed=proposal)
        assert partition.proposal is None
