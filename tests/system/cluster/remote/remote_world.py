"""Two brokers in memory that share a bucket and its metadata; the leader changes at a given step.

    point      a step of a broker's copy or deletion: before or after a change to bucket or metadata
    kill       the leader does nothing any more, from that point on
    pause      likewise, until the other has led for a while; then it goes on where it stood
    move       the leader hears at that point that it is one no longer
    again      the leader leads on, in a later epoch

Real parts: the remote log's tasks, the metadata's readers and state. Time is the test's.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from broker.remote.incarnation_file import CLUSTER_FILE_NAME, IncarnationFile
from config.tier import TierConfig
from config.topic import TopicConfig
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment, run_inline
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.claim_note import ClaimNote
from tests.fakes.tiered.memory_bucket_tier import Bucket, BucketTier
from tests.fakes.tiered.metadata_log import FakeMetadataLog, MetadataTopic
from tests.fakes.timer import ManualTimer
from tests.unit.storage.log.log_model import NOW_MS, append, make_batch, open_log
from tests.unit.tiered.tasks.task_world import PARTITION, tiered_config
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.cluster_claim import ClusterClaim, ClusterIncarnation
from tiered.maintenance.scrub_report import ScrubReport
from tiered.metadata.snapshot_store import LocalSnapshotStore
from tiered.metadata.topic_based_manager import TopicMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState
from tiered.tasks.remote_log_manager import RemoteLogManager
from tiered.tasks.tiered_partition import TieredPartition
from tiered.tier import TopicFacts

INTERVAL_MS: Final = 1_000
SETTINGS: Final = TierConfig(
    remote_log_manager_task_interval_ms=INTERVAL_MS,
    remote_log_manager_task_retry_jitter=0.0,
    remote_log_manager_task_retry_backoff_ms=100,
    remote_log_manager_task_retry_backoff_max_ms=500,
    tier_verify_bytes_per_second=0,
    tier_gc_grace_ms=5_000,
    tier_history_interval_ms=1_000,
)
TURNS: Final = 40


class _Log(FakeMetadataLog):
    """The metadata topic as one broker reaches it, step by step."""

    def __init__(self, topic: MetadataTopic, broker: "Broker", *, leads: bool) -> None:
        super().__init__(topic, leads=leads)
        self._broker = broker

    async def append(self, partition: int, *values: bytes) -> int:
        await self._broker.at("append")
        offset = await super().append(partition, *values)
        await self._broker.at("appended")
        return offset


class Broker:
    """One of them: its disk, its log, its tasks.

    Attributes:
        steps: Points that it has passed.
        strike: Called at each, with their number.
    """

    def __init__(self, world: "World", node_id: int, *, leads: bool) -> None:
        self.world = world
        self.node_id = node_id
        self.epoch = -1
        self.steps = 0
        self.strike: Callable[[int], None] = lambda _number: None
        self._going = asyncio.Event()
        self._going.set()
        self.filesystem = FakeFilesystem(world.clock)
        self.filesystem.mkdir("/snapshots")
        self.config = world.config
        self.log: Log = open_log(self.filesystem, self.config, clock=world.clock)
        self.environment = FakeEnvironment(
            timer=world.timer,
            filesystem=self.filesystem,
            randomness=SeededRandomness(node_id),
            run_blocking=run_inline,
        )
        self.tier = BucketTier(world.bucket, self.filesystem, self.at)
        self.topic = _Log(world.topic, self, leads=leads)
        snapshots = LocalSnapshotStore(self.filesystem, "/snapshots", self.environment.run_blocking)
        self.metadata = TopicMetadataManager(self.topic, snapshots, self.environment)
        self.manager = RemoteLogManager(
            metadata=self.metadata,
            tier=self.tier,
            claim=ClusterClaim(
                tier=self.tier,
                environment=self.environment,
                cluster_id="cluster",
                settings=lambda: SETTINGS,
                memory=ClusterIncarnation(
                    IncarnationFile(
                        self.filesystem, "/data", self.environment.run_blocking, CLUSTER_FILE_NAME
                    ),
                    world.claim_note,
                ),
            ),
            environment=self.environment,
            broker_id=node_id,
            settings=lambda: SETTINGS,
        )

    async def at(self, _point: str) -> None:
        """A step: the world may strike, and a stopped broker gets no further."""
        self.steps += 1
        self.strike(self.steps)
        await self._going.wait()

    def stop(self) -> None:
        """It does nothing any more, until it is woken."""
        self._going.clear()

    def wake(self) -> None:
        """It goes on where it stood."""
        self._going.set()

    def start(self) -> None:
        self.metadata.start()
        self.manager.start()

    def _tiered(self, epoch: int) -> TieredPartition:
        return TieredPartition(
            partition=PARTITION,
            log=self.log,
            leader_epoch=epoch,
            facts=lambda: TopicFacts(1, {}, "cluster"),
            copy_paused=lambda: False,
            on_disk_failed=self.log.fail,
            on_log_start_moved=lambda: None,
            # A lease that is compared with the clock: a deposed broker has none.
            may_change=lambda: self.world.epoch == epoch and self._going.is_set(),
        )

    def lead(self, epoch: int) -> None:
        self.manager.on_leadership(self._tiered(epoch))

    def follow(self, epoch: int) -> None:
        self.manager.on_follower(self._tiered(epoch))

    def elect_metadata(self, *, leads: bool) -> None:
        """The metadata partitions move with the leadership."""
        for index in range(self.world.topic.partition_count):
            if leads:
                self.metadata.on_elected(index)
            else:
                self.metadata.on_resigned(index)
        self.manager.yield_deletions()

    def update_config(self, **changes: object) -> None:
        self.config = self.config.model_copy(update=changes)
        self.log.update_config(self.config)
        if self.manager.tasks_of(PARTITION) is not None:
            self.manager.on_config_change(PARTITION)

    def segments(self) -> list[RemoteLogSegmentMetadata]:
        return list(self.metadata.segments(PARTITION))


class World:
    """See the module.

    Attributes:
        epoch: The newest leader epoch.
        log_start: Greatest log start that a leader has had: followers take it over.
    """

    def __init__(self, config: TopicConfig | None = None) -> None:
        self.config = config or tiered_config()
        self.clock = ManualClock(NOW_MS)
        self.timer = ManualTimer(self.clock)
        self.bucket = Bucket(self.clock)
        self.topic = MetadataTopic(1)
        self.claim_note = ClaimNote()
        self.epoch = 0
        self.first = Broker(self, 1, leads=True)
        self.second = Broker(self, 2, leads=False)
        self.brokers = [self.first, self.second]

    async def start(self) -> None:
        """The first leads; both have what was written."""
        for broker in self.brokers:
            broker.start()
        self.first.lead(0)
        self.second.follow(0)
        await self.drain()

    async def close(self) -> None:
        """All ends, however it stands."""
        here = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not here]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def drain(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def run(self, ms: float) -> None:
        """Time passes; log starts reach the follower."""
        await self.drain()
        for _ in range(int(ms // 100)):
            self.timer.advance(100)
            await self.drain()
        start = max(broker.log.log_start_offset for broker in self.brokers)
        for broker in self.brokers:
            broker.log.raise_log_start(start)

    def write(self, segments: int, brokers: list[Broker] | None = None) -> None:
        """Closed segments of one record each, on the disks of all in sync, and committed."""
        for broker in brokers or self.brokers:
            for _ in range(segments):
                number = broker.log.log_end_offset
                append(broker.log, make_batch(b"%40d" % number), leader_epoch=self.epoch)
                broker.log.writer.roll()
            broker.log.flusher.flush()

    def expire_local(self) -> None:
        for broker in self.brokers:
            broker.log.durable_log_start_offset = broker.log.log_start_offset
            broker.log.durable_remote_offset = broker.log.highest_remote_offset
            broker.log.retention.delete_old_segments()
            broker.log.deletion.remove_deleted_files(now=True)

    def change_leader(self) -> None:
        """The second leads from now on, in the next epoch."""
        self.epoch += 1
        self.second.elect_metadata(leads=True)
        self.second.lead(self.epoch)

    def depose(self) -> None:
        """The first hears of it."""
        self.first.elect_metadata(leads=False)
        self.first.follow(self.epoch)

    async def collect_garbage(self, broker: Broker) -> ScrubReport:
        """After the grace period."""
        self.clock.advance(SETTINGS.tier_gc_grace_ms + 1)
        pass_ = asyncio.ensure_future(broker.manager.collect_garbage())
        while not pass_.done():
            await asyncio.sleep(0)
            if not pass_.done() and self.timer.pending:
                self.timer.advance(10.0)
        return await pass_

    def problems(self, broker: Broker, report: ScrubReport) -> list[str]:
        """Where bucket, metadata and log of a leader do not agree."""
        segments = broker.segments()
        found = [
            f"{one.start_offset} is {one.state.name}"
            for one in segments
            if one.state is not SegmentState.COPY_SEGMENT_FINISHED
        ]
        found += [
            f"{one.start_offset} is missing" for one in segments if not broker.tier.is_whole(one)
        ]
        ids = {one.id for one in segments}
        keys = ObjectKeys()
        for name in self.bucket.objects:
            key = keys.parse(name)
            if key is not None and key.segment_id.id not in ids:
                found.append(f"{name} is orphaned")
        if report.unknown_copies or report.missing_segments or report.lost:
            found.append(str(report))
        log = broker.log
        for offset in range(log.log_start_offset, log.local_log_start_offset):
            epoch = log.leader_epochs.epoch_for_offset(offset)
            if epoch is None or broker.metadata.find(PARTITION, epoch, offset) is None:
                found.append(f"offset {offset} cannot be read")
        return found


def retention(**limits: Any) -> dict[str, object]:
    """Settings of a topic that keeps little."""
    return {"retention_bytes": limits.get("keep_bytes", 400)}
