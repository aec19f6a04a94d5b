"""Which transactional batches compaction may drop."""

from protocol.records.batch import BatchHeader
from storage.cleaner.transactions import CleanedTransactions
from storage.index.transaction_index import AbortedTxn

ABORT, COMMIT = 0, 1


def header(offset: int, pid: int = 1, *, transactional: bool = True) -> BatchHeader:
    attributes = 0x10 if transactional else 0
    return BatchHeader(offset, 49, 0, 2, 0, attributes, 0, 0, 0, pid, 0, -1, 1)


def test_data_of_aborted_transactions() -> None:
    """From their first offset to their marker, and only of that producer."""
    transactions = CleanedTransactions()
    transactions.add_aborted([AbortedTxn(1, 5, 9, 10)])
    assert not transactions.on_data_batch(header(4))
    assert transactions.on_data_batch(header(5))
    assert not transactions.on_data_batch(header(6, 2))
    assert transactions.on_data_batch(header(8))
    assert not transactions.on_data_batch(header(7, transactional=False))
    assert not transactions.on_control_batch(header(9), ABORT)
    assert not transactions.on_data_batch(header(10))


def test_abort_marker_is_useless_once_its_data_is_gone() -> None:
    """And is kept, with its index entry, while data was met."""
    txn = AbortedTxn(1, 5, 9, 10)
    kept: list[AbortedTxn] = []
    transactions = CleanedTransactions()
    transactions.keep_aborted = kept.append
    transactions.add_aborted([txn])
    assert transactions.on_control_batch(header(9), ABORT)
    assert kept == []
    transactions = CleanedTransactions()
    transactions.keep_aborted = kept.append
    transactions.add_aborted([txn])
    transactions.on_data_batch(header(5))
    assert not transactions.on_control_batch(header(9), ABORT)
    assert kept == [txn]


def test_commit_marker_is_useless_once_its_data_is_gone() -> None:
    """One transaction's data does not keep the next one's marker."""
    transactions = CleanedTransactions()
    transactions.on_data_batch(header(5))
    assert not transactions.on_control_batch(header(6), COMMIT)
    assert transactions.on_control_batch(header(7), COMMIT)


def test_other_control_records_stay() -> None:
    """They are not of a transaction; emptied ones are of none any more."""
    transactions = CleanedTransactions()
    assert not transactions.on_control_batch(header(5), 2)
    assert transactions.on_control_batch(header(6), None)


def test_two_aborted_transactions_of_one_producer() -> None:
    """Each ends at its own marker."""
    transactions = CleanedTransactions()
    transactions.add_aborted([AbortedTxn(1, 20, 29, 30), AbortedTxn(1, 5, 9, 10)])
    assert transactions.on_data_batch(header(5))
    assert not transactions.on_control_batch(header(9), ABORT)
    assert not transactions.on_data_batch(header(15))
    assert not transactions.on_control_batch(header(16), COMMIT)
    assert transactions.on_data_batch(header(20))
    assert not transactions.on_control_batch(header(29), ABORT)
