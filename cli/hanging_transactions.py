"""Hanging transactions, which no coordinator will end (KIP-664).

A log has a transaction open, and its coordinator does not know it there: no marker will come,
the last stable offset stays, and readers of committed records wait for ever.

    open in a log for longer than  ──┬── its producer has no transactional id
    any transaction may take         ├── the id has no transaction under way
                                     └── its transaction is elsewhere ─────────> hangs

Source: Kafka, TransactionsCommand.java (FindHangingTransactionsCommand).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

UNDER_WAY: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})

PARTITIONS_PER_REQUEST: Final = 500


class OpenTransaction(NamedTuple):
    """A transaction that a log has open."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


def open_transactions(admin: Any, partitions: Iterable[Any]) -> Iterator[OpenTransaction]:
    """Open transactions of the partitions, by their leaders."""
    wanted = list(partitions)
    for first in range(0, len(wanted), PARTITIONS_PER_REQUEST):
        answers = admin.describe_producers(wanted[first : first + PARTITIONS_PER_REQUEST])
        for where, answer in sorted(answers.items()):
            for producer in answer.active_producers:
                if producer.current_transaction_start_offset >= 0:
                    yield OpenTransaction(
                        where.topic,
                        where.partition,
                        producer.producer_id,
                        producer.producer_epoch,
                        producer.coordinator_epoch,
                        producer.current_transaction_start_offset,
                        producer.last_timestamp,
                    )


def find_hanging(
    admin: Any, partitions: Iterable[Any], *, now_ms: int, timeout_ms: int
) -> list[OpenTransaction]:
    """The open ones without a write for `timeout_ms` that no coordinator will end."""
    candidates = [
        found
        for found in open_transactions(admin, partitions)
        if now_ms - found.last_timestamp_ms > timeout_ms
    ]
    if not candidates:
        return []
    producers = sorted({found.producer_id for found in candidates})
    listings = admin.list_transactions(producer_id_filters=producers)
    names = {
        listing.producer_id: listing.transactional_id
        for listings_of_one in listings.values()
        for listing in listings_of_one
    }
    described = admin.describe_transactions(sorted(names.values())) if names else {}
    hanging = []
    for found in candidates:
        transaction = described.get(names.get(found.producer_id, ""))
        if (
            transaction is None
            or transaction.state not in UNDER_WAY
            or (found.topic, found.partition)
            not in {(where.topic, where.partition) for where in transaction.topic_partitions}
        ):
            hanging.append(found)
    return hanging
