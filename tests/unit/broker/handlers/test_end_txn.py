"""EndTxn: every served version, end to end."""

from typing import Any

import pytest

from broker.handlers import end_txn
from broker.transactions.coordinator.transaction_state import TransactionState
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from protocol.messages.end_txn import EndTxnRequest
from tests.fakes.broker.wire import versions_of
from tests.harness.transactions import A
from tests.unit.broker.handlers.transactions_fixture import Transactions

VERSIONS = versions_of(end_txn)


def end(t: Transactions, version: int, producer: ProducerIdAndEpoch, *, commit: bool = True) -> Any:
    request = EndTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    return t.send(end_txn, request, version)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_transaction_ends(transactions: Transactions, version: int, commit: bool) -> None:
    """From version 5 on the client learns its next epoch."""
    producer = transactions.ongoing(A)
    answer = end(transactions, version, producer, commit=commit)
    following = (producer.producer_id, 1) if version >= 5 else (-1, -1)
    assert answer.error_code == 0
    assert (answer.producer_id, answer.producer_epoch) == following
    assert transactions.state is (
        TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
    )
    assert end(transactions, version, producer, commit=commit).error_code == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_fenced_producers_are_told_what_they_know(transactions: Transactions, version: int) -> None:
    answer = end(transactions, version, transactions.fenced())
    assert answer.error_code == (
        ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    )
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_answer_may_take_its_time(transactions: Transactions) -> None:
    producer = transactions.ongoing(A)
    transactions.log.hold = True
    transactions.loop.call_later(0, transactions.log.commit_held)
    assert end(transactions, 5, producer).producer_epoch == 1
