"""What the transaction coordinator has done since the start; read at scrape time."""

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
    """Transactions that were aborted because their transactional id began anew."""
    expired_ids: int = 0
    marker_retries: int = 0
    """Times that markers were sent once more because partitions were not available."""
