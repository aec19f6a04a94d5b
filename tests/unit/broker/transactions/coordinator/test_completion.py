"""Markers, whatever partitions say, and the record that ends a transaction."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from broker.coordinator.deferred_records import RETRY_MAX_MS
from broker.transactions.coordinator.completion import RETRY_DELAY_MAX_MS
from broker.transactions.coordinator.transaction_state import TransactionState as S
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from tests.harness.transactions import A, B, C, Coordinator

E = ErrorCode


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    "code",
    [
        E.NOT_LEADER_OR_FOLLOWER,
        E.KAFKA_STORAGE_ERROR,
        E.REQUEST_TIMED_OUT,
        E.NOT_ENOUGH_REPLICAS,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.UNKNOWN_SERVER_ERROR,
    ],
)
def test_partition_that_is_away_is_asked_until_it_is_back(
    c: Coordinator, code: ErrorCode, commit: bool
) -> None:
    """And only that one."""
    producer = c.ongoing(A, B, C)
    c.data.failing[B] = code
    c.end(producer, commit=commit)
    assert c.metadata().partitions == {B}
    for _ in range(20):
        c.advance(RETRY_DELAY_MAX_MS)
    assert c.state.is_prepared
    assert all(partitions == {B} for _, partitions in c.data.calls[1:])
    assert 10 < len(c.data.calls) < 40
    del c.data.failing[B]
    c.advance(2 * RETRY_DELAY_MAX_MS)
    assert c.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    outcome = c.data.committed if commit else c.data.aborted
    assert outcome == {A: {"x"}, B: {"x"}, C: {"x"}}
    assert len(c.data.markers) == 3
    assert c.transactions.stats.marker_retries == len(c.data.calls) - 1


def test_first_retries_are_quick(c: Coordinator) -> None:
    producer = c.ongoing(A)
    c.data.failing[A] = E.NOT_LEADER_OR_FOLLOWER
    c.end(producer)
    c.data.failing.clear()
    c.advance(30)
    assert c.state is S.COMPLETE_COMMIT


def moved(c: Coordinator, where: TopicPartition, **change: Any) -> None:
    """A partition's record changes."""
    image = c.controller.image
    topics = []
    for topic in image.topics.values():
        partitions = list(topic.partitions)
        if topic.name == where.topic:
            partitions[where.partition] = replace(partitions[where.partition], **change)
        topics.append(replace(topic, partitions=partitions))
    c.run(c.controller.set_topics(*topics))


@pytest.mark.parametrize("change", [{"leader": 2, "leader_epoch": 1}, {"leader_epoch": 1}])
def test_a_partition_that_gets_a_leader_need_not_wait_for_the_back_off(
    c: Coordinator, change: dict[str, int]
) -> None:
    producer = c.ongoing(A, B)
    c.data.failing[A] = E.NOT_LEADER_OR_FOLLOWER
    c.end(producer)
    for _ in range(10):
        c.advance(RETRY_DELAY_MAX_MS)
    calls = len(c.data.calls)
    moved(c, A, partition_epoch=1)
    moved(c, B, **change)
    assert len(c.data.calls) == calls, "not its leader, and not its partition"
    moved(c, A, **change)
    assert len(c.data.calls) == calls + 1
    del c.data.failing[A]
    c.advance(30)
    assert c.state is S.COMPLETE_COMMIT, "the back-off begins anew: its leader may be late"


def test_a_change_of_leaders_repeats_no_marker_that_is_under_way(c: Coordinator) -> None:
    producer = c.ongoing(A)
    c.data.hold = True
    c.end(producer)
    moved(c, A, leader_epoch=1)
    assert len(c.data.calls) == 1


@pytest.mark.parametrize(
    "code",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        E.INVALID_PRODUCER_EPOCH,
    ],
)
def test_partition_where_nothing_is_left_to_end_is_dropped(
    c: Coordinator, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    producer = c.ongoing(A, B)
    c.data.failing[B] = code
    c.end(producer)
    assert c.state is S.COMPLETE_COMMIT
    assert "transaction marker skipped transactional_id=tx partition=t-1" in caplog.text


def test_partition_that_is_deleted_while_others_are_away(c: Coordinator) -> None:
    producer = c.ongoing(A, B)
    c.data.failing = {A: E.NOT_LEADER_OR_FOLLOWER, B: E.UNKNOWN_TOPIC_OR_PARTITION}
    c.end(producer)
    assert c.metadata().partitions == {A}
    c.data.failing[A] = E.UNKNOWN_TOPIC_OR_PARTITION
    c.advance(100)
    assert c.state is S.COMPLETE_COMMIT


def test_lost_answers_end_nothing_twice(c: Coordinator) -> None:
    """The marker is there; the second one is refused as late, with version 2."""
    producer = c.ongoing(A, B)
    c.data.lose_answers = True
    c.end(producer)
    c.data.lose_answers = False
    c.advance(100)
    assert c.state is S.COMPLETE_COMMIT
    assert len(c.data.markers) == 2


def test_newer_coordinator_is_left_alone(c: Coordinator, caplog: pytest.LogCaptureFixture) -> None:
    producer = c.ongoing(A, B)
    c.data.failing[A] = E.TRANSACTION_COORDINATOR_FENCED
    c.end(producer)
    assert "a newer one completes the transaction" in caplog.text
    c.advance(100_000)
    assert len(c.data.calls) == 1
    assert c.state is S.PREPARE_COMMIT


def test_complete_record_is_tried_until_it_is_written(c: Coordinator) -> None:
    """Without markers anew; nothing else is written before it."""
    producer = c.ongoing(A)
    _, following = c.end(producer)
    c.log.fail_with = E.NOT_ENOUGH_REPLICAS
    assert c.state is S.COMPLETE_COMMIT
    assert c.add(following, B) is E.COORDINATOR_NOT_AVAILABLE
    c.advance(10_000)
    assert c.end(producer) == (E.NONE, following)
    assert c.log.states()[-1] is S.PREPARE_COMMIT
    c.log.fail_with = None
    c.advance(RETRY_MAX_MS)
    assert c.log.states()[-1] is S.COMPLETE_COMMIT
    assert len(c.data.calls) == 1
    c.write(following, B)
    assert c.log.states()[-2:] == [S.COMPLETE_COMMIT, S.ONGOING]


def test_resignation_ends_the_work(c: Coordinator) -> None:
    """Whoever is elected goes on, with the epoch of that election."""
    producer = c.ongoing(A)
    c.data.failing[A] = E.NOT_LEADER_OR_FOLLOWER
    c.end(producer)
    c.transactions.on_resigned(0)
    calls = len(c.data.calls)
    c.advance(10_000)
    assert len(c.data.calls) == calls
    c.data.failing.clear()

    async def elect() -> None:
        c.transactions.on_elected(0, 8)

    c.run(elect())
    c.settle()
    assert c.state is S.COMPLETE_COMMIT
    assert c.data.markers[-1][1].coordinator_epoch == 8


def test_answers_after_a_resignation_change_nothing(c: Coordinator) -> None:
    producer = c.ongoing(A)
    c.data.hold = True
    c.end(producer)
    c.transactions.on_resigned(0)
    appends = c.log.appends
    c.data.release()
    assert c.log.appends == appends


def test_marker_is_of_the_producer_that_wrote(c: Coordinator) -> None:
    """Not of the one that follows."""
    first = c.ongoing(A)
    _, second = c.end(first)
    c.write(second, B)
    c.end(second, commit=False)
    epochs = [(tp, marker.producer_epoch, marker.commit) for tp, marker in c.data.markers]
    assert epochs == [(A, 1, True), (B, 2, False)]
