"""DescribeTransactions, end to end."""

from typing import Any

import pytest

from broker.handlers import describe_transactions
from protocol.error_codes import ErrorCode
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.harness.transactions import OFFSETS, TIMEOUT_MS, A, B
from tests.unit.broker.handlers.transactions_fixture import Transactions


def describe(t: Transactions, *names: str) -> list[Any]:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    found: list[Any] = t.send(describe_transactions, request, 0).transaction_states
    return found


def test_ongoing_transaction(transactions: Transactions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_transactions, "PARTITIONS_PER_SLICE", 1)
    producer = transactions.ongoing(B, A, OFFSETS)
    (found,) = describe(transactions, "tx")
    assert (found.error_code, found.transactional_id) == (0, "tx")
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", TIMEOUT_MS)
    assert (found.producer_id, found.producer_epoch) == producer
    assert found.transaction_start_time_ms == transactions.clock.now_ms()
    assert {topic.topic: topic.partitions for topic in found.topics} == {
        "t": [0, 1],
        "__consumer_offsets": [7],
    }


def test_partitions_that_miss_their_markers(transactions: Transactions) -> None:
    producer = transactions.ongoing(A, B)
    transactions.data.failing[B] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    transactions.end(producer)
    (found,) = describe(transactions, "tx")
    assert found.transaction_state == "PrepareCommit"
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [1])]


def test_transaction_that_never_began(transactions: Transactions) -> None:
    transactions.new_producer()
    (found,) = describe(transactions, "tx")
    assert (found.transaction_state, found.transaction_start_time_ms) == ("Empty", -1)


def test_names_that_are_not_known(transactions: Transactions) -> None:
    found = describe(transactions, "a", "", "a")
    assert [(state.transactional_id, state.error_code) for state in found] == [
        ("a", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        ("", ErrorCode.INVALID_REQUEST),
    ]
    transactions.transactions.on_resigned(0)
    assert describe(transactions, "a")[0].error_code == ErrorCode.NOT_COORDINATOR
