"""A partition's life by chance, by the real log and the real tier, and a plain reader of it.

    world = RandomWorld(seed)
    world.live()                 leaders write, roll, are replaced, compact, delete, copy
    world.rows(read_committed=True)          what a consumer of the leader's log gets

The plain reader knows nothing of buckets: it reads the last leader's whole log, record by record,
and looks at the markers in it. Everything by chance comes from the seed.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, parse_end_transaction_marker
from protocol.records.record import iterate_records
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.log_cleaner_manager import measure
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.tiered.memory_object_store import StoredObject
from tests.unit.pipeline.plan.bucket_world import BucketWorld, Replica
from tests.unit.storage.log.log_model import NOW_MS, append, read_batches
from tiered.metadata.epoch_bounds import valid_end
from tiered.segment_metadata import RemoteLogSegmentMetadata

PRODUCERS = (5, 6, 7)
SIZE_MAX = 1 << 20


class Row(NamedTuple):
    """A record as a consumer sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Transaction(NamedTuple):
    """Where it begins and where its marker is: beyond everything while it is open."""

    producer_id: int
    first: int
    last: int
    is_committed: bool = False
    is_open: bool = False


class RandomWorld:
    """See the module.

    Attributes:
        bucket: The bucket's world.
        leader: Whose log counts.
        copied: All segments that were copied, those that were superseded too.
        steps: What was done, for whoever looks into a seed that fails.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bucket = BucketWorld(
            chunk_bytes=self.random.choice((150, 700, 5_000, 1 << 20)),
            compression=self.random.random() < 0.4,
            encryption=self.random.random() < 0.3,
            page_max=self.random.choice((4, 1000)),
        )
        self.leader = self.bucket.replica("0")
        self.copied: list[RemoteLogSegmentMetadata] = []
        self._lost_before_epoch = 0
        self.steps: list[str] = []
        self._epoch = 0
        self._replicas = 1
        self._open: set[int] = set()
        self._sequences: dict[int, int] = {}
        self._deleted = False

    @property
    def is_told(self) -> bool:
        """Whether the bucket can know of the leader's log.

        Not after records were lost that had been copied (an unclean election), until a leader has
        copied some of its own epoch.
        """
        epochs = [entry.epoch for one in self.copied for entry in one.segment_leader_epochs]
        return max(epochs, default=0) >= self._lost_before_epoch

    def live(self, steps: int = 40) -> None:
        """So many things happen; then all that is closed is copied, or not."""
        if self.random.random() < 0.3:
            self._compacted_life()
        actions: Sequence[tuple[int, Callable[[], None]]] = (
            (10, self._write),
            (10, self._write_in_transaction),
            (6, self._end_transaction),
            (8, self._roll),
            (7, self._copy),
            (2, self._change_leader),
            (1, self._delete_records),
            (2, self._write_history),
            (1, self._leave_unfinished),
        )
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            _, action = self.random.choices(actions, weights)[0]
            self.steps.append(f"{action.__name__} at {self.leader.end}")
            action()
        if self.random.random() < 0.7:
            self._roll()
            self._copy()
        if self._deleted or self.random.random() < 0.5:
            # A bucket without it does not tell of deleted records.
            self._write_history()

    # -- what happens --------------------------------------------------------------------------

    def _records(self, keys: int = 0) -> list[tuple[Any, Any, Any, int]]:
        random = self.random
        found = []
        for _ in range(random.choice((1, 1, 2, 5, 30))):
            key = b"k%d" % random.randrange(keys or 1000)
            value = random.randbytes(random.choice((0, 1, 20, 20, 200)))
            headers = [
                (random.choice(("a", "", "é")), random.choice((None, b"", b"x")))
                for _ in range(random.choice((0, 0, 0, 1, 3)))
            ]
            time = -1 if random.random() < 0.03 else NOW_MS + random.randrange(100_000)
            found.append(
                (
                    None if not keys and random.random() < 0.2 else key,
                    None if random.random() < 0.1 else value,
                    headers,
                    time,
                )
            )
        return found

    def _append(self, records: list[Any], producer: int = -1, *, transactional: bool) -> None:
        sequence = self._sequences.get(producer, 0)
        batch = build_batch(
            records,
            codec=self.random.choice((0, 0, 1, 2, 3, 4)),
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence if producer >= 0 else -1,
            transactional=transactional,
        )
        self._sequences[producer] = sequence + len(records)
        append(self.leader.log, memoryview(batch), leader_epoch=self._epoch)

    def _write(self) -> None:
        idle = [one for one in PRODUCERS if one not in self._open]
        producer = self.random.choice([-1, -1, *idle])
        self._append(self._records(), producer, transactional=False)

    def _write_in_transaction(self) -> None:
        producer = self.random.choice(PRODUCERS)
        self._open.add(producer)
        self._append(self._records(), producer, transactional=True)

    def _end_transaction(self) -> None:
        if not self._open:
            return
        producer = self.random.choice(sorted(self._open))
        self._open.discard(producer)
        marker = TransactionMarker(producer, 0, self.random.random() < 0.5, 0, 0)
        log = self.leader.log
        log.markers.append([marker], leader_epoch=self._epoch, now_ms=NOW_MS)
        log.update_high_watermark(log.log_end_offset)

    def _roll(self) -> None:
        if self.leader.log.segment_facts()[-1].size:
            self.leader.roll()

    def _copy(self) -> None:
        """As the leader does it: what is closed and stable."""
        leader = self.leader
        leader.log.flusher.flush()
        before = leader.log.last_stable_offset
        ends = [two.base_offset for two in leader.log.segment_facts()[1:]]
        until = max([end for end in ends if end <= before], default=0)
        self.copied += asyncio.run(self.bucket.copy(leader, until_offset=until))

    def _change_leader(self) -> None:
        """Another replica goes on; what it has not followed is lost, copied or not.

        Its segments end elsewhere, and it copies again what ends behind the copies it knows of.
        """
        old = self.leader
        log = old.log
        end = log.log_end_offset
        if self.random.random() < 0.3:
            end = self.random.randint(log.log_start_offset, end)
        batches = read_batches(log, has_gaps=True)
        self.leader = self.bucket.replica(f"{self._replicas}")
        self._replicas += 1
        new = self.leader.log
        for data in batches:
            ((_, header),) = iterate_batches(memoryview(data))
            if header.next_offset > end:
                break
            new.follower.append(memoryview(data))
            if self.random.random() < 0.1:
                self._roll()
        new.update_high_watermark(new.log_end_offset)
        new.delete_records(min(log.log_start_offset, new.log_end_offset))
        if new.log_end_offset < max([one.end_offset + 1 for one in self.copied], default=0):
            self._lost_before_epoch = self._epoch + 1
        self._epoch += self.random.choice((1, 1, 3))
        self.leader.copied_to = self.random.choice((0, min(old.copied_to, new.log_end_offset)))
        self._open = {
            entry.producer_id
            for entry in new.producer_state.active_producers()
            if entry.txn_first_offset >= 0
        }
        self._sequences = {
            entry.producer_id: entry.last_sequence + 1
            for entry in new.producer_state.active_producers()
        }

    def _delete_records(self) -> None:
        log = self.leader.log
        log.delete_records(self.random.randint(log.log_start_offset, log.last_stable_offset))
        self._deleted = True

    def _write_history(self) -> None:
        if not self.copied or self.leader.copied_to == 0:
            return
        epochs = self.leader.log.leader_epochs
        known = [one for one in self.copied if valid_end(one, epochs) == one.end_offset + 1]
        self.bucket.write_history(
            self.leader, known, stable_end_offset=self.leader.log.log_start_offset
        )

    def _leave_unfinished(self) -> None:
        """Objects of a copy that nobody ended: no manifest."""
        store = self.bucket.store
        for key in [*store.objects]:
            if key.endswith((".log", ".indexes")) and self.random.random() < 0.2:
                folder, _, name = key.rpartition("/")
                other = f"{folder}/{name[:21]}{'B' * 22}{name[43:]}"
                store.objects[other] = StoredObject(store.objects[key].data[:-7], 0)

    def _compacted_life(self) -> None:
        """Before the topic was tiered; segments without a record are left of it."""
        for _ in range(self.random.randrange(5, 25)):
            producer = self.random.choice((-1, *PRODUCERS))
            self._append(self._records(keys=3), producer, transactional=False)
            if self.random.random() < 0.5:
                self._roll()
        self._roll()
        log = self.leader.log
        config = log.config
        # Small ones are put together up to so many bytes: what is larger may become empty.
        log.config = config.model_copy(update={"segment_bytes": 300})
        log.flusher.flush()
        chosen = measure(log, 0, NOW_MS)
        Cleaner(self.bucket.disk, dedupe_buffer_bytes=1 << 16, read_bytes=1 << 12).clean(
            log,
            first_dirty_offset=chosen.first_dirty_offset,
            first_uncleanable_offset=chosen.first_uncleanable_offset,
            now_ms=NOW_MS,
        )
        log.config = config
        self.steps.append(f"compacted up to {log.log_end_offset}")

    # -- what is true --------------------------------------------------------------------------

    def transactions(self) -> list[Transaction]:
        """All of the leader's log."""
        begun: dict[int, int] = {}
        found: list[Transaction] = []
        for data in read_batches(self.leader.log, has_gaps=True):
            ((_, header),) = iterate_batches(memoryview(data))
            if not header.is_transactional:
                continue
            if not header.is_control:
                begun.setdefault(header.producer_id, header.base_offset)
                continue
            marker = parse_end_transaction_marker(memoryview(data))
            first = begun.pop(header.producer_id, header.base_offset)
            committed = marker is None or marker.control_type is ControlType.COMMIT
            found.append(Transaction(header.producer_id, first, header.base_offset, committed))
        end = self.leader.end
        still = (Transaction(one, first, end, is_open=True) for one, first in begun.items())
        return [*found, *still]

    def times(self) -> list[tuple[int, int]]:
        """Offset and time of everything in the leader's log, markers too."""
        return [
            (one.offset, one.timestamp)
            for data in read_batches(self.leader.log, has_gaps=True)
            for one in iterate_records(memoryview(data), max_size=SIZE_MAX)
        ]

    def rows(self, *, read_committed: bool) -> list[Row]:
        """All of the leader's log, from its start on."""
        start = self.leader.log.log_start_offset
        out = [one for one in self.transactions() if read_committed and not one.is_committed]
        stable = min([one.first for one in out if one.is_open], default=self.leader.end)
        rows = []
        for data in read_batches(self.leader.log, has_gaps=True):
            ((_, header),) = iterate_batches(memoryview(data))
            if header.is_control or any(
                header.is_transactional
                and header.producer_id == one.producer_id
                and one.first <= header.base_offset <= one.last
                for one in out
            ):
                continue
            rows += [
                Row(one.offset, one.timestamp, one.key, one.value, tuple(one.headers))
                for one in iterate_records(memoryview(data), max_size=SIZE_MAX)
                if one.offset >= start and (not read_committed or one.offset < stable)
            ]
        return rows


__all__ = ["RandomWorld", "Replica", "Row"]
