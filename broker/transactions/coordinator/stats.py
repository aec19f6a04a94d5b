"""Counters of the transaction coordinator, read at scrape time."""

from dataclasses import dataclass

from broker.coordinator.stats import LoadStats


@dataclass(slots=True)
class TransactionStats(LoadStats):
    """Counters only grow."""

    commits: int = 0
    """Transactions that were committed and have all their markers."""
    aborts: int = 0
    """As `commits`, and aborts of nothing."""
    timeouts: int = 0
    """Transactions that were aborted because their time was up."""
    fenced: int = 0
    """Transactions that were aborted by an InitProducerId of their transactional id."""
    expired_ids: int = 0
    marker_retries: int = 0
    """Retries of markers because partitions were not available."""
