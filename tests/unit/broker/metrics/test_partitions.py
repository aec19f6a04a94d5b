"""Metrics of partitions come from logs that nothing else changes meanwhile."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from broker.metrics.partitions import PartitionMetrics
from tests.unit.broker.replication.followers.follower_world import FollowerWorld


async def samples(f: FollowerWorld) -> list[tuple[str, str, float]]:
    """(name, topic, value) of all that the logs and the number of partitions are."""
    progress = SimpleNamespace(partitions_total=0, partitions_done=0, bytes_total=0, bytes_done=0)
    manager: Any = SimpleNamespace(offline_directories=(), progress=progress)
    controller: Any = SimpleNamespace(
        image=SimpleNamespace(topics={}), settings=SimpleNamespace(node_id=1)
    )
    sessions: Any = type("Sessions", (dict,), {"partition_count": 0, "evicted": 0})()
    metrics = PartitionMetrics(f.replicas, controller, sessions, manager)
    return [
        (sample.name, sample.labels.get("topic", ""), sample.value)
        async for family in metrics.collect()
        for sample in family.samples
        if "log_log" in sample.name or "partitioncount" in sample.name
    ]


async def test_a_log_that_a_thread_is_changing_is_left_out(tmp_path: Path) -> None:
    """A follower that begins behind its remote part has no segment for a moment."""
    f = FollowerWorld(tmp_path)
    try:
        f.led("whole")
        cut = f.add("cut")
        segments = list(cut.log.segments)
        cut.is_truncating = True
        cut.log.segments.clear()
        found = await samples(f)
        assert ("kafka_server_replicamanager_partitioncount", "", 2) in found
        assert {topic for _, topic, _ in found} == {"", "whole"}
        for segment in segments:
            cut.log.segments.add(segment)
        cut.is_truncating = False
        assert {topic for _, topic, _ in await samples(f)} == {"", "whole", "cut"}
    finally:
        f.close()
