"""Validation of EndTxn, as one table for each generation of clients.

Before version 2 a transaction is identified by its state: a completed one may be ended again the
same way, which is a retry. A retry of the last transaction is like the end of one that never began.

    state            commit                      abort
    Ongoing          goes on                     goes on
    PrepareCommit    CONCURRENT_TRANSACTIONS     INVALID_TXN_STATE
    PrepareAbort     INVALID_TXN_STATE           CONCURRENT_TRANSACTIONS
    CompleteCommit   NONE                        INVALID_TXN_STATE
    CompleteAbort    INVALID_TXN_STATE           NONE
    Empty            INVALID_TXN_STATE           INVALID_TXN_STATE

With version 2 every transaction has an epoch of its own, so a retry is identified by the epoch
before the current one. An abort with the current one is that of a transaction unknown to the
coordinator: it ends nothing, but raises the epoch, which fences writes that are still under way.

    state            retry commit   retry abort    commit             abort
    Ongoing          fenced         fenced         goes on            goes on
    PrepareCommit    CONCURRENT     INVALID_STATE  fenced             fenced
    PrepareAbort     INVALID_STATE  CONCURRENT     fenced             fenced
    CompleteCommit   NONE           INVALID_STATE  INVALID_STATE      goes on
    CompleteAbort    INVALID_STATE  NONE           INVALID_STATE      goes on
    Empty            fenced         fenced         INVALID_STATE      goes on

Source: Kafka, TransactionCoordinator.scala (endTransaction); KIP-890.
"""

from broker.transactions.coordinator.transaction_metadata import (
    PRODUCER_EPOCH_MAX,
    TransactionMetadata,
)
from broker.transactions.coordinator.transaction_state import TransactionState
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode

_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def check_end_before_version_2(
    metadata: TransactionMetadata, producer: ProducerIdAndEpoch, *, commit: bool
) -> ErrorCode | None:
    """The answer, or None when the transaction may end now."""
    if metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if metadata.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING:
        return None
    if metadata.state is TransactionState.EMPTY:
        return ErrorCode.INVALID_TXN_STATE
    return _repeated(metadata, commit=commit)


def check_end(
    metadata: TransactionMetadata, producer: ProducerIdAndEpoch, *, commit: bool
) -> ErrorCode | None:
    """The answer, or None when the transaction may end now; for version 2 and up."""
    if metadata.pending is not None:
        # First of all: a new producer id may be pending, which its owner has already.
        return ErrorCode.CONCURRENT_TRANSACTIONS
    retries_rotation = (
        metadata.producer_epoch == 0
        and producer.producer_id == metadata.previous_producer_id
        and producer.producer_id != metadata.producer_id
        and producer.epoch == PRODUCER_EPOCH_MAX - 1
    )
    if metadata.producer_id != producer.producer_id and not retries_rotation:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_retry = retries_rotation or metadata.producer_epoch == producer.epoch + 1
    is_current = metadata.producer_id == producer.producer_id and (
        metadata.producer_epoch == producer.epoch
    )
    if metadata.state.is_prepared:
        return _repeated(metadata, commit=commit) if is_retry else ErrorCode.PRODUCER_FENCED
    if metadata.is_fenced_for_good:
        # To answer a retry would hand out the epoch reserved for fencing.
        return ErrorCode.PRODUCER_FENCED
    if metadata.state in _COMPLETE and is_retry:
        return _repeated(metadata, commit=commit)
    if not is_current:
        return ErrorCode.PRODUCER_FENCED
    if metadata.state is TransactionState.ONGOING or not commit:
        return None
    return ErrorCode.INVALID_TXN_STATE


def _repeated(metadata: TransactionMetadata, *, commit: bool) -> ErrorCode:
    """The result of a repeated end: NONE or a retriable error; another outcome is invalid."""
    if commit is not (metadata.state in _COMMITTED):
        return ErrorCode.INVALID_TXN_STATE
    if metadata.state in _COMPLETE:
        return ErrorCode.NONE
    return ErrorCode.CONCURRENT_TRANSACTIONS
