"""Producer state entry: the batches and the transaction of one idempotent producer (KIP-98).

The last five batches are kept because a producer may have five requests in flight: any of them
may be sent again, and the answer to a retry must be the answer to the original.
"""

from typing import Final, NamedTuple

from typing_extensions import override

BATCHES_MAX: Final = 5
"""Batches remembered per producer: `max.in.flight.requests.per.connection` of an idempotent one."""

SEQUENCE_MAX: Final = 0x7FFF_FFFF
"""Sequences run 0 .. 2**31 - 1, then start again at 0."""

NO_SEQUENCE: Final = -1
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1


class BatchMetadata(NamedTuple):
    """One batch in the log, as the retry of it is recognised."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the batch's first record."""
        first = self.last_sequence - self.offset_delta
        # A batch without sequences (-1, offset commits) goes through the same arithmetic in Kafka.
        return first if first >= 0 else first + SEQUENCE_MAX + 1

    @property
    def first_offset(self) -> int:
        """Offset of the batch's first record."""
        return self.last_offset - self.offset_delta


class DuplicateInfo(NamedTuple):
    """A duplicate of a batch in the log, with the offsets that its producer got the first time.

    Both offsets are inclusive; `timestamp` is the batch's max timestamp in ms.
    """

    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTxn(NamedTuple):
    """A transaction that a marker has just ended. `last_offset` is the marker's own offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerEntry:
    """State of one producer in one partition; belongs to `ProducerStateManager`.

    Attributes:
        batches: Up to five, oldest first; all of the epoch `epoch`.
        last_timestamp: Of the last batch or marker, ms; what idleness is measured from.
        coordinator_epoch: Of the transaction coordinator that wrote the last marker, -1 before one.
        txn_first_offset: First offset of the transaction that is open, -1 when none is.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record of the current epoch, -1 when there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """Offset of the last data record of the current epoch, -1 when there is none."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        """Last minus first offset of the last batch, 0 when there is none."""
        return self.batches[-1].offset_delta if self.batches else 0

    def move_to_epoch(self, epoch: int) -> None:
        """Forget the batches of another epoch: sequences start again with each."""
        if self.epoch != epoch:
            self.epoch = epoch
            self.batches.clear()

    def add_batch(self, batch: BatchMetadata) -> None:
        """Remember a batch of the current epoch, dropping the oldest beyond five."""
        batches = self.batches
        if len(batches) == BATCHES_MAX:
            del batches[0]
        batches.append(batch)
        self.last_timestamp = batch.timestamp

    @override
    def __repr__(self) -> str:
        return (
            f"ProducerEntry(producer_id={self.producer_id}, epoch={self.epoch}, "
            f"coordinator_epoch={self.coordinator_epoch}, last_timestamp={self.last_timestamp}, "
            f"txn_first_offset={self.txn_first_offset}, batches={self.batches})"
        )
