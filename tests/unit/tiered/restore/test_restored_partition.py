"""One partition of a bucket, by itself; of whole buckets see `test_restore`."""

from tests.fakes.tiered.manifest_bucket import CLUSTER, ManifestBucket, topic_id
from tiered.metadata.history import HistoryState, HistorySummary
from tiered.restore.bucket_manifests import read_manifests
from tiered.restore.restored_partition import restored_partition
from tiered.segment_metadata import TopicIdPartition
from tiered.tier import SideFile

PARTITION = TopicIdPartition(topic_id("a"), "a", 0)


async def test_of_nothing_that_is_readable_only_a_history_makes_a_partition() -> None:
    """It says where the offsets go on; without it the partition would begin at 0 again."""
    bucket = ManifestBucket()
    lost = bucket.add("a", 0, 0, 9)
    del bucket.side_files[lost.id, SideFile.LEADER_EPOCH]
    segments = await read_manifests(bucket, [])
    problems: list[str] = []
    assert (
        await restored_partition(bucket, PARTITION, segments, None, problems, allow_gaps=False)
        is None
    )
    assert len(problems) == 1
    history = HistorySummary(PARTITION, CLUSTER, 2, HistoryState.LIVE, 4, 5, 0, 10, 10, ())
    found = await restored_partition(
        bucket, PARTITION, segments, history, problems, allow_gaps=False
    )
    assert found is not None
    assert (found.plan.log_start_offset, found.plan.end_offset) == (10, 10)
    assert found.history_epoch == 4
    assert problems[-1] == "a-0: offsets 0 to 9 are missing"
