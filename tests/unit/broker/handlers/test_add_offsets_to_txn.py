"""AddOffsetsToTxn: every served version, end to end."""

from typing import Any

import pytest

from broker.handlers import add_offsets_to_txn
from broker.transactions.coordinator import add_partitions as partitions
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tests.fakes.broker.wire import versions_of
from tests.harness.transactions import OFFSETS
from tests.unit.broker.handlers.transactions_fixture import Transactions

VERSIONS = versions_of(add_offsets_to_txn)


def add(t: Transactions, version: int, producer: ProducerIdAndEpoch) -> Any:
    request = AddOffsetsToTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id="g",
    )
    return t.send(add_offsets_to_txn, request, version).error_code


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_of_the_group_is_added(transactions: Transactions, version: int) -> None:
    producer = transactions.new_producer()
    assert add(transactions, version, producer) == 0
    assert transactions.metadata().partitions == {OFFSETS}
    assert transactions.metadata().client_transaction_version == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_fenced_producers_are_told_what_they_know(transactions: Transactions, version: int) -> None:
    assert add(transactions, version, transactions.fenced()) == (
        ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_transaction_that_is_too_large(
    transactions: Transactions, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "PARTITIONS_MAX", 0)
    assert add(transactions, version, transactions.new_producer()) == (
        ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_REQUEST
    )
