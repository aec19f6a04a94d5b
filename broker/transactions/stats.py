"""What the transaction coordinator has done since the start; read at scrape time."""

from dataclasses import dataclass


@dataclass(slots=True)
class TransactionStats:
    """Counters only grow."""

    loaded_partitions: int = 0
    loaded_records: int = 0
    loading_ms: float = 0.0
    load_failures: int = 0
    skipped_records: int = 0
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
    reloads: int = 0
    """Times that a partition was read anew, because nobody knew whether a record was written."""
