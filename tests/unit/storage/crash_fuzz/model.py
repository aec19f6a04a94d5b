"""What one partition's log may and must hold, whenever the power goes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from protocol.records.batch import BatchHeader, read_header
from protocol.records.control import ControlType, parse_end_transaction_marker
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition

OPEN: Final = "open"
ABORTED: Final = "aborted"
COMMITTED: Final = "committed"


class Stored(NamedTuple):
    """A record."""

    offset: int
    key: bytes | None
    value: bytes | None


class Batch(NamedTuple):
    """A batch with its place; `commits` of one that is no marker, or of an empty one, is None."""

    data: bytes
    header: BatchHeader
    records: tuple[Stored, ...]
    commits: bool | None

    @property
    def base(self) -> int:
        return self.header.base_offset

    @property
    def end(self) -> int:
        return self.header.next_offset


@lru_cache(maxsize=4096)
def parse(data: bytes) -> Batch:
    """A batch by its bytes."""
    view = memoryview(data)
    header = read_header(view)
    if header.is_control:
        marker = parse_end_transaction_marker(view)
        commits = None if marker is None else marker.control_type == ControlType.COMMIT
        return Batch(data, header, (), commits)
    records = iterate_records(view, max_size=1 << 20)
    return Batch(data, header, tuple(Stored(r.offset, r.key, r.value) for r in records), None)


@dataclass
class Lineage:
    """Batches from the offset at which a log began; retention and compaction notwithstanding."""

    begin: int = 0
    batches: list[Batch] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else self.begin

    def until(self, offset: int) -> "Lineage":
        """What is left when the log ends at `offset`: whole batches."""
        return Lineage(min(self.begin, offset), [b for b in self.batches if b.end <= offset])

    def outcomes(self) -> dict[int, str]:
        """What became of each data batch, by its first offset."""
        found: dict[int, str] = {}
        open_batches: dict[int, list[int]] = {}
        for batch in self.batches:
            producer = batch.header.producer_id
            if batch.header.is_control:
                outcome = COMMITTED if batch.commits else ABORTED
                found.update(dict.fromkeys(open_batches.pop(producer, ()), outcome))
            elif batch.header.is_transactional:
                open_batches.setdefault(producer, []).append(batch.base)
                found[batch.base] = OPEN
            else:
                found[batch.base] = COMMITTED
        return found

    def unstable(self, high_watermark: int) -> int | None:
        """First offset of a transaction without a marker below the high watermark."""
        first: dict[int, int] = {}
        unstable: list[int] = []
        for batch in self.batches:
            producer = batch.header.producer_id
            if batch.header.is_control:
                begun = first.pop(producer, None)
                if begun is not None and batch.base >= high_watermark:
                    unstable.append(begun)
            elif batch.header.is_transactional:
                first.setdefault(producer, batch.base)
        return min([*unstable, *first.values()], default=None)


@dataclass
class Producer:
    """An idempotent producer as its batches say: offsets and sequences of its epoch."""

    epoch: int = -1
    batches: list[tuple[int, int, int]] = field(default_factory=list)
    txn_first: int = -1
    last_offset: int = -1


def producers_of(batches: Iterable[Batch]) -> dict[int, Producer]:
    """By producer id: (first offset, last offset, last sequence) of its batches, and more."""
    found: dict[int, Producer] = {}
    for batch in batches:
        header = batch.header
        if header.producer_id < 0:
            continue
        producer = found.setdefault(header.producer_id, Producer())
        if header.producer_epoch != producer.epoch:
            producer.epoch = header.producer_epoch
            producer.batches = []
        producer.last_offset = header.last_offset
        if header.is_control:
            producer.txn_first = -1
            continue
        producer.batches.append((header.base_offset, header.last_offset, header.last_sequence))
        if header.is_transactional and producer.txn_first < 0:
            producer.txn_first = header.base_offset
    return found


@dataclass
class Modelled:
    """One partition of a topic that exists.

    Attributes:
        topic_partition: Its name.
        topic_id: Of this incarnation of the topic.
        is_replicated: There are other replicas, so that it follows at times.
        lineages: What the log may be, the newest last: one, or several while a step is under way
            whose end is not known.
        former: What a power cut may bring back: a truncation was stopped by a kill, and nothing was
            synced since.
        is_cutting: A truncation is under way.
        failed: Appends that have failed: one of them may be the last batch after a power cut.
        durable_end: Everything below is on disk.
        log_start: Deleted is at most what lies below.
        durable_start: At least this is written down as deleted.
        was_compacted: A compaction of it has begun, or its leader's has left gaps.
        has_lost_power: A moment ago: what was not synced may be missing.
        was_shortened: A compacted log has lost its end once: a producer's last batch may have been
            there, and the one before it have been compacted.
        was_cut: A compacted log is being truncated, perhaps below what its compaction went by.
        epoch: The latest leader epoch.
        is_leader: It leads.
    """

    topic_partition: TopicPartition
    topic_id: UUID
    is_replicated: bool
    lineages: list[Lineage] = field(default_factory=lambda: [Lineage()])
    former: list[Lineage] = field(default_factory=list)
    is_cutting: bool = False
    failed: list[Batch] = field(default_factory=list)
    durable_end: int = 0
    log_start: int = 0
    durable_start: int = 0
    was_compacted: bool = False
    has_lost_power: bool = False
    was_shortened: bool = False
    was_cut: bool = False
    epoch: int = 0
    is_leader: bool = True

    @property
    def lineage(self) -> Lineage:
        return self.lineages[-1]

    def begin_anew(self) -> None:
        """Nothing of it was on disk, and a log was made in its place."""
        self.lineages, self.former, self.failed = [Lineage()], [], []
        self.log_start = self.durable_start = 0
        self.was_compacted = self.was_shortened = False

    def may_append(self, batches: Sequence[Batch]) -> None:
        """These are about to be appended."""
        now = self.lineage
        self.lineages.append(Lineage(now.begin, [*now.batches, *batches]))

    def may_be_cut(self, offset: int, left_end: int, *, wholly: bool = False) -> None:
        """The log is about to be cut at `offset`, or to begin there.

        `left_end`: where the last of its batches ends that is not to be cut.
        """
        now = self.lineage
        kept = Lineage(offset) if wholly else now.until(offset)
        self.is_cutting = True
        self.was_shortened |= self.was_compacted
        self.was_cut |= self.was_compacted
        self.durable_end = 0 if wholly else min(self.durable_end, left_end)
        self.log_start = max(self.log_start, offset) if wholly else self.log_start
        self.durable_start = min(self.durable_start, offset)
        if not wholly:
            self.durable_start = min(self.durable_start, left_end)
        self.lineages.append(kept)

    def settle(self, lineage: Lineage, end: int) -> None:
        """It has turned out which one the log is, and where it ends."""
        kept = lineage.until(end)
        self.durable_end = min(self.durable_end, end)
        if self.is_cutting:
            self.former = self.lineages[:1]
        self.is_cutting = False
        known = set(self.lineages[0].batches)
        tried = [b for other in self.lineages[1:] for b in other.batches if b not in known]
        self.failed = [b for b in [*self.failed, *tried] if b.base == kept.end][-4:]
        self.lineages = [kept]
