"""The rules of sequences, epochs and markers (KIP-98, KIP-890), on what is known of one producer.

They change nothing. `ProducerStateManager.check` says which of them a batch has to keep.

Source: Kafka, ProducerAppendInfo.java.
"""

from storage.errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from storage.producers.entry import DuplicateInfo, ProducerEntry
from storage.producers.verification import Verification
from storage.types.topic_partition import TopicPartition


def find_duplicate(
    entry: ProducerEntry, producer_epoch: int, base_sequence: int, last_sequence: int
) -> DuplicateInfo | None:
    """What the original of a batch got, if it is one of the last five; else None."""
    if producer_epoch == entry.epoch:
        for batch in entry.batches:
            if batch[0] == last_sequence and batch.first_sequence == base_sequence:
                return DuplicateInfo(batch.first_offset, batch[1], batch[3])
    return None


def check_first_sequence(
    topic_partition: TopicPartition,
    entry: ProducerEntry | None,
    verification: Verification,
    producer_id: int,
    base_sequence: int,
) -> None:
    """Whether the first batch of a verified transaction may have that sequence.

    Raises:
        OutOfOrderSequenceError: A batch before it is missing.
    """
    if (
        verification.supports_epoch_bump
        and base_sequence != 0
        and (entry is None or not entry.batches)
    ):
        raise OutOfOrderSequenceError(
            f"producer {producer_id} begins with sequence {base_sequence} instead of 0 in "
            f"{topic_partition}"
        )
    if base_sequence > verification.lowest_sequence:
        raise out_of_order(
            topic_partition, producer_id, base_sequence, verification.lowest_sequence
        )


def check_marker(
    topic_partition: TopicPartition,
    entry: ProducerEntry,
    producer_epoch: int,
    coordinator_epoch: int,
    version: int,
) -> None:
    """Whether a marker may end the producer's transaction.

    Raises:
        InvalidProducerEpochError: The producer has moved on.
        TransactionCoordinatorFencedError: It comes from a coordinator that has been replaced.
    """
    # From version 2 on the coordinator bumps the epoch before it writes a marker, so an equal
    # one is late or repeated (KIP-890).
    if producer_epoch < entry.epoch or (version >= 2 and producer_epoch == entry.epoch):
        raise stale_epoch(topic_partition, entry.producer_id, producer_epoch, entry.epoch)
    if coordinator_epoch < entry.coordinator_epoch:
        raise TransactionCoordinatorFencedError(
            f"marker for producer {entry.producer_id} in {topic_partition} comes from "
            f"coordinator epoch {coordinator_epoch}, current is {entry.coordinator_epoch}"
        )


def out_of_order(
    topic_partition: TopicPartition, producer_id: int, base_sequence: int, last: int
) -> Exception:
    """The error of a sequence that does not follow on the last one written."""
    return OutOfOrderSequenceError(
        f"producer {producer_id} sent sequence {base_sequence} in {topic_partition}, "
        f"the last one written is {last}"
    )


def used_before(topic_partition: TopicPartition, producer_id: int, base_sequence: int) -> Exception:
    """The error of a sequence that a transaction which has ended had for another batch.

    librdkafka gives it out again after an abort, if a batch that it purged had been written without
    its knowing. Taken for a retry the new one would be acknowledged, and be nowhere.
    """
    return OutOfOrderSequenceError(
        f"producer {producer_id} sent sequence {base_sequence} in {topic_partition} again, after "
        "the transaction had ended"
    )


def stale_epoch(
    topic_partition: TopicPartition, producer_id: int, producer_epoch: int, current: int
) -> Exception:
    """The error of an epoch below the last one seen."""
    return InvalidProducerEpochError(
        f"producer {producer_id} has epoch {producer_epoch} in {topic_partition}, "
        f"the last one seen is {current}"
    )
