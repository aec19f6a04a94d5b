"""Proof that a transaction knows of a partition before its first batch there (KIP-890).

A batch that opens a transaction here must have been verified with the transaction coordinator.
The answer may come late: after the transaction has been aborted, or after the producer has begun
another one. So every verification has a guard, which ends with the first batch of the transaction
and with any marker:

    begin ──> guard ──> ask the coordinator ──> append(guard) ──> open transaction
                 └── a marker comes first: guard is gone, append(guard) is refused

While one is under way no batch may pass a batch with a lower sequence that is being verified too:
the lower one would be refused for ever.

Not thread-safe: belongs to its log.

Source: Kafka, VerificationStateEntry.java, VerificationGuard.java, ProducerStateManager.java.
"""

from typing import Final

VERIFICATIONS_MAX: Final = 10_000
"""Verifications of one partition at a time; beyond, the oldest has to start over.

One that never succeeds stays for `producer.id.expiration.ms`, and whether the producer exists is
not known before the answer.
"""


class VerificationGuard:
    """Names one verification of one transaction; compared by identity."""

    __slots__ = ()


class TransactionTerms:
    """What is known of a batch's transaction beyond the batch itself; never changed.

    Attributes:
        guard: What the verification began with; None: the transaction must be open already.
        version: `transaction.version` of a marker; with 2 its epoch must be above the log's.
    """

    __slots__ = ("guard", "version")

    def __init__(self, guard: VerificationGuard | None = None, version: int = 0) -> None:
        self.guard = guard
        self.version = version


class Verification:
    """One producer's verification.

    Attributes:
        guard: Given to all batches that are verified together.
        lowest_sequence: Of the batches of epoch `epoch` that have asked so far.
        epoch: Of the producer.
        supports_epoch_bump: The client speaks transaction version 2: every transaction has an
            epoch of its own and so begins with sequence 0.
        begun_ms: When, for expiry.
    """

    __slots__ = ("begun_ms", "epoch", "guard", "lowest_sequence", "supports_epoch_bump")

    def __init__(
        self, sequence: int, epoch: int, begun_ms: int, *, supports_epoch_bump: bool
    ) -> None:
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump
        self.begun_ms = begun_ms

    def include(self, sequence: int, epoch: int) -> None:
        """Another batch asks as well; a newer epoch starts its sequences again."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


class Verifications:
    """Those of one partition, by producer id."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        """How many are under way, or have failed and may be tried again."""
        return len(self._by_producer)

    def begin(
        self,
        producer_id: int,
        sequence: int,
        epoch: int,
        now_ms: int,
        *,
        supports_epoch_bump: bool,
    ) -> VerificationGuard:
        """Begin one, or join the one that is under way."""
        verification = self._by_producer.get(producer_id)
        if verification is None:
            if len(self._by_producer) >= VERIFICATIONS_MAX:
                del self._by_producer[next(iter(self._by_producer))]
            verification = self._by_producer[producer_id] = Verification(
                sequence, epoch, now_ms, supports_epoch_bump=supports_epoch_bump
            )
        else:
            verification.include(sequence, epoch)
        return verification.guard

    def get(self, producer_id: int) -> Verification | None:
        """The one under way for this producer."""
        return self._by_producer.get(producer_id)

    def end(self, producer_id: int) -> None:
        """Its transaction has its first batch here, or its end."""
        self._by_producer.pop(producer_id, None)

    def clear(self) -> None:
        """Forget all."""
        self._by_producer.clear()

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those that came to nothing."""
        expired = [
            producer_id
            for producer_id, verification in self._by_producer.items()
            if now_ms - verification.begun_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._by_producer[producer_id]
