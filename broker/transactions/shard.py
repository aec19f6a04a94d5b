"""What the coordinator knows of one partition of `__transaction_state`."""

from broker.transactions.transaction_log import TransactionLog
from broker.transactions.transaction_metadata import TransactionMetadata

TRANSACTIONAL_IDS_MAX = 100_000
"""Transactional ids in one shard; more are refused, so that a stranger who makes up names cannot
fill memory. With 50 partitions this is five million on a broker."""


class TooManyTransactionalIdsError(Exception):
    """A shard holds `TRANSACTIONAL_IDS_MAX` already. Client sees POLICY_VIOLATION."""


class TransactionShard:
    """Transactional ids whose coordinator is the leader of one partition.

    A shard lives from a load to a resignation; the next load makes a new one, so whoever comes back
    to a shard after a wait asks `log.is_closed`.
    """

    __slots__ = ("coordinator_epoch", "log", "partition_index", "transactions")

    def __init__(self, partition_index: int, coordinator_epoch: int, log: TransactionLog) -> None:
        self.partition_index = partition_index
        self.coordinator_epoch = coordinator_epoch
        self.log = log
        self.transactions: dict[str, TransactionMetadata] = {}

    def add(self, metadata: TransactionMetadata) -> None:
        """Take in a transactional id that is not in the log yet.

        Raises:
            TooManyTransactionalIdsError: No further one fits.
        """
        if len(self.transactions) >= TRANSACTIONAL_IDS_MAX:
            raise TooManyTransactionalIdsError(metadata.transactional_id)
        self.transactions[metadata.transactional_id] = metadata

    def add_loaded(self, metadata: TransactionMetadata) -> None:
        """Take in one that the log knows; it counts, but is never refused."""
        self.transactions[metadata.transactional_id] = metadata

    def remove(self, transactional_id: str) -> None:
        """Forget one: it has expired, or its first record was refused."""
        self.transactions.pop(transactional_id, None)
