"""What a transaction marker says, before it is a batch (`protocol.records.control`)."""

from typing import NamedTuple


class TransactionMarker(NamedTuple):
    """How a producer's transaction ends, in every partition it wrote to.

    Attributes:
        producer_id: Whose.
        producer_epoch: Of the marker. With transaction version 2 one above the epoch that the
            transaction was written in, else that epoch itself.
        commit: Or abort.
        coordinator_epoch: Leader epoch of the coordinator's partition of `__transaction_state`.
        transaction_version: 0, 1 or 2; with 2 an equal epoch in the log means a late marker.
    """

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int
