"""AddPartitionsToTxn: every served version, end to end."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from broker.handlers import add_partitions_to_txn
from broker.runtime.errors import ApiError
from broker.transactions.coordinator import add_partitions as partitions
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.fakes.broker.controller import brokers_apart
from tests.fakes.broker.wire import versions_of
from tests.harness.transactions import A, B, C
from tests.unit.broker.handlers.transactions_fixture import Transactions

E = ErrorCode
VERSIONS = versions_of(add_partitions_to_txn)


Topics = dict[str, list[int]]


def transaction(
    producer: ProducerIdAndEpoch, topics: Topics, *, name: str = "tx", verify: bool = False
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify,
        topics=[AddPartitionsToTxnTopic(name=n, partitions=p) for n, p in topics.items()],
    )


def codes_of(topic_results: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for topic in topic_results
        for result in topic.results_by_partition
    }


def add(
    t: Transactions, version: int, producer: ProducerIdAndEpoch, topics: Topics
) -> dict[tuple[str, int], int]:
    """One transaction, in the form of the version."""
    one = transaction(producer, topics)
    if version >= 4:
        request = AddPartitionsToTxnRequest(transactions=[one])
        answer = t.send(add_partitions_to_txn, request, version)
        assert answer.error_code == 0
        (result,) = answer.results_by_transaction
        assert result.transactional_id == "tx"
        return codes_of(result.topic_results)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=one.transactional_id,
        v3_and_below_producer_id=one.producer_id,
        v3_and_below_producer_epoch=one.producer_epoch,
        v3_and_below_topics=one.topics,
    )
    answer = t.send(add_partitions_to_txn, request, version)
    return codes_of(answer.results_by_topic_v3_and_below)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_added(transactions: Transactions, version: int) -> None:
    producer = transactions.new_producer()
    codes = add(transactions, version, producer, {"t": [0, 2]})
    assert codes == {("t", 0): 0, ("t", 2): 0}
    assert transactions.metadata().partitions == {A, C}
    assert transactions.metadata().client_transaction_version == (2 if version >= 4 else 0)


def test_clients_have_no_business_with_several_transactions(transactions: Transactions) -> None:
    """Where brokers have a listener of their own; theirs is version 4."""
    producer = transactions.new_producer()
    transactions.services.settings = brokers_apart()
    assert add(transactions, 3, producer, {"t": [0]}) == {("t", 0): 0}
    with pytest.raises(ApiError) as refused:
        add(transactions, 4, producer, {"t": [2]})
    assert refused.value.code is E.CLUSTER_AUTHORIZATION_FAILED
    assert transactions.metadata().partitions == {A}


@pytest.mark.parametrize("version", VERSIONS)
def test_all_or_none(transactions: Transactions, version: int) -> None:
    producer = transactions.new_producer()
    assert add(transactions, version, producer, {"t": [0, 9], "nowhere": [0]}) == {
        ("t", 0): E.OPERATION_NOT_ATTEMPTED,
        ("t", 9): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert transactions.metadata().partitions == frozenset()


@pytest.mark.parametrize("version", [v for v in VERSIONS if v < 4])
def test_clients_do_not_add_internal_topics(transactions: Transactions, version: int) -> None:
    """Whether these are there or not; offsets have a request of their own."""
    producer = transactions.new_producer()
    assert add(transactions, version, producer, {"t": [0], "__consumer_offsets": [0]}) == {
        ("t", 0): E.OPERATION_NOT_ATTEMPTED,
        ("__consumer_offsets", 0): E.TOPIC_AUTHORIZATION_FAILED,
    }
    assert transactions.metadata().partitions == frozenset()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("verify", [False, True])
def test_remote_log_metadata_is_part_of_no_transaction(
    transactions: Transactions, version: int, verify: bool
) -> None:
    """Nor for other brokers, who have no business there: a marker would follow."""
    producer = transactions.new_producer()
    if version < 4:
        codes = add(transactions, version, producer, {"t": [0], "__remote_log_metadata": [0]})
    else:
        one = transaction(producer, {"t": [0], "__remote_log_metadata": [0]}, verify=verify)
        request = AddPartitionsToTxnRequest(transactions=[one])
        answer = transactions.send(add_partitions_to_txn, request, version)
        codes = codes_of(answer.results_by_transaction[0].topic_results)
    assert codes == {
        ("t", 0): E.OPERATION_NOT_ATTEMPTED,
        ("__remote_log_metadata", 0): E.TOPIC_AUTHORIZATION_FAILED,
    }
    assert transactions.metadata().partitions == frozenset()


@pytest.mark.parametrize("version", VERSIONS)
def test_fenced_producers_are_told_what_they_know(transactions: Transactions, version: int) -> None:
    codes = add(transactions, version, transactions.fenced(), {"t": [0]})
    assert codes == {
        ("t", 0): E.PRODUCER_FENCED if version >= 2 else E.INVALID_PRODUCER_EPOCH,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_transaction_that_is_too_large(
    transactions: Transactions, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "PARTITIONS_MAX", 1)
    codes = add(transactions, version, transactions.new_producer(), {"t": [0, 1]})
    expected = E.TRANSACTION_ABORTABLE if version >= 4 else E.INVALID_REQUEST
    assert set(codes.values()) == {expected}


@pytest.mark.parametrize("version", [4, 5])
def test_several_transactions_at_once(transactions: Transactions, version: int) -> None:
    """Some added, some verified, some wrong; each has its own outcome."""
    first = transactions.ongoing(A)
    _, second = transactions.init(transactional_id="other")
    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction(first, {"t": [0, 1]}, verify=True),
            transaction(second, {"t": [1]}, name="other"),
            transaction(second, {"t": [2]}, name="nobody"),
        ]
    )
    answer = transactions.send(add_partitions_to_txn, request, version)
    assert {
        r.transactional_id: codes_of(r.topic_results) for r in answer.results_by_transaction
    } == {
        "tx": {("t", 0): 0, ("t", 1): E.TRANSACTION_ABORTABLE},
        "other": {("t", 1): 0},
        "nobody": {("t", 2): E.INVALID_PRODUCER_ID_MAPPING},
    }
    assert transactions.metadata("other").partitions == {B}
    assert transactions.metadata().partitions == {A}


def test_answer_waits_for_all(transactions: Transactions) -> None:
    first = transactions.ongoing(A)
    _, second = transactions.init(transactional_id="other")
    transactions.log.hold = True
    transactions.loop.call_later(0, transactions.log.commit_held)
    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction(first, {"t": [0]}),
            transaction(second, {"t": [1]}, name="other"),
        ]
    )
    answer = transactions.send(add_partitions_to_txn, request, 5)
    assert [codes_of(r.topic_results) for r in answer.results_by_transaction] == [
        {("t", 0): 0},
        {("t", 1): 0},
    ]


def test_no_transactions(transactions: Transactions) -> None:
    answer = transactions.send(add_partitions_to_txn, AddPartitionsToTxnRequest(), 5)
    assert answer.results_by_transaction == []


def test_a_great_many_transactions_leave_others_their_turn(transactions: Transactions) -> None:
    """Each gets its outcome, in the order of the request, but not in one go."""
    count = add_partitions_to_txn.TRANSACTIONS_PER_SLICE * 2 + 1
    producers = [transactions.new_producer(transactional_id=f"tx{n}") for n in range(count)]
    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction(producer, {"t": [0]}, name=f"tx{n}") for n, producer in enumerate(producers)
        ]
    )
    appends = []
    before = transactions.log.appends

    async def watch() -> None:
        for _ in range(4):
            appends.append(transactions.log.appends - before)
            await asyncio.sleep(0)

    task = transactions.loop.create_task(watch())
    answer = transactions.send(add_partitions_to_txn, request, 5)
    transactions.loop.run_until_complete(task)
    assert max(b - a for a, b in pairwise(appends)) <= add_partitions_to_txn.TRANSACTIONS_PER_SLICE
    assert [r.transactional_id for r in answer.results_by_transaction] == [
        f"tx{n}" for n in range(count)
    ]
    assert {
        c for r in answer.results_by_transaction for c in codes_of(r.topic_results).values()
    } == {E.NONE}
