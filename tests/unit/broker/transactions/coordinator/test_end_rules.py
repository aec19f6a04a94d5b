"""The two tables of EndTxn, cell by cell."""

import pytest

from broker.transactions.coordinator.end_rules import check_end, check_end_before_version_2
from broker.transactions.coordinator.transaction_metadata import (
    PRODUCER_EPOCH_MAX,
    TransactionMetadata,
)
from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode

ID, EPOCH = 10, 5
GOES_ON = None
NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
INVALID = ErrorCode.INVALID_TXN_STATE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def metadata(state: S, epoch: int = EPOCH) -> TransactionMetadata:
    found = TransactionMetadata("tx", ID, timeout_ms=1, last_update_timestamp_ms=1)
    found.state = state
    found.producer_epoch = epoch
    return found


BEFORE_2 = {
    S.ONGOING: (GOES_ON, GOES_ON),
    S.PREPARE_COMMIT: (BUSY, INVALID),
    S.PREPARE_ABORT: (INVALID, BUSY),
    S.COMPLETE_COMMIT: (NONE, INVALID),
    S.COMPLETE_ABORT: (INVALID, NONE),
    S.EMPTY: (INVALID, INVALID),
}


@pytest.mark.parametrize("state", BEFORE_2)
def test_before_version_2(state: S) -> None:
    found = metadata(state)
    for commit, expected in zip((True, False), BEFORE_2[state], strict=True):
        for producer, code in (
            ((ID, EPOCH), expected),
            ((ID, EPOCH - 1), FENCED),
            ((ID, EPOCH + 1), FENCED),
            ((ID + 1, EPOCH), MAPPING),
        ):
            checked = check_end_before_version_2(
                found, ProducerIdAndEpoch(*producer), commit=commit
            )
            assert checked is code, (producer, commit)


# Retry: commit, abort; current epoch: commit, abort.
FROM_2 = {
    S.ONGOING: (FENCED, FENCED, GOES_ON, GOES_ON),
    S.PREPARE_COMMIT: (BUSY, INVALID, FENCED, FENCED),
    S.PREPARE_ABORT: (INVALID, BUSY, FENCED, FENCED),
    S.COMPLETE_COMMIT: (NONE, INVALID, INVALID, GOES_ON),
    S.COMPLETE_ABORT: (INVALID, NONE, INVALID, GOES_ON),
    S.EMPTY: (FENCED, FENCED, INVALID, GOES_ON),
}


@pytest.mark.parametrize("state", FROM_2)
def test_from_version_2_on(state: S) -> None:
    found = metadata(state)
    asked = [
        (ProducerIdAndEpoch(ID, epoch), commit)
        for epoch in (EPOCH - 1, EPOCH)
        for commit in (True, False)
    ]
    answers = tuple(check_end(found, producer, commit=commit) for producer, commit in asked)
    assert answers == FROM_2[state]
    for commit in (True, False):
        for epoch in (EPOCH - 2, EPOCH + 1):
            assert check_end(found, ProducerIdAndEpoch(ID, epoch), commit=commit) is FENCED
        assert check_end(found, ProducerIdAndEpoch(ID + 1, EPOCH), commit=commit) is MAPPING


@pytest.mark.parametrize("pending", [S.PREPARE_COMMIT, S.COMPLETE_ABORT, S.DEAD])
def test_what_is_pending_comes_first(pending: S) -> None:
    """Version 2: a producer id may be on its way. Before, only its own producer has to wait."""
    found = metadata(S.ONGOING)
    found.pending = pending
    for producer in (ProducerIdAndEpoch(ID, EPOCH), ProducerIdAndEpoch(ID + 1, 0)):
        assert check_end(found, producer, commit=True) is BUSY
    old = check_end_before_version_2
    assert old(found, ProducerIdAndEpoch(ID, EPOCH), commit=True) is BUSY
    assert old(found, ProducerIdAndEpoch(ID + 1, 0), commit=True) is MAPPING
    assert old(found, ProducerIdAndEpoch(ID, EPOCH - 1), commit=True) is FENCED


@pytest.mark.parametrize(
    ("state", "answers"),
    [
        (S.COMPLETE_COMMIT, (NONE, INVALID)),
        (S.COMPLETE_ABORT, (INVALID, NONE)),
        (S.EMPTY, (FENCED, FENCED)),
        (S.ONGOING, (FENCED, FENCED)),
    ],
)
def test_retry_across_a_change_of_the_producer_id(
    state: S, answers: tuple[ErrorCode, ErrorCode]
) -> None:
    found = metadata(state, epoch=0)
    found.previous_producer_id = ID - 1
    last = ProducerIdAndEpoch(ID - 1, PRODUCER_EPOCH_MAX - 1)
    asked = tuple(check_end(found, last, commit=commit) for commit in (True, False))
    assert asked == answers
    not_last = ProducerIdAndEpoch(ID - 1, PRODUCER_EPOCH_MAX - 2)
    assert check_end(found, not_last, commit=True) is MAPPING


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_ABORT])
def test_nobody_is_told_the_last_epoch_of_all(state: S) -> None:
    found = metadata(state, epoch=PRODUCER_EPOCH_MAX)
    for epoch in (PRODUCER_EPOCH_MAX - 1, PRODUCER_EPOCH_MAX):
        assert check_end(found, ProducerIdAndEpoch(ID, epoch), commit=False) is FENCED
