"""AddPartitionsToTxn and the questions of partitions."""

import pytest

from broker.transactions.coordinator import add_partitions as partitions
from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.interfaces import PartitionErrors, ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from tests.harness.transactions import OFFSETS, A, B, C, Coordinator

E = ErrorCode


def ask(
    c: Coordinator, producer: ProducerIdAndEpoch, *asked: TopicPartition, add: bool = False
) -> list[PartitionErrors]:
    """As a partition's leader asks, by the interface that it knows."""
    answers: list[PartitionErrors] = []
    c.transactions.add_or_verify("tx", producer, asked, add=add, done=answers.append)
    return answers


def test_first_partition_begins_the_transaction(c: Coordinator) -> None:
    producer = c.new_producer()
    c.clock.advance(5_000)
    assert c.add(producer, A, B) is E.NONE
    assert (c.state, c.metadata().partitions) == (S.ONGOING, frozenset({A, B}))
    assert c.metadata().start_timestamp_ms == c.clock.now_ms()
    assert c.metadata().client_transaction_version == 2
    c.clock.advance(5_000)
    assert c.add(producer, OFFSETS, version=0) is E.NONE
    assert c.metadata().partitions == {A, B, OFFSETS}
    assert c.metadata().start_timestamp_ms == c.clock.now_ms() - 5_000


@pytest.mark.parametrize("commit", [True, False])
def test_next_transaction_begins_with_nothing(c: Coordinator, commit: bool) -> None:
    producer = c.ongoing(A)
    _, producer = c.end(producer, commit=commit)
    c.clock.advance(5_000)
    assert c.add(producer, B) is E.NONE
    assert c.metadata().partitions == {B}
    assert c.metadata().start_timestamp_ms == c.clock.now_ms()


def test_what_is_known_is_not_written_again(c: Coordinator) -> None:
    producer = c.ongoing(A, B)
    appends = c.log.appends
    assert c.add(producer, B) is E.NONE
    assert c.add(producer) is E.NONE
    assert c.log.appends == appends


def test_answer_waits_for_the_record(c: Coordinator) -> None:
    producer = c.new_producer()
    c.log.hold = True
    codes = c.add_later(producer, A)
    assert codes == []
    assert c.add(producer, A) is E.CONCURRENT_TRANSACTIONS
    assert ask(c, producer, A) == [{A: E.TRANSACTION_ABORTABLE}]
    c.log.commit_held()
    assert codes == [E.NONE]
    assert ask(c, producer, A) == [{A: E.NONE}]


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.RECORD_LIST_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_refused_record_changes_nothing(
    c: Coordinator, failure: ErrorCode, answer: ErrorCode
) -> None:
    producer = c.ongoing(A)
    c.log.fail_with = failure
    assert c.add(producer, B) is answer
    assert c.metadata().partitions == {A}
    c.log.fail_with = None
    assert c.add(producer, B) is E.NONE


def test_who_may_add(c: Coordinator) -> None:
    producer = c.new_producer()
    assert c.add(producer, A, transactional_id="") is E.INVALID_REQUEST
    assert c.add(producer, A, transactional_id="?") is E.INVALID_PRODUCER_ID_MAPPING
    assert c.add(producer._replace(producer_id=5), A) is E.INVALID_PRODUCER_ID_MAPPING
    for epoch in (-1, 1):
        assert c.add(producer._replace(epoch=epoch), A) is E.PRODUCER_FENCED
    assert c.state is S.EMPTY


@pytest.mark.parametrize("commit", [True, False])
def test_nothing_is_added_while_markers_are_written(c: Coordinator, commit: bool) -> None:
    producer = c.ongoing(A)
    c.data.hold = True
    _, following = c.end(producer, commit=commit)
    assert c.add(following, B) is E.CONCURRENT_TRANSACTIONS
    assert ask(c, following, A) == [{A: E.CONCURRENT_TRANSACTIONS}]
    assert ask(c, producer, A) == [{A: E.PRODUCER_FENCED}]
    c.data.release()
    assert c.add(following, B) is E.NONE


def test_transaction_has_room_for_so_many(c: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "PARTITIONS_MAX", 2)
    producer = c.ongoing(A, B)
    assert c.add(producer, C) is E.TRANSACTION_ABORTABLE
    assert c.add(producer, B) is E.NONE
    assert c.end(producer, commit=False)[0] is E.NONE


def test_leader_asks_whether_a_partition_belongs(c: Coordinator) -> None:
    """Synchronously: there is a client who waits with its batch."""
    producer = c.ongoing(A)
    assert ask(c, producer, A, B) == [{A: E.NONE, B: E.TRANSACTION_ABORTABLE}]
    assert ask(c, producer._replace(epoch=1), A) == [{A: E.PRODUCER_FENCED}]
    assert ask(c, producer._replace(producer_id=1), A) == [{A: E.INVALID_PRODUCER_ID_MAPPING}]
    _, following = c.end(producer)
    assert ask(c, following, A) == [{A: E.TRANSACTION_ABORTABLE}]
    for transactional_id, code in (("", E.INVALID_REQUEST), ("?", E.INVALID_PRODUCER_ID_MAPPING)):
        assert c.transactions.verify_partitions(transactional_id, producer, [A]) == {A: code}


def test_leader_adds_a_partition(c: Coordinator) -> None:
    producer = c.new_producer()
    assert ask(c, producer, A, B, add=True) == [{A: E.NONE, B: E.NONE}]
    assert c.metadata().client_transaction_version == 2
    c.log.hold = True
    waiting = ask(c, producer, C, add=True)
    assert waiting == []
    assert ask(c, producer, C, add=True) == [{C: E.CONCURRENT_TRANSACTIONS}]
    c.log.commit_held()
    assert waiting == [{C: E.NONE}]
