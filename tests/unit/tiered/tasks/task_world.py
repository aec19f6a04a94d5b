"""What the tests of the remote log's tasks share: one partition, its disk, its bucket, a broker.

The disk, the bucket, the metadata's records and the clock outlive the broker: `crash` and `start`
make a new one over the same. Time stands still but for `run`.
"""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from config.tier import TierConfig
from config.topic import TopicConfig
from storage.environment.alerts import Alerts
from storage.environment.off_loop import Run
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment, run_inline
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.loop_turns import turns
from tests.fakes.tiered.memory_bucket_tier import Bucket, BucketTier
from tests.fakes.tiered.remote_metadata import FakeRemoteMetadata, MetadataEvents
from tests.fakes.timer import ManualTimer
from tests.unit.storage.log.log_model import (
    NOW_MS,
    TOPIC_ID,
    Opened,
    append,
    make_batch,
    open_log,
    small_segments,
)
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.bucket_ownership import Claim
from tiered.metadata.history import PartitionHistory, decode_history
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.remote_log_manager import RemoteLogManager
from tiered.tasks.tiered_partition import TieredPartition
from tiered.tier import TopicFacts

PARTITION = TopicIdPartition(TOPIC_ID, "t", 0)

FOREVER = -1

Reach = Callable[[str], Any]


def tiered_config(**changes: object) -> TopicConfig:
    """One batch per segment; everything is kept in remote storage, nothing for long locally."""
    defaults: dict[str, object] = {
        "remote_storage_enable": True,
        "retention_ms": FOREVER,
        "retention_bytes": FOREVER,
        "local_retention_ms": FOREVER,
        "local_retention_bytes": 0,
    }
    return small_segments(**{"segment_bytes": 150, **defaults, **changes})  # type: ignore[arg-type]  # settings of any type


class World:
    """See the module."""

    def __init__(self, config: TopicConfig | None = None, settings: TierConfig | None = None):
        self.config = config or tiered_config()
        self.settings = settings or TierConfig(
            remote_log_manager_task_retry_jitter=0.0, tier_verify_bytes_per_second=0
        )
        self.clock = ManualClock(NOW_MS)
        self.filesystem = FakeFilesystem(self.clock)
        self.bucket = Bucket(self.clock)
        self.events = MetadataEvents()
        self.alerts = Alerts()
        self.deleted: set[UUID] = set()
        self.run_blocking: Run = run_inline
        self.seed = 0
        self.reach: Reach | None = None
        self.log_start_checkpoint = 0
        self.remote_checkpoint = -1
        self.log_start_moves = 0
        self.paused = False
        self.truncating = False
        self.leader_epoch = 0
        self.log = open_log(self.filesystem, self.config, clock=self.clock)
        self.boot()

    # -- the broker --------------------------------------------------------------------------

    async def _reach(self, point: str) -> None:
        if self.reach is not None:
            await self.reach(point)

    def boot(self) -> None:
        """A new broker; the log is that of the caller."""
        self.seed += 1
        self.timer = ManualTimer(self.clock)
        self.tier = BucketTier(self.bucket, self.filesystem, self._reach)
        self.metadata = FakeRemoteMetadata(self.events, self._reach)
        self.environment = FakeEnvironment(
            timer=self.timer,
            filesystem=self.filesystem,
            randomness=SeededRandomness(self.seed),
            run_blocking=lambda function, *args: self.run_blocking(function, *args),
        )
        self.manager = RemoteLogManager(
            metadata=self.metadata,
            tier=self.tier,
            claim=Claim(
                tier=self.tier,
                environment=self.environment,
                cluster_id="cluster",
                settings=lambda: self.settings,
                alerts=self.alerts,
            ),
            environment=self.environment,
            broker_id=1,
            settings=lambda: self.settings,
            is_deleted=self.deleted.__contains__,
            alerts=self.alerts,
        )

    def tiered(self) -> TieredPartition:
        def moved() -> None:
            self.log_start_moves += 1

        return TieredPartition(
            partition=PARTITION,
            log=self.log,
            leader_epoch=self.leader_epoch,
            facts=lambda: TopicFacts(1, {}, "cluster"),
            copy_paused=lambda: self.paused,
            on_log_start_moved=moved,
            on_disk_failed=self.log.fail,
            is_truncating=lambda: self.truncating,
        )

    def lead(self) -> None:
        self.manager.on_leadership(self.tiered())

    async def start(self) -> None:
        """The broker starts, and leads the partition."""
        self.manager.start()
        self.lead()
        await self.run(0)

    async def crash(self) -> None:
        """The process ends between two instructions; the next one has the disk as it is."""
        await self.manager.stop()
        await self.drain()
        self.log = open_log(
            self.filesystem,
            self.config,
            clock=self.clock,
            opened=Opened(
                self.log.recovery_point,
                self.log_start_checkpoint,
                remote_offset=self.remote_checkpoint,
            ),
        )
        self.log.update_high_watermark(self.log.log_end_offset)
        self.boot()

    def set_config(self, **changes: object) -> None:
        self.config = self.config.model_copy(update=changes)
        self.log.update_config(self.config)
        self.manager.on_config_change(PARTITION)

    def update(self, **changes: Any) -> None:
        self.settings = self.settings.with_values(changes)
        self.manager.update()

    @property
    def led(self) -> LedPartition:
        tasks = self.manager.tasks_of(PARTITION)
        assert tasks is not None
        assert tasks.led is not None
        return tasks.led

    # -- time --------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Let the loop run until nothing of ours does, or what does waits for time."""
        quiet = 0
        running = -1
        while quiet < 30 and await turns(1):
            pools = (self.manager.copier_pool, self.manager.expiration_pool)
            now = sum(pool.running + pool.queued for pool in pools)
            quiet = quiet + 1 if now == running else 0
            running = now

    async def run(self, ms: float, step_ms: float = 1000.0) -> None:
        """Time passes."""
        await self.drain()
        while ms >= 0:
            self.timer.advance(min(ms, step_ms))
            await self.drain()
            ms -= step_ms

    async def interval(self, count: int = 1) -> None:
        """So many task intervals pass."""
        await self.run(count * (self.settings.remote_log_manager_task_interval_ms + 1), 10_000.0)

    async def collect_garbage(self) -> None:
        """One pass, after the grace period."""
        self.clock.advance(self.settings.tier_gc_grace_ms + 1)
        await self.scrub()

    async def scrub(self, *, dry_run: bool = False) -> None:
        pass_ = asyncio.ensure_future(self.manager.scrubber.run_once(dry_run=dry_run))
        while not pass_.done():
            await asyncio.sleep(0)
            if self.timer.pending:
                self.timer.advance(0.0 if pass_.done() else 50.0)
        await pass_

    # -- the log -----------------------------------------------------------------------------

    def write(self, segments: int, *, size: int = 40, timestamp_ms: int | None = None) -> None:
        """So many more closed segments of one record each, on disk and committed."""
        when = self.clock.now_ms() if timestamp_ms is None else timestamp_ms
        for _ in range(segments):
            append(
                self.log,
                make_batch(b"x" * size, timestamp_ms=when),
                leader_epoch=self.leader_epoch,
                now_ms=when,
            )
            self.log.writer.roll()
        self.log.flusher.flush()

    def checkpoint(self) -> None:
        """The log start is on disk, and how far the log was copied."""
        log = self.log
        self.log_start_checkpoint = log.log_start_offset
        log.durable_log_start_offset = log.log_start_offset
        if log.remote_storage:
            log.durable_remote_offset = max(log.durable_remote_offset, log.highest_remote_offset)
        self.remote_checkpoint = log.durable_remote_offset

    def expire_local(self) -> int:
        """Local retention and the removal of files; the log start is on disk before.

        Else a crash would forget a DeleteRecords whose segments have gone, and find a hole.
        """
        self.checkpoint()
        count = self.log.retention.delete_old_segments()
        self.log.deletion.remove_deleted_files(now=True)
        return count

    # -- looking -----------------------------------------------------------------------------

    def states(self) -> list[tuple[int, int, SegmentState]]:
        return [
            (segment.start_offset, segment.end_offset, segment.state)
            for segment in self.metadata.segments(PARTITION)
        ]

    def finished(self) -> list[tuple[int, int]]:
        return [
            (start, end)
            for start, end, state in self.states()
            if state is SegmentState.COPY_SEGMENT_FINISHED
        ]

    def orphans(self) -> list[str]:
        """Objects of segments that the metadata does not know."""
        known = {segment.id for segment in self.metadata.segments(PARTITION)}
        keys = ObjectKeys()
        found = []
        for name in self.bucket.objects:
            key = keys.parse(name)
            if key is not None and key.segment_id.id not in known:
                found.append(name)
        return found

    def missing(self) -> list[int]:
        """Finished segments whose objects are not all there."""
        return [
            segment.start_offset
            for segment in self.metadata.segments(PARTITION)
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED
            and not self.tier.is_whole(segment)
        ]

    def unreadable(self) -> list[int]:
        """Offsets from the log start on that are neither here nor in a whole remote segment."""
        lost = []
        local = self.log.local_log_start_offset
        for offset in range(self.log.log_start_offset, min(local, self.log.log_end_offset)):
            epoch = self.log.leader_epochs.epoch_for_offset(offset)
            assert epoch is not None
            segment = self.metadata.find(PARTITION, epoch, offset)
            if segment is None or not self.tier.is_whole(segment):
                lost.append(offset)
        return lost

    def gaps(self) -> list[int]:
        """Offsets up to the highest remote offset that remote storage does not have."""
        lost = []
        for offset in range(self.log.log_start_offset, self.log.highest_remote_offset + 1):
            epoch = self.log.leader_epochs.epoch_for_offset(offset)
            assert epoch is not None
            if self.metadata.find(PARTITION, epoch, offset) is None:
                lost.append(offset)
        return lost

    def history(self) -> PartitionHistory | None:
        """What the bucket tells readers; None: nothing."""
        key = ObjectKeys().history_key(PARTITION)
        stored = self.bucket.objects.get(key)
        return None if stored is None else decode_history(stored.data, key)

    def lost_to_readers(self) -> list[int]:
        """Start offsets of segments that the bucket tells readers of, and that are not there."""
        history = self.history()
        segments = () if history is None else history.segments
        return [one.start_offset for one in segments if not self.tier.is_whole(one)]

    def check(self) -> None:
        """What must hold at any time."""
        assert self.lost_to_readers() == []
        assert self.unreadable() == []
        assert self.gaps() == []
        log: Log = self.log
        assert log.log_start_offset <= log.local_log_start_offset <= log.log_end_offset
        assert log.highest_remote_offset < log.log_end_offset


async def unfinished(
    world: World, found: RemoteLogSegmentMetadata, *, whole: bool
) -> RemoteLogSegmentMetadata:
    """A past leader began it, and died."""
    world.metadata.assign([PARTITION])
    await world.metadata.add(found)
    keys = world.tier.keys.segment_keys(found)
    for key in keys if whole else keys[:1]:
        world.bucket.put(key, b"x" * found.segment_size_bytes)
    return found
