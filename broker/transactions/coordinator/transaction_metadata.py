"""A transactional id: its producer, its transaction, and their state transitions.

A transition has two phases. `prepare_...` makes it and marks the transactional id as pending; once
its record is committed, `complete` applies it:

    prepare_x ──> Transition ──> record appended ──┬── committed ──> complete(transition)
        pending = its state                        └── refused ────> cancel()

While a transition is pending no other may be prepared: requests get CONCURRENT_TRANSACTIONS.

Producer epochs, up to 32767, of which a client is never given the last one, so that there is always
one left to fence it with:

    transaction.version 0, 1   the epoch grows with InitProducerId and with a time-out
    transaction.version 2      it also grows with each end of a transaction, and the markers carry
                               the new one; after 32766 a new producer id takes over with epoch 0:
                               `next_producer_id` in Prepare..., `producer_id` in Complete...

`last_producer_epoch` is the previous epoch, if its owner may retry with it because a response was
lost; -1 when it must not. It is not in the log.

Source: Kafka, TransactionMetadata.java; KIP-360, KIP-890.
"""

from functools import lru_cache
from typing import NamedTuple

from broker.transactions.coordinator.transaction_state import TransactionState
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.internal.transaction_log import (
    TransactionLogValue,
    encode_topics,
    encode_transaction_log_key,
    encode_with_topics,
)
from storage.types.topic_partition import TopicPartition, indexes_by_topic

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
PRODUCER_EPOCH_MAX = 0x7FFF

_NO_PARTITIONS: frozenset[TopicPartition] = frozenset()

EPOCH_BUMP_VERSION = 2
"""From this transaction.version on every transaction has an epoch of its own."""


class IllegalTransitionError(Exception):
    """A transition that the state machine does not allow; a bug of the broker, not of a client."""


class ProducerFencedError(Exception):
    """The client's epoch is neither the current nor the previous one. Code PRODUCER_FENCED."""


class Transition(NamedTuple):
    """The new state of a transactional id, applied once its record is committed.

    As of the transition after this one the current producer id is the previous one.
    """

    state: TransactionState
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    partitions: frozenset[TopicPartition]
    start_timestamp_ms: int
    last_update_timestamp_ms: int
    client_transaction_version: int

    def to_record(self, version: int) -> bytes:
        """Encode as a value in this version of the record."""
        partitions = self.partitions
        if self.state is TransactionState.EMPTY:
            topics = encode_topics(None, version)
        elif len(partitions) <= _REMEMBERED_PARTITIONS_MAX:
            topics = _remembered_topics(partitions, version)
        else:
            topics = _topics(partitions, version)
        previous = self.previous_producer_id
        return encode_with_topics(
            version,
            self.producer_id,
            self.producer_epoch,
            self.timeout_ms,
            self.state,
            topics,
            self.last_update_timestamp_ms,
            self.start_timestamp_ms,
            # It only matters when it is another one; Kafka never writes it.
            NO_PRODUCER_ID if previous == self.producer_id else previous,
            self.next_producer_id,
            self.client_transaction_version,
        )


def _topics(partitions: frozenset[TopicPartition], version: int) -> bytes:
    return encode_topics(indexes_by_topic(sorted(partitions)), version)


_REMEMBERED_PARTITIONS_MAX = 16

_remembered_topics = lru_cache(maxsize=1024)(_topics)
"""An application's transactions have the same partitions again and again. Large ones do not: they
would take memory, and are rare."""


def is_epoch_exhausted(epoch: int) -> bool:
    """Whether a client must not get a higher epoch of the same producer id."""
    return epoch >= PRODUCER_EPOCH_MAX - 1


class TransactionMetadata:
    """See the module. Attributes are changed by `complete` only; read them freely.

    `record_key` is that of its records. `begun_ms` is when its transaction began, on the monotonic
    clock of this coordinator, which is not in the log: whoever begins one or loads it sets it.
    """

    __slots__ = (
        "begun_ms",
        "client_transaction_version",
        "last_producer_epoch",
        "last_update_timestamp_ms",
        "next_producer_id",
        "partitions",
        "pending",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "record_key",
        "start_timestamp_ms",
        "state",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        *,
        timeout_ms: int,
        last_update_timestamp_ms: int,
    ) -> None:
        """A new transactional id, without an epoch yet."""
        self.transactional_id = transactional_id
        self.record_key = encode_transaction_log_key(transactional_id)
        self.producer_id = producer_id
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.last_producer_epoch = NO_PRODUCER_EPOCH
        self.timeout_ms = timeout_ms
        self.state = TransactionState.EMPTY
        self.pending: TransactionState | None = None
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.start_timestamp_ms = NO_TIMESTAMP
        self.begun_ms = 0.0
        self.last_update_timestamp_ms = last_update_timestamp_ms
        self.client_transaction_version = 0

    @classmethod
    def from_record(
        cls, transactional_id: str, value: TransactionLogValue
    ) -> "TransactionMetadata":
        """Decode a record of the log.

        Raises:
            ValueError: No such state, or one that is never written, or no producer.
        """
        if value.producer_id < 0 or value.producer_epoch < 0:
            raise ValueError(f"producer {value.producer_id} of epoch {value.producer_epoch}")
        metadata = cls(
            transactional_id,
            value.producer_id,
            timeout_ms=value.transaction_timeout_ms,
            last_update_timestamp_ms=value.last_update_timestamp_ms,
        )
        metadata.state = TransactionState(value.state)
        if metadata.state in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE):
            raise ValueError(f"state {metadata.state.label} in the log")
        metadata.previous_producer_id = value.previous_producer_id
        metadata.next_producer_id = value.next_producer_id
        metadata.producer_epoch = value.producer_epoch
        if metadata.state is not TransactionState.EMPTY and value.partitions:
            metadata.partitions = frozenset(
                TopicPartition(topic, index)
                for topic, indexes in value.partitions.items()
                for index in indexes
            )
        metadata.start_timestamp_ms = value.start_timestamp_ms
        metadata.client_transaction_version = value.client_transaction_version
        return metadata

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The current producer id and epoch."""
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next epoch needs a new producer id."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def is_fenced_for_good(self) -> bool:
        """Whether the last epoch was used for fencing, so that no producer may write with it."""
        return self.producer_epoch >= PRODUCER_EPOCH_MAX and not self.state.is_prepared

    def needs_producer_id(self, expected_epoch: int | None) -> bool:
        """Whether the next InitProducerId needs another producer id."""
        if not self.is_epoch_exhausted:
            return False
        if expected_epoch in (None, self.producer_epoch):
            return True
        # A retry would get the epoch reserved for fencing.
        return self.is_fenced_for_good and expected_epoch == self.last_producer_epoch

    @property
    def is_commit(self) -> bool:
        """How a prepared transaction ends."""
        return self.state is TransactionState.PREPARE_COMMIT

    # -- InitProducerId --

    def prepare_next_epoch(
        self, *, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Transition:
        """Initialize the producer with the next epoch.

        Args:
            timeout_ms: Of its transactions from now on.
            expected_epoch: The client's epoch (KIP-360); None: it is a new process, and
                producers with earlier epochs are fenced.
            now_ms: The time.

        Raises:
            ProducerFencedError: Another process was initialized since.
        """
        previous_id = self.producer_id
        if expected_epoch is None:
            epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        elif self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
            epoch, last_epoch = self.producer_epoch + 1, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            # Its first request arrived, the response was lost.
            epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            previous_id = self.previous_producer_id
        else:
            raise ProducerFencedError
        if epoch >= PRODUCER_EPOCH_MAX:
            raise IllegalTransitionError(f"no epoch left for producer id {self.producer_id}")
        return self._prepare(
            self._as_is(TransactionState.EMPTY)._replace(
                previous_producer_id=previous_id,
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                timeout_ms=timeout_ms,
                partitions=frozenset(),
                start_timestamp_ms=NO_TIMESTAMP,
                last_update_timestamp_ms=now_ms,
            )
        )

    def prepare_producer_id_rotation(
        self, producer_id: int, *, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Transition:
        """Initialize the producer with another producer id, since its epochs are exhausted.

        With `expected_epoch` it may retry, if the response is lost.
        """
        return self._prepare(
            self._as_is(TransactionState.EMPTY)._replace(
                producer_id=producer_id,
                producer_epoch=0,
                last_producer_epoch=(
                    NO_PRODUCER_EPOCH if expected_epoch is None else expected_epoch
                ),
                timeout_ms=timeout_ms,
                partitions=frozenset(),
                start_timestamp_ms=NO_TIMESTAMP,
                last_update_timestamp_ms=now_ms,
            )
        )

    # -- a transaction --

    def prepare_add_partitions(
        self,
        partitions: frozenset[TopicPartition],
        *,
        client_transaction_version: int,
        now_ms: int,
    ) -> Transition:
        """Add partitions to the transaction; the first one begins it."""
        begins = self.state is not TransactionState.ONGOING
        return self._prepare(
            Transition(
                TransactionState.ONGOING,
                self.producer_id,
                self.producer_id,
                self.next_producer_id,
                self.producer_epoch,
                self.last_producer_epoch,
                self.timeout_ms,
                self.partitions | partitions,
                now_ms if begins else self.start_timestamp_ms,
                now_ms,
                client_transaction_version,
            )
        )

    def prepare_end(
        self,
        *,
        commit: bool,
        client_transaction_version: int,
        now_ms: int,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> Transition:
        """Decide the outcome; the epoch grows with transaction.version 2.

        Without partitions, in Empty or Complete..., it is an abort of nothing: only the epoch
        changes (version 2, where a client may not know whether its transaction had begun).
        """
        bumps = client_transaction_version >= EPOCH_BUMP_VERSION
        if self.state is not TransactionState.ONGOING and not bumps:
            raise IllegalTransitionError(f"{self.state.label} cannot end before version 2")
        return self._prepare(
            self._ending(
                TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
                client_transaction_version,
                now_ms,
                next_producer_id=next_producer_id,
                epoch=self.producer_epoch + bumps,
                last_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            )
        )

    def prepare_fence(self, *, client_transaction_version: int, now_ms: int) -> Transition:
        """Abort by the coordinator, with an epoch that fences the producer.

        No client gets that epoch: the next InitProducerId takes another one. With version 2 the
        producer may still end its transaction with an abort, whose response has the new epoch.
        """
        if self.producer_epoch >= PRODUCER_EPOCH_MAX:
            raise IllegalTransitionError("no epoch left to fence with")
        bumps = client_transaction_version >= EPOCH_BUMP_VERSION
        return self._prepare(
            self._ending(
                TransactionState.PREPARE_ABORT,
                client_transaction_version,
                now_ms,
                next_producer_id=NO_PRODUCER_ID,
                epoch=self.producer_epoch + 1,
                last_epoch=self.producer_epoch if bumps else NO_PRODUCER_EPOCH,
            )
        )

    def prepare_complete(self, *, now_ms: int) -> Transition:
        """Complete the transaction: every partition has its marker."""
        rotates = self.next_producer_id != NO_PRODUCER_ID
        return self._prepare(
            Transition(
                TransactionState.COMPLETE_COMMIT
                if self.is_commit
                else TransactionState.COMPLETE_ABORT,
                self.next_producer_id if rotates else self.producer_id,
                self.producer_id,
                NO_PRODUCER_ID,
                # The client's last epoch stays the last one, though one more was used.
                0 if rotates else self.producer_epoch,
                self.last_producer_epoch,
                self.timeout_ms,
                _NO_PARTITIONS,
                self.start_timestamp_ms,
                now_ms,
                self.client_transaction_version,
            )
        )

    def prepare_dead(self) -> None:
        """Expire the transactional id; it is deleted when its tombstone is committed."""
        self._prepare(self._as_is(TransactionState.DEAD))

    # -- both phases --

    def complete(self, transition: Transition) -> None:
        """Apply the pending transition: its record is committed.

        Raises:
            IllegalTransitionError: It is not the pending one, or not allowed in this state.
        """
        if self.pending is not transition.state or self.pending is TransactionState.DEAD:
            raise IllegalTransitionError(
                f"{self.transactional_id}: {transition} while pending is {self.pending}"
            )
        if not self._fits(transition):
            raise IllegalTransitionError(f"{self.transactional_id}: {transition} does not fit")
        (
            self.state,
            self.producer_id,
            self.previous_producer_id,
            self.next_producer_id,
            self.producer_epoch,
            self.last_producer_epoch,
            self.timeout_ms,
            self.partitions,
            self.start_timestamp_ms,
            self.last_update_timestamp_ms,
            self.client_transaction_version,
        ) = transition
        self.pending = None

    def cancel(self) -> None:
        """Drop the pending transition: its record was refused."""
        self.pending = None

    def drop_partitions(self, partitions: frozenset[TopicPartition]) -> None:
        """Remove partitions that have their marker, or were deleted."""
        if not self.state.is_prepared:
            raise IllegalTransitionError(f"markers for a transaction that is {self.state.label}")
        self.partitions -= partitions

    def _as_is(self, state: TransactionState) -> Transition:
        return Transition(
            state,
            self.producer_id,
            self.producer_id,
            self.next_producer_id,
            self.producer_epoch,
            self.last_producer_epoch,
            self.timeout_ms,
            self.partitions,
            self.start_timestamp_ms,
            self.last_update_timestamp_ms,
            self.client_transaction_version,
        )

    def _ending(
        self,
        state: TransactionState,
        client_transaction_version: int,
        now_ms: int,
        *,
        next_producer_id: int,
        epoch: int,
        last_epoch: int,
    ) -> Transition:
        begun = self.state is TransactionState.ONGOING
        return Transition(
            state,
            self.producer_id,
            self.producer_id,
            next_producer_id,
            epoch,
            last_epoch,
            self.timeout_ms,
            self.partitions,
            # Nothing had begun: the time of its end stands in.
            self.start_timestamp_ms if begun else now_ms,
            now_ms,
            client_transaction_version,
        )

    def _prepare(self, transition: Transition) -> Transition:
        if self.pending is not None:
            raise IllegalTransitionError(
                f"{transition.state.label} while {self.pending.label} is pending"
            )
        if not transition.state.may_follow(self.state):
            raise IllegalTransitionError(f"{self.state.label} to {transition.state.label}")
        if transition.producer_id < 0:
            raise IllegalTransitionError(f"producer id {transition.producer_id}")
        if transition.state is not TransactionState.DEAD and not (
            0 <= transition.producer_epoch <= PRODUCER_EPOCH_MAX
        ):
            raise IllegalTransitionError(f"producer epoch {transition.producer_epoch}")
        self.pending = transition.state
        return transition

    def _fits(self, transition: Transition) -> bool:
        same_producer = transition.producer_id == self.producer_id
        grown = transition.producer_epoch - self.producer_epoch
        match transition.state:
            case TransactionState.EMPTY:
                return (
                    (grown in (0, 1) if same_producer else transition.producer_epoch == 0)
                    and not transition.partitions
                    and transition.start_timestamp_ms == NO_TIMESTAMP
                )
            case TransactionState.ONGOING:
                return (
                    same_producer
                    and grown == 0
                    and transition.partitions >= self.partitions
                    and transition.timeout_ms == self.timeout_ms
                )
            case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
                return (
                    same_producer
                    and grown in (0, 1)
                    and transition.partitions == self.partitions
                    and transition.timeout_ms == self.timeout_ms
                )
            case _:
                rotates = self.next_producer_id != NO_PRODUCER_ID
                return (
                    transition.producer_id
                    == (self.next_producer_id if rotates else self.producer_id)
                    and (transition.producer_epoch == 0 if rotates else grown == 0)
                    and not transition.partitions
                    and transition.start_timestamp_ms != NO_TIMESTAMP
                )
