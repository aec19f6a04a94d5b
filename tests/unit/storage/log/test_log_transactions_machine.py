"""Transactions of a log, in any order, over every kind of stop: readers see what they saw before.

Producers of both transaction versions write, end, are silent for days; segments roll, are flushed,
lose their start to DeleteRecords; the broker stops, is killed, or the power goes. After each step a
model that only reads the batches which are left says

    where the last stable offset is, which transactions were aborted (for any range),
    who may write next, with which epoch and sequence, and whose transaction is open
"""

import logging
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from protocol.records.batch import BatchHeader, read_header
from protocol.records.control import build_end_transaction_marker, parse_end_transaction_marker
from storage.errors import ProducerError
from storage.producers.verification import TransactionTerms
from storage.types.append_origin import AppendOrigin
from tests.effort import examples
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    make_batch,
    open_log,
    small_segments,
)

PIDS = st.sampled_from([1, 2, 3])


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Cutting logs after a power cut is what is expected."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Producer:
    """What the batches of one producer say."""

    def __init__(self) -> None:
        self.epoch = -1
        self.last_sequence = -1
        self.first_offset = -1
        self.base_offsets: list[int] = []

    def left_from(self, log_start: int) -> int:
        """Where the open transaction begins, as far as its batches are still there; else -1."""
        if self.first_offset < 0:
            return -1
        return min((offset for offset in self.base_offsets if offset >= log_start), default=-1)


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    # Of its batches.
    base_offsets: tuple[int, ...]

    def has_data_in(self, start: int, end: int) -> bool:
        return any(start <= offset < end for offset in self.base_offsets)


class Model:
    """What follows from a log's batches."""

    def __init__(self, batches: list[bytes]) -> None:
        self.producers: dict[int, Producer] = {}
        self.aborted: list[Aborted] = []
        self.end = 0
        for batch in batches:
            header = read_header(memoryview(batch))
            self.end = header.next_offset
            if header.producer_id >= 0:
                self._add(header, batch)

    def _add(self, header: BatchHeader, batch: bytes) -> None:
        producer = self.producers.setdefault(header.producer_id, Producer())
        if header.producer_epoch != producer.epoch:
            producer.epoch = header.producer_epoch
            producer.last_sequence = -1
        if not header.is_control:
            producer.last_sequence = header.last_sequence
            if header.is_transactional and producer.first_offset < 0:
                producer.first_offset = header.base_offset
                producer.base_offsets = []
            producer.base_offsets.append(header.base_offset)
            return
        marker = parse_end_transaction_marker(memoryview(batch))
        assert marker is not None
        if producer.first_offset >= 0 and not int(marker.control_type):
            self.aborted.append(
                Aborted(
                    header.producer_id,
                    producer.first_offset,
                    header.base_offset,
                    tuple(producer.base_offsets),
                )
            )
        producer.first_offset = -1

    def stable(self, log_start: int) -> set[int]:
        """The last stable offset, when everything is committed.

        A transaction whose start was deleted is open from there, or from what is left of it: that
        depends on whether a snapshot knows of it.
        """
        open_ones = [p for p in self.producers.values() if p.first_offset >= 0]
        end = max(self.end, log_start)
        whole = min((producer.first_offset for producer in open_ones), default=end)
        starts = (producer.left_from(log_start) for producer in open_ones)
        left = min((start for start in starts if start >= 0), default=end)
        return {max(whole, log_start), left}


class LogMachine(RuleBasedStateMachine):
    """A log, what was written to it, and what its checkpoints would say."""

    def __init__(self) -> None:
        super().__init__()
        self.filesystem = FakeFilesystem()
        self.filesystem.mkdir("/data")
        self.filesystem.sync_directory("/")
        self.clock = ManualClock(NOW_MS)
        self.config = small_segments(retention_ms=-1)
        self.log = open_log(self.filesystem, self.config, clock=self.clock)
        # All from offset 0 on, deleted ones too.
        self.batches: list[bytes] = []
        self.checkpoint = 0
        self.log_start = 0
        self.versions = {1: 0, 2: 2, 3: 2}
        # Those whose last sequence may have been forgotten.
        self.expired: set[int] = set()

    @property
    def model(self) -> Model:
        return Model(self.batches)

    def _append(
        self, batch: memoryview, origin: AppendOrigin = AppendOrigin.CLIENT, version: int = 0
    ) -> None:
        self.log.writer.append_as_leader(
            batch,
            leader_epoch=0,
            now_ms=self.clock.now_ms(),
            origin=origin,
            terms=TransactionTerms(version=version),
        )
        self.log.update_high_watermark(self.log.log_end_offset)
        self.batches.append(bytes(batch))

    @rule(pid=PIDS, size=st.integers(1, 120), transactional=st.booleans())
    def write(self, pid: int, size: int, transactional: bool) -> None:
        producer = self.model.producers.get(pid, Producer())
        if producer.first_offset >= 0:
            transactional = True
        sequence = producer.last_sequence + 1
        entry = self.log.producer_state.last_entry(pid)
        if pid in self.expired and entry is not None:
            # A marker has made it known again, its sequences have not come back.
            sequence = entry.last_sequence + 1
        self._append(
            make_batch(
                b"v" * size,
                producer_id=pid,
                producer_epoch=max(producer.epoch, 0),
                base_sequence=sequence,
                transactional=transactional,
                timestamp_ms=self.clock.now_ms(),
            )
        )
        self.expired.discard(pid)

    @rule(count=st.integers(1, 4))
    def write_plain(self, count: int) -> None:
        for _ in range(count):
            self._append(make_batch(b"p" * 100))

    @rule(pid=PIDS, commit=st.booleans())
    def end(self, pid: int, commit: bool) -> None:
        version = self.versions[pid]
        epoch = self.model.producers.get(pid, Producer()).epoch
        marker = build_end_transaction_marker(
            producer_id=pid,
            producer_epoch=max(epoch, 0) + (version == 2),
            commit=commit,
            coordinator_epoch=0,
            timestamp_ms=self.clock.now_ms(),
        )
        self._append(memoryview(marker), AppendOrigin.COORDINATOR, version)

    @rule(pid=PIDS)
    def late(self, pid: int) -> None:
        """A batch of the epoch before, whose marker was of version 2, is refused."""
        producer = self.model.producers.get(pid, Producer())
        if producer.epoch < 1 or pid in self.expired:
            return
        with pytest.raises(ProducerError):
            self.log.writer.append_as_leader(
                make_batch(
                    b"late",
                    producer_id=pid,
                    producer_epoch=producer.epoch - 1,
                    base_sequence=0,
                    transactional=True,
                ),
                leader_epoch=0,
                now_ms=self.clock.now_ms(),
            )

    @rule()
    def roll(self) -> None:
        self.log.writer.roll()

    @rule(everything=st.booleans())
    def flush(self, everything: bool) -> None:
        self.log.flusher.flush(None if everything else self.log.active_base_offset)

    @rule()
    def write_checkpoint(self) -> None:
        self.checkpoint = self.log.recovery_point

    @precondition(lambda self: self.log.last_stable_offset > self.log.log_start_offset)
    @rule(share=st.integers(1, 4))
    def delete_records(self, share: int) -> None:
        """Not beyond the start of an open transaction, of which a restart would forget a part."""
        start, stable = self.log.log_start_offset, self.log.last_stable_offset
        self.log.delete_records(start + (stable - start) * share // 4)
        self.log.retention.delete_old_segments()
        self.log.deletion.remove_deleted_files(now=True)
        self.log_start = self.log.log_start_offset

    @rule(days=st.integers(1, 2))
    def time_passes(self, days: int) -> None:
        self.clock.advance(days * 86_400_000)
        for _ in range(2):
            self.log.producer_state.remove_expired(self.clock.now_ms())
        self._note_expired()

    def _note_expired(self) -> None:
        known = {entry.producer_id for entry in self.log.producer_state.active_producers()}
        for pid, producer in self.model.producers.items():
            if max(producer.base_offsets, default=-1) < self.log.log_start_offset:
                # A marker may still be there, and say who it was but not what it wrote.
                self.expired.add(pid)
            if pid not in known:
                assert producer.left_from(self.log.log_start_offset) < 0, pid
                self.expired.add(pid)

    def _reopen(self, opened: Opened) -> None:
        self.log = open_log(self.filesystem, self.config, clock=self.clock, opened=opened)
        self.log.update_high_watermark(self.log.log_end_offset)

    @rule()
    def stop(self) -> None:
        self.log.close()
        self.checkpoint = self.log.recovery_point
        self._reopen(Opened(self.checkpoint, self.log_start, clean_shutdown=True))
        self._note_expired()

    @rule()
    def kill(self) -> None:
        self.filesystem.crash(KEEP_ALL)
        self._reopen(Opened(self.checkpoint, self.log_start))
        self._note_expired()

    @rule(seed=st.integers(0, 1000))
    def power_cut(self, seed: int) -> None:
        durable = self.log.recovery_point
        self.filesystem.crash(Random(seed) if seed else None)
        if self.log_start > durable:
            # The broker writes a log start only once it is durable.
            self.log_start = durable
        self._reopen(Opened(self.checkpoint, self.log_start))
        end = self.log.log_end_offset
        assert end >= durable
        self.batches = [b for b in self.batches if read_header(memoryview(b)).next_offset <= end]
        self._note_expired()

    @invariant()
    def same(self) -> None:
        log, model = self.log, self.model
        assert log.log_end_offset == max(model.end, log.log_start_offset)
        assert log.last_stable_offset in model.stable(log.log_start_offset)
        start, end = log.log_start_offset, log.log_end_offset
        for low in range(start, end, 3):
            for high in (low + 1, low + 4, end):
                found = log.reader.aborted_transactions(low, high)
                for txn in model.aborted:
                    if txn.first_offset >= start:
                        is_found = (txn.producer_id, txn.first_offset) in found
                        assert is_found == (txn.first_offset < high and txn.last_offset >= low)
                    elif txn.has_data_in(low, high):
                        # A start without the snapshot has seen only what is left of it.
                        assert any(
                            pid == txn.producer_id
                            and first <= min(offset for offset in txn.base_offsets if offset >= low)
                            for pid, first in found
                        )
                for pid, first in found:
                    assert any(
                        txn.producer_id == pid and txn.first_offset <= first < txn.last_offset
                        for txn in model.aborted
                    )
        for entry in log.producer_state.active_producers():
            producer = model.producers[entry.producer_id]
            assert entry.epoch == producer.epoch
            assert entry.txn_first_offset in (producer.first_offset, producer.left_from(start))
            if entry.producer_id not in self.expired:
                assert entry.last_sequence == producer.last_sequence


LogMachine.TestCase.settings = examples(40, steps=40)
TestLog = LogMachine.TestCase
