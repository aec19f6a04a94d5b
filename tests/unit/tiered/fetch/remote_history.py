"""A partition whose older segments are in remote storage, and the same log whole, to compare.

history = RemoteHistory()
history.append(b"value")        to both logs
history.copy()                  closed segments leave for the tier; the oracle keeps them
read = history.read(0)          a read, finished or pending
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID

import pytest

from config.tier import TierConfig
from protocol.records.batch import HEADER_SIZE, BatchHeader, crc_matches, read_header
from protocol.records.control import build_end_transaction_marker
from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.types.append_origin import AppendOrigin
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.stored_segment_tier import SegmentTier, StoredSegment
from tests.fakes.timer import ManualTimer
from tests.unit.storage.log.log_model import NOW_MS, append, make_batch, open_log, small_segments
from tests.unit.tiered.metadata.lookup_metadata import LookupMetadata
from tiered.fetch.pending_read import Read
from tiered.fetch.reader import Reader
from tiered.remote_read import ReadRequest, RemoteRecords
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    TopicIdPartition,
)

T = TypeVar("T")

PARTITION = TopicIdPartition(UUID(int=7), "t", 0)
ALICE = ("User:alice", "a")
BOB = ("User:bob", "b")


MIB = 1024 * 1024


async def run_here(function: Callable[..., T], *args: Any) -> T:
    """What a thread would do, at once."""
    return function(*args)


async def settle() -> None:
    """Let everything happen that can."""
    for _ in range(50):
        await asyncio.sleep(0)


def settings(**changes: Any) -> TierConfig:
    return TierConfig(
        **{
            "tier_index_cache_path": "/cache/indexes",
            "rsm_config_fetch_chunk_cache_path": "/cache/chunks",
            "rsm_config_fetch_chunk_cache_prefetch_max_size": 0,
            **changes,
        }
    )


def bytes_of(records: RemoteRecords | None) -> bytes:
    assert records is not None
    return b"".join(s.file.read_at(s.length, s.position) for s in records.slices)


def headers_of(data: bytes) -> list[BatchHeader]:
    """Of whole batches, sums checked; the last one must be whole too."""
    headers = []
    position = 0
    view = memoryview(data)
    while position < len(data):
        assert len(data) - position >= HEADER_SIZE
        header = read_header(view, position)
        assert crc_matches(view, position, header)
        headers.append(header)
        position += header.size
    assert position == len(data)
    return headers


_open: "list[RemoteHistory]" = []


@pytest.fixture(autouse=True)
async def close_readers() -> AsyncIterator[None]:
    """Whatever a test leaves under way is ended in its own loop."""
    # Of another module's tests, in loops that are closed: nobody can end those any more.
    _open.clear()
    yield
    while _open:
        await _open.pop().reader.close()


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run one example in a loop of its own."""

    async def alone() -> None:
        # Of another module's tests, as above.
        _open.clear()
        try:
            await scene()
        finally:
            for history in _open:
                await history.reader.close()
            _open.clear()

    asyncio.run(alone())


class RemoteHistory:
    """See the module."""

    def __init__(
        self,
        *,
        chunk_bytes: int = 256,
        segment_bytes: int = 1000,
        filesystem: FakeFilesystem | None = None,
        begin: bool = True,
        **changes: Any,
    ) -> None:
        self.chunk_bytes = chunk_bytes
        self.clock = ManualClock(NOW_MS)
        self.timer = ManualTimer(self.clock)
        self.fs = filesystem or FakeFilesystem(self.clock)
        config = small_segments(
            segment_bytes,
            remote_storage_enable=True,
            local_retention_bytes=-1,
            local_retention_ms=-1,
            retention_bytes=-1,
        )
        whole = small_segments(segment_bytes, retention_bytes=-1)
        self.oracle = open_log(self.fs, whole, directory="/oracle/t-0", clock=self.clock)
        self.log = open_log(self.fs, config, directory="/data/t-0", clock=self.clock)
        self.tier = SegmentTier(self.fs)
        self.metadata = LookupMetadata()
        self.copied: list[RemoteLogSegmentMetadata] = []
        self.settings = settings(**changes)
        self.run: Callable[..., Any] = run_here
        self._ids = SeededRandomness(1)
        self.epoch = 0
        if begin:
            self.begin()

    def begin(self) -> Reader:
        """A reader as at a start of the broker, on the caches' directories as they are."""
        self.reader = self.make_reader()
        self.reader.start()
        if self not in _open:
            _open.append(self)
        return self.reader

    def make_reader(self) -> Reader:
        """One that has touched nothing yet."""
        return Reader(
            self.settings,
            self.tier,
            self.metadata,
            Environment(
                filesystem=self.fs,
                clock=self.clock,
                timer=self.timer,
                run_blocking=self.run,
                randomness=self._ids,
            ),
        )

    # -- writing -----------------------------------------------------------------------------

    def append(self, *values: bytes, timestamp_ms: int = NOW_MS, **options: Any) -> None:
        batch = make_batch(*values, timestamp_ms=timestamp_ms, **options)
        self._append(bytes(batch))

    def mark(self, producer_id: int, *, commit: bool) -> None:
        marker = build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=0,
            commit=commit,
            coordinator_epoch=1,
            timestamp_ms=NOW_MS,
        )
        self._append(bytes(marker), origin=AppendOrigin.COORDINATOR)

    def _append(self, batch: bytes, **options: Any) -> None:
        for log in (self.oracle, self.log):
            append(log, memoryview(bytearray(batch)), leader_epoch=self.epoch, **options)

    def fill(self, batches: int, size: int = 100) -> None:
        for number in range(batches):
            self.append(bytes([number % 256]) * size, timestamp_ms=NOW_MS + number)

    def copy(self, *, roll: bool = True, drop: bool = True) -> None:
        """All closed segments leave."""
        if roll:
            self.oracle.writer.roll()
            self.log.writer.roll()
        facts = self.oracle.segment_facts()
        for segment, following in pairwise(facts):
            if not self.copied or segment.base_offset > self.copied[-1].end_offset:
                self.copy_segment(self.oracle, segment, following.base_offset)
        if drop:
            self.log.highest_remote_offset = self.copied[-1].end_offset
            self.log.durable_remote_offset = self.copied[-1].end_offset
            active = self.log.segment_facts()[-1]
            config = self.log.config.model_copy(update={"local_retention_bytes": active.size})
            self.log.update_config(config)
            self.log.retention.delete_old_segments()
            assert self.log.local_log_start_offset == self.copied[-1].end_offset + 1

    def copy_segment(self, log: Log, segment: Segment, end: int) -> RemoteLogSegmentMetadata:
        def content(path: str) -> bytes:
            return self.fs.read_bytes(path) if self.fs.exists(path) else b""

        aborts = content(segment.transaction_index.path)
        data = content(segment.path)[: segment.size]
        metadata = RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(PARTITION, self._ids.uuid4()),
            start_offset=segment.base_offset,
            end_offset=end - 1,
            max_timestamp_ms=segment.largest_timestamp,
            broker_id=1,
            event_timestamp_ms=NOW_MS,
            segment_size_bytes=len(data),
            segment_leader_epochs=tuple(
                SegmentEpoch(*entry)
                for entry in log.leader_epochs.entries_in_range(segment.base_offset, end)
            ),
            txn_index_empty=not aborts,
        )
        stored = StoredSegment(
            data,
            content(segment.offset_index.path),
            content(segment.time_index.path),
            aborts,
            self.chunk_bytes,
        )
        self.tier.add(metadata, stored)
        self.metadata.add_finished(metadata)
        self.copied.append(metadata)
        return metadata

    # -- reading -----------------------------------------------------------------------------

    def request(self, offset: int, **options: Any) -> ReadRequest:
        wanted: dict[str, Any] = {
            "max_bytes": MIB,
            "min_one_batch": True,
            "with_aborted": False,
            "client": ALICE,
            **options,
        }
        return ReadRequest(partition=PARTITION, log=self.log, offset=offset, **wanted)

    def read(self, offset: int, **options: Any) -> Read:
        return self.reader.read(self.request(offset, **options))

    async def answer(self, offset: int, **options: Any) -> RemoteRecords:
        """A read that must succeed, waited for."""
        read = self.read(offset, **options)
        for _ in range(10):
            if not read.finished:
                await settle()
        assert read.finished
        if read.error is not None:
            raise read.error
        assert read.records is not None
        return read.records

    async def replay(self, *, max_bytes: int = MIB, client: tuple[str, str] = ALICE) -> bytes:
        """All of the remote log as a consumer reads it."""
        offset = self.log.log_start_offset
        parts = []
        while offset < self.log.local_log_start_offset:
            data = bytes_of(await self.answer(offset, max_bytes=max_bytes, client=client))
            parts.append(data)
            offset = headers_of(data)[-1].next_offset
        return b"".join(parts)

    def expected(self) -> bytes:
        """What `replay` must give."""
        return b"".join(
            self.tier.segments[metadata.id].log
            for metadata in self.copied
            if metadata.end_offset < self.log.local_log_start_offset
        )

    @property
    def downloads(self) -> int:
        return sum(self.tier.chunk_calls.values())

    def files(self, directory: str) -> Sequence[str]:
        """Names in a cache directory, those of its folders included."""
        found: list[str] = []
        if not self.fs.exists(directory):
            return found
        for entry in self.fs.list_directory(directory):
            if entry.is_directory:
                found += self.files(f"{directory}/{entry.name}")
            else:
                found.append(entry.name)
        return sorted(found)
