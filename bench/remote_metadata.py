"""How long the remote log's metadata takes to be ready, by what has to be read.

    python -m bench.remote_metadata [--events 1000000] [--partitions 50]

Makes `__remote_log_metadata` with a history of copies and deletions on real logs, one batch per
event as brokers write them, of which `--live` segments are left. Then a broker's part of it is
started on those files, and timed from opening the logs until every user partition is visible:

    clean stop      every metadata partition has a snapshot of its end
    kill            snapshots, and `--delta` events after them in every metadata partition
    no snapshots    all events are read

`stall` is the longest CPU time the loop's thread spent in one turn: how long others were kept
waiting by this work, whatever else the machine was doing.
"""

import argparse
import asyncio
import contextlib
import gc
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.controller.images.cluster_image import PartitionImage, TopicImage
from broker.remote.metadata_log import ReplicaMetadataLog
from broker.remote.metadata_topic import REMOTE_LOG_METADATA, TOPIC_CONFIGS
from broker.replicas.replica_manager import ReplicaManager
from broker.runtime.disk import Disk
from broker.runtime.timer import TimerWheel
from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness, SystemRandomness
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.records import encode_event
from tiered.metadata.settings import MetadataSettings
from tiered.metadata.snapshot_store import LocalSnapshotStore
from tiered.metadata.topic_based_manager import TopicMetadataManager
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

NODE_ID = 1
TOPIC_ID = UUID(int=1 << 100)
USER_TOPIC_ID = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)
CONFIG = TopicConfig(retention_ms=-1)
"""Without `flush.messages`: what is measured is reading, and a million syncs would take an hour."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start."""

    seconds: float
    stall_ms: float
    events_read: int
    segments: int


class History:
    """Logs of the metadata topic in a directory, and the events in them."""

    def __init__(self, directory: Path, metadata_partitions: int, user_partitions: int) -> None:
        self.directory = directory
        self.metadata_partitions = metadata_partitions
        self.users = [
            TopicIdPartition(USER_TOPIC_ID, "measured", index) for index in range(user_partitions)
        ]
        self._places = [metadata_partition(user, metadata_partitions) for user in self.users]
        self._ends = [0] * user_partitions
        self._next_id = 1
        self._alive: list[list[RemoteLogSegmentMetadata]] = [[] for _ in self.users]
        self.events = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[list[Log]]:
        """All logs of the topic, closed cleanly in the end."""
        filesystem, clock = LocalFilesystem(), SystemClock()
        logs = [
            Log.open(
                str(self.directory / f"{REMOTE_LOG_METADATA}-{index}"),
                TopicPartition(REMOTE_LOG_METADATA, index),
                topic_id=TOPIC_ID,
                config=CONFIG,
                environment=Environment.without_loop(
                    filesystem=filesystem, clock=clock, randomness=SeededRandomness(1)
                ),
                checkpointed=CheckpointedLog(clean_shutdown=self.events > 0),
            )
            for index in range(self.metadata_partitions)
        ]
        try:
            yield logs
        finally:
            for log in logs:
                log.close()

    def write(self, logs: list[Log], events: int, live: int, *, per_batch: int = 1) -> None:
        """Tell `events` more; the newest `live` finished segments are left, others deleted."""
        live_each = max(live // len(self.users), 1)
        pending: list[list[bytes]] = [[] for _ in logs]
        end = self.events + events
        while self.events < end:
            for index, place in enumerate(self._places):
                if self.events >= end:
                    break
                for value in self._step(index, live_each):
                    pending[place].append(value)
                    self.events += 1
                if len(pending[place]) >= per_batch:
                    self._append(logs[place], pending[place], per_batch)
        for log, values in zip(logs, pending, strict=True):
            self._append(log, values, per_batch)

    def _append(self, log: Log, values: list[bytes], per_batch: int) -> None:
        now_ms = time.time_ns() // 1_000_000
        for first in range(0, len(values), per_batch):
            records = [(None, value, (), now_ms) for value in values[first : first + per_batch]]
            log.writer.append_as_leader(
                memoryview(build_batch(records)),
                leader_epoch=0,
                now_ms=now_ms,
                origin=AppendOrigin.COORDINATOR,
            )
        values.clear()

    def _step(self, index: int, live: int) -> Iterator[bytes]:
        """A segment is copied; the oldest goes if there are too many."""
        user, start = self.users[index], self._ends[index]
        self._ends[index] = start + 10_000
        metadata = RemoteLogSegmentMetadata(
            RemoteLogSegmentId(user, UUID(int=self._next_id << 64 | 0x8000)),
            start,
            start + 9_999,
            1_700_000_000_000 + start,
            1,
            1_700_000_000_000 + start,
            1 << 30,
            (SegmentEpoch(start // 5_000_000, start),),
            txn_index_empty=True,
        )
        self._next_id += 1
        yield encode_event(metadata)
        yield encode_event(_update(metadata, SegmentState.COPY_SEGMENT_FINISHED))
        self._alive[index].append(metadata)
        if len(self._alive[index]) > live:
            oldest = self._alive[index].pop(0)
            yield encode_event(_update(oldest, SegmentState.DELETE_SEGMENT_STARTED))
            yield encode_event(_update(oldest, SegmentState.DELETE_SEGMENT_FINISHED))

    async def start(self, *, last_snapshots: bool) -> Start:
        """Start on what is there, wait until all is visible, stop."""
        loop = asyncio.get_running_loop()
        # As the broker does: the history we have made ourselves is not to be collected meanwhile.
        gc.collect()
        gc.freeze()
        clock = SystemClock()
        timer = TimerWheel(loop, clock)
        disk = Disk(2)
        stalls = _Stalls(loop)
        began = time.perf_counter()
        with self.open() as logs:
            replicas = ReplicaManager(clock=clock, timer=timer, disk=disk, loop=loop)
            for log in logs:
                partition = replicas.open_partition(log.topic_partition, TOPIC_ID, log)
                index = log.topic_partition.partition
                partition.become_leader(
                    PartitionImage(index, NODE_ID, 0, 0, (NODE_ID,), (NODE_ID,)), now_ms=0.0
                )
                replicas.lead(partition)
            stalls.start()
            controller: Any = SimpleNamespace(image=self._image())
            manager = TopicMetadataManager(
                ReplicaMetadataLog(
                    replicas, controller, clock=clock, partitions=self.metadata_partitions
                ),
                LocalSnapshotStore(LocalFilesystem(), str(self.directory / "snapshots"), disk.run),
                Environment(
                    clock=clock,
                    timer=timer,
                    filesystem=LocalFilesystem(),
                    randomness=SystemRandomness(),
                    run_blocking=disk.run,
                ),
                settings=MetadataSettings(
                    stop_max_ms=60_000, snapshot_events=10_000 if last_snapshots else 1 << 60
                ),
            )
            manager.start()
            manager.assign(self.users)
            for user in self.users:
                await manager.ready(user)
            seconds = time.perf_counter() - began
            stall_ms = stalls.stop()
            found = [list(manager.segments(user)) for user in self.users]
            self._check(found)
            result = Start(seconds, stall_ms, manager.stats.events_read, sum(map(len, found)))
            if not last_snapshots:
                for reader, _ in manager._readers.values():
                    reader.is_loaded = False
            await manager.close()
        timer.close()
        disk.close()
        return result

    def _check(self, found: list[list[RemoteLogSegmentMetadata]]) -> None:
        """A fast start that forgets something fails."""
        for alive, segments in zip(self._alive, found, strict=True):
            assert [m.id for m in alive] == [m.id for m in segments]

    def _image(self) -> SimpleNamespace:
        partitions = tuple(
            PartitionImage(
                index=index, leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,)
            )
            for index in range(self.metadata_partitions)
        )
        topic = TopicImage(REMOTE_LOG_METADATA, TOPIC_ID, partitions, dict(TOPIC_CONFIGS), False)
        return SimpleNamespace(topics={REMOTE_LOG_METADATA: topic})


def _update(
    metadata: RemoteLogSegmentMetadata, state: SegmentState
) -> RemoteLogSegmentMetadataUpdate:
    return RemoteLogSegmentMetadataUpdate(
        metadata.segment_id, metadata.event_timestamp_ms, state, 1
    )


class _Stalls:
    """Turns the loop as fast as it can, and keeps the longest turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last = 0.0
        self._longest = 0.0
        self._running = False

    def start(self) -> None:
        self._running = True
        self._last = time.thread_time()
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        now = time.thread_time()
        self._longest = max(self._longest, now - self._last)
        self._last = now
        if self._running:
            self._loop.call_soon(self._turn)

    def stop(self) -> float:
        """Milliseconds of CPU."""
        self._running = False
        return self._longest * 1000


async def measure(
    directory: Path,
    *,
    events: int,
    live: int,
    metadata_partitions: int,
    user_partitions: int,
    delta: int,
    per_batch: int = 1,
) -> dict[str, Start]:
    """All three starts."""
    history = History(directory, metadata_partitions, user_partitions)
    with history.open() as logs:
        history.write(logs, events, live, per_batch=per_batch)
    starts = {"no snapshots": await history.start(last_snapshots=True)}
    starts["clean stop"] = await history.start(last_snapshots=False)
    with history.open() as logs:
        history.write(logs, delta * metadata_partitions, live)
    starts["kill"] = await history.start(last_snapshots=False)
    return starts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--live", type=int, default=5_000)
    parser.add_argument("--partitions", type=int, default=50, help="of the metadata topic")
    parser.add_argument("--users", type=int, default=500, help="partitions with remote storage")
    parser.add_argument("--delta", type=int, default=1_000)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="varve-remote-metadata-"))
    try:
        began = time.perf_counter()
        starts = asyncio.run(
            measure(
                directory,
                events=options.events,
                live=options.live,
                metadata_partitions=options.partitions,
                user_partitions=options.users,
                delta=options.delta,
            )
        )
        print(f"{options.events} events, {time.perf_counter() - began:.0f} s with making them")
        for name, start in starts.items():
            print(
                f"{name:13} {start.seconds:7.2f} s  stall {start.stall_ms:5.1f} ms  "
                f"{start.events_read:8} events read  {start.segments} segments"
            )
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
