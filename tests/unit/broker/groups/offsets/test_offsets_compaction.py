"""Committed offsets over compaction and restarts: what is read back is what was in memory.

Plain commits, commits in transactions of both versions, deletions, rolls, compaction, time and
restarts, in any order, through a real log. After each the log is read as a start would read it.
"""

import asyncio
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.coordinator.latest_records import LatestRecords
from broker.coordinator.loader import ShardLoader
from broker.coordinator.slices import Slices
from broker.groups.coordinator import READ_SIZE
from broker.groups.replay import OFFSET_KEYS_BELOW
from broker.groups.state.offset_store import GroupTopicPartition, OffsetAndMetadata, OffsetStore
from protocol.internal.consumer_offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_offset_commit_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from storage.producers.table import PRODUCER_ID_EXPIRATION_MS
from storage.producers.verification import TransactionTerms
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.effort import examples
from tests.fakes.clock import ManualClock
from tests.unit.storage.cleaner.test_cleaner import CONFIG, Disk

PIDS = (1, 2, 3)
INDEXES = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)


def key_of(index: int) -> GroupTopicPartition:
    return GroupTopicPartition("g", "t", index)


class OffsetsMachine(RuleBasedStateMachine):
    """A store that lives on, and a log that is read back after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = Disk(config=CONFIG.model_copy(update={"segment_bytes": 600}))
        self.store = OffsetStore()
        self.epochs = dict.fromkeys(PIDS, 0)
        self.version = 2
        self.next_value = 0
        self.dirty = 0

    @initialize(version=st.sampled_from([0, 2]))
    def begin(self, version: int) -> None:
        self.version = version

    def _append(self, batch: bytearray, version: int = 0) -> int:
        log = self.disk.log
        info = log.writer.append_as_leader(
            memoryview(batch),
            leader_epoch=0,
            now_ms=self.disk.clock.now_ms(),
            origin=AppendOrigin.COORDINATOR,
            terms=TransactionTerms(version=version),
        )
        log.update_high_watermark(log.log_end_offset)
        return info.first_offset

    def _records(self, indexes: list[int]) -> tuple[list[Any], list[OffsetCommitValue]]:
        rows, values = [], []
        for index in indexes:
            self.next_value += 1
            value = OffsetCommitValue(self.next_value)
            values.append(value)
            rows.append(
                (encode_offset_commit_key(*key_of(index)), encode_offset_commit_value(value))
            )
        now_ms = self.disk.clock.now_ms()
        return [(key, value, (), now_ms) for key, value in rows], values

    @rule(indexes=INDEXES)
    def commit(self, indexes: list[int]) -> None:
        rows, values = self._records(indexes)
        base = self._append(build_batch(rows))
        for position, (index, value) in enumerate(zip(indexes, values, strict=True)):
            self.store.put(*key_of(index), OffsetAndMetadata(value, base + position))

    @rule(indexes=INDEXES, pid=st.sampled_from(PIDS))
    def commit_in_transaction(self, indexes: list[int], pid: int) -> None:
        rows, values = self._records(indexes)
        base = self._append(
            build_batch(rows, producer_id=pid, producer_epoch=self.epochs[pid], transactional=True)
        )
        for position, (index, value) in enumerate(zip(indexes, values, strict=True)):
            self.store.put_pending(pid, key_of(index), OffsetAndMetadata(value, base + position))

    @rule(pid=st.sampled_from(PIDS), commit=st.booleans())
    def end(self, pid: int, commit: bool) -> None:
        if self.version == 2:
            self.epochs[pid] += 1
        marker = build_end_transaction_marker(
            producer_id=pid,
            producer_epoch=self.epochs[pid],
            commit=commit,
            coordinator_epoch=0,
            timestamp_ms=self.disk.clock.now_ms(),
        )
        self._append(marker, self.version)
        self.store.end_transaction(pid, commit=commit)

    @rule(index=st.integers(0, 3))
    def delete(self, index: int) -> None:
        row = (encode_offset_commit_key(*key_of(index)), None, (), self.disk.clock.now_ms())
        offset = self._append(build_batch([row]))
        self.store.remove(*key_of(index), before_record=offset)

    @rule()
    def roll(self) -> None:
        self.disk.roll()

    @rule()
    def clean(self) -> None:
        self.dirty = self.disk.clean(dirty=self.dirty).end_offset

    @rule()
    def clean_with_little_memory(self) -> None:
        self.dirty = self.disk.clean(dirty=self.dirty, map_bytes=24 * 4).end_offset

    @rule()
    def tombstones_may_go(self) -> None:
        self.disk.clock.advance(CONFIG.delete_retention_ms)

    @rule()
    def producers_expire(self) -> None:
        self.disk.clock.advance(PRODUCER_ID_EXPIRATION_MS)
        for _ in range(2):
            self.disk.log.producer_state.remove_expired(self.disk.clock.now_ms())

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        log = self.disk.log
        if clean:
            log.close()
        stable = log.last_stable_offset
        self.disk.log = self.disk.opened(self.disk.filesystem, clean=clean)
        assert self.disk.log.last_stable_offset == stable

    @invariant()
    def same(self) -> None:
        log = self.disk.log

        class Reader:
            async def read_internal(
                self, topic_partition: TopicPartition, offset: int, max_bytes: int
            ) -> memoryview:
                part = log.reader.read(
                    offset, max_bytes=max_bytes, end_offset=log.log_end_offset, min_one_batch=True
                )
                if part is None:
                    return memoryview(b"")
                return memoryview(part.file.read_at(part.length, part.position))

        reader = LatestRecords(transactional_below=OFFSET_KEYS_BELOW)
        loader = ShardLoader(
            Reader(),
            TopicPartition("__consumer_offsets", 0),
            reader,
            read_size=READ_SIZE,
            slices=Slices(ManualClock()),
            is_wanted=lambda: True,
        )
        asyncio.run(loader.load(log.log_start_offset, log.log_end_offset))
        for index in range(4):
            raw = encode_offset_commit_key(*key_of(index))
            found = reader.latest.get(raw)
            stored = self.store.get(*key_of(index))
            assert (stored is None) == (found is None), index
            if found is not None and stored is not None:
                value = decode_offset_commit_value(found[0])
                assert (value.offset, found[1]) == (stored.value.offset, stored.record_offset)
        waiting = {
            (pid, decode_key(raw)): value[1]
            for pid, values in reader.pending.items()
            for raw, value in values.items()
        }
        expected = {
            (pid, OffsetCommitKey(*key)): committed.record_offset
            for pid, values in self.store._pending.items()
            for key, committed in values.items()
        }
        assert waiting == expected


OffsetsMachine.TestCase.settings = examples(60, steps=40)
TestOffsets = OffsetsMachine.TestCase
