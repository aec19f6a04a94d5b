"""What producers, and the leaders that a log follows, send next: drawn, and always allowed."""

from random import Random
from typing import Final, NamedTuple

from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from tests.unit.storage.crash_fuzz.model import Lineage, Producer, producers_of

IDEMPOTENT: Final[tuple[int, ...]] = (1, 2)
TRANSACTIONAL: Final[tuple[int, ...]] = (11, 12, 13)
KEYS: Final = (b"a", b"b", b"c", b"d", b"e")


class Send(NamedTuple):
    """A batch before it has its place; a marker has no values."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    records: tuple[tuple[bytes, bytes | None], ...]
    commits: bool | None

    def build(self, now_ms: int, base_offset: int = 0, leader_epoch: int = -1) -> bytes:
        """Its bytes."""
        if self.commits is not None:
            return bytes(
                build_end_transaction_marker(
                    producer_id=self.producer_id,
                    producer_epoch=self.producer_epoch,
                    commit=self.commits,
                    coordinator_epoch=1,
                    timestamp_ms=now_ms,
                    base_offset=base_offset,
                    leader_epoch=leader_epoch,
                )
            )
        return bytes(
            build_batch(
                [(key, value, (), now_ms) for key, value in self.records],
                base_offset=base_offset,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
                transactional=self.is_transactional,
                leader_epoch=leader_epoch,
            )
        )


def draw(random: Random, lineage: Lineage, number: int) -> Send:
    """The next batch on this lineage; `number` makes its values unlike all others."""
    kind = random.choices(["plain", "idempotent", "write", "end"], [8, 6, 7, 6])[0]
    known = producers_of(lineage.batches)
    if kind == "end":
        ending = [p for p in TRANSACTIONAL if p in known and known[p].txn_first >= 0]
        if ending:
            producer_id = random.choice(ending)
            bump = int(random.random() < 0.15)
            epoch = known[producer_id].epoch + bump
            return Send(producer_id, epoch, -1, True, (), random.random() < 0.5)
        kind = "write"
    values = tuple(_record(random, number, at) for at in range(random.choice((1, 1, 1, 2, 3))))
    if kind == "plain":
        return Send(-1, -1, -1, False, values, None)
    transactional = kind == "write"
    producer_id = random.choice(TRANSACTIONAL if transactional else IDEMPOTENT)
    producer = known.get(producer_id, Producer(epoch=0))
    epoch, sequence = max(producer.epoch, 0), 0
    if producer.batches:
        sequence = producer.batches[-1][2] + 1
    if producer.txn_first < 0 and producer.batches and random.random() < 0.1:
        epoch, sequence = epoch + 1, 0
    return Send(producer_id, epoch, sequence, transactional, values, None)


def _record(random: Random, number: int, at: int) -> tuple[bytes, bytes | None]:
    key = random.choice(KEYS)
    if random.random() < 0.12:
        return key, None
    # Often of one size, so that one batch fits where another was.
    return key, b"%06d.%d" % (number, at) + b"." * random.choice((0, 0, 0, 7, 60))
