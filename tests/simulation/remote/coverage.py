"""I14: what left the disks of a simulated cluster lies in its bucket, and nothing else does.

of a replica      each offset from its partition's log start up to its local log start is in a
                  segment whose three objects are all in the bucket
of a log start    what lies below it was older than `retention.ms`, or to be deleted. Of several
                  that were set the shortest counts for as long as a leader may not have heard
at the end        the bucket has the segments that the metadata has as copied, each whole, once
                  garbage was collected
"""

import json
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from broker.replicas.partition import Partition
from tests.simulation.clients.history import History
from tests.simulation.oracles.topic_setting import TopicSetting
from tests.simulation.world import Place, Violation, World
from tiered.format.object_keys import ObjectKeys, ObjectSuffix
from tiered.segment_metadata import SegmentState, TopicIdPartition

OBJECTS: Final = len(ObjectSuffix)


class RemoteCoverage:
    """See the module. It follows the bucket of a world.

    Attributes:
        copied: Segments that were whole at some time.
        removed: Segments that were whole, and are not any more.
        shrunk: Partitions of which that is so since they were asked about.
    """

    def __init__(self, world: World, history: History, retention_ms: int) -> None:
        self._world = world
        self._history = history
        self._retention = TopicSetting(world, "retention.ms", retention_ms)
        self._starts: dict[Place, int] = {}
        self._keys = ObjectKeys()
        self._objects: dict[str, set[str]] = {}
        self._ranges: dict[str, tuple[UUID, Place, int, int]] = {}
        self._revision = 0
        self._seen: dict[tuple[str, Place, UUID], tuple[int, int, int]] = {}
        self.copied = 0
        self.removed = 0
        self.shrunk: set[Place] = set()
        world.bucket.on_change = self._changed

    def _changed(self, key: str) -> None:
        parsed = self._keys.parse(key)
        if parsed is None:
            return
        stem, _, suffix = key.rpartition(".")
        had = self._objects.setdefault(stem, set())
        was_whole = len(had) == OBJECTS
        stored = self._world.bucket.objects.get(key)
        if stored is None:
            had.discard(suffix)
        else:
            had.add(suffix)
            if suffix == ObjectSuffix.MANIFEST:
                said = json.loads(stored.data)["remoteLogSegmentMetadata"]
                of = parsed.segment_id.partition
                place = Place(of.topic, of.partition)
                self._ranges[stem] = (of.topic_id, place, said["startOffset"], said["endOffset"])
        is_whole = len(had) == OBJECTS
        if is_whole is not was_whole:
            self.copied += is_whole
            self.removed += was_whole
            self._revision += 1
        if was_whole and not is_whole:
            self.shrunk.add(self._ranges[stem][1])

    def whole(self) -> set[str]:
        """Names, without suffix, of the segments that are whole."""
        return {stem for stem, had in self._objects.items() if len(had) == OBJECTS}

    def check(self, node_id: int, place: Place, partition: Partition) -> None:
        """A replica's log: nothing is gone that the bucket does not have.

        Raises:
            Violation: Something is.
        """
        log = partition.log
        self._retention.note(place.topic)
        start, local = self._world.log_start(place), log.local_log_start_offset
        name = self._world.brokers[node_id].process.name
        key = (name, place, partition.topic_id)
        if self._seen.get(key) == (start, local, self._revision):
            return
        self._seen[key] = (start, local, self._revision)
        self._check_expiry(node_id, place, start)
        at = start
        for first, last in sorted(self._of(partition.topic_id, place)):
            if first > at or at >= local:
                break
            at = max(at, last + 1)
        if at < local:
            raise Violation(
                f"I14 {place} on {node_id} begins at {start}, on its disk at {local}; the bucket "
                f"lacks {at}"
            )

    def _check_expiry(self, node_id: int, place: Place, start: int) -> None:
        """Nothing below the log start is younger than the retention, by any broker's clock."""
        before = self._starts.get(place, 0)
        if start <= before:
            return
        self._starts[place] = start
        now_ms = max(one.clock.now_ms() for one in self._world.brokers.values())
        lately = self._retention.lately(place.topic)
        retention_ms = min(float("inf") if value < 0 else value for value in lately)
        acked, written_ms = self._history.acked[place], self._history.written_ms
        for offset in range(max(before, self._history.trimmed[place]), start):
            value = acked.get(offset)
            if value is None:
                continue
            age_ms = now_ms - written_ms[value]
            if age_ms < retention_ms:
                raise Violation(
                    f"I14 {place} on {node_id} begins at {start}: {offset} is {age_ms} ms old, "
                    f"{retention_ms} are kept"
                )

    def _of(self, topic_id: UUID, place: Place) -> Iterable[tuple[int, int]]:
        for stem, (of_id, where, first, last) in self._ranges.items():
            if (of_id, where) == (topic_id, place) and len(self._objects[stem]) == OBJECTS:
                yield first, last

    def leftovers(self, partitions: Iterable[Partition]) -> str:
        """What of the bucket the leaders of partitions do not know as copied, or lack; "": nothing.

        Args:
            partitions: Of the leaders, all of them.
        """
        known = set()
        for partition in partitions:
            broker = self._world.brokers[partition.leader_id].broker
            assert broker is not None
            if broker.remote is None or broker.remote.metadata is None:
                return f"{partition.topic_partition}: no remote storage"
            id_partition = TopicIdPartition(
                partition.topic_id,
                partition.topic_partition.topic,
                partition.topic_partition.partition,
            )
            if not broker.remote.metadata.is_ready(id_partition):
                return f"{partition.topic_partition}: its metadata is not visible"
            segments = broker.remote.metadata.segments(id_partition)
            for segment in segments:
                if segment.state is not SegmentState.COPY_SEGMENT_FINISHED:
                    return f"{segment} is {segment.state.name}"
                keys = self._keys.segment_keys(segment)
                known.add(keys.log.rpartition(".")[0])
        there = {stem for stem, had in self._objects.items() if had}
        if known != there:
            lacking, unknown = sorted(known - there), sorted(there - known)
            return f"lacks {lacking}, unknown {unknown}"
        if there != self.whole():
            return f"not whole: {sorted(there - self.whole())}"
        return ""
