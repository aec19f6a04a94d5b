"""Jobs that open logs, and their progress."""

from storage.checkpoints.checkpoint_files import RECOVERY_POINT_CHECKPOINT
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.log_loading import LoadJob, LoadProgress, bytes_to_recover
from storage.types.topic_partition import TopicPartition
from tests.fakes.filesystem import FakeFilesystem

A0 = TopicPartition("a", 0)


def test_progress_counts_every_byte_once() -> None:
    """However a log reports its own, and also if it never does."""
    progress = LoadProgress()
    progress.add(2, 300)
    directory = LogDirectory("/one", FakeFilesystem())
    talks = LoadJob(directory, A0, 100, lambda job: job.finish(), progress)
    silent = LoadJob(directory, A0, 200, lambda job: job.finish(), progress)
    talks.advance(30, 100)
    talks.advance(20, 100)
    assert progress.bytes_done == 30
    talks.advance(500, 500)
    assert progress.bytes_done == 100
    assert not progress.is_complete
    talks()
    silent()
    assert (progress.partitions_done, progress.bytes_done) == (2, 300)
    assert progress.is_complete


def test_order() -> None:
    """Internal topics, then little work before much."""
    directory = LogDirectory("/one", FakeFilesystem())
    shapes = [("big", 900), ("__consumer_offsets", 500), ("small", 1)]
    jobs = [
        LoadJob(directory, TopicPartition(topic, 0), size, lambda _job: None, LoadProgress())
        for topic, size in shapes
    ]
    jobs.sort(key=lambda job: job.rank)
    order = [job.topic_partition.topic for job in jobs]
    assert order == ["__consumer_offsets", "small", "big"]


def test_bytes_to_recover() -> None:
    """Segments that reach above the recovery point; nothing after a clean stop."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/one/a-0")
    for base_offset, size in ((0, 100), (10, 200), (20, 400)):
        filesystem.poke(f"/one/a-0/{base_offset:020d}.log", bytes(size))
    filesystem.poke("/one/a-0/00000000000000000020.log.deleted", bytes(999))
    directory = LogDirectory("/one", filesystem)
    for recovery_point, expected in (
        (0, 700),
        (9, 700),
        (10, 600),
        (19, 600),
        (20, 400),
        (25, 400),
    ):
        directory.offsets[RECOVERY_POINT_CHECKPOINT] = {A0: recovery_point}
        assert bytes_to_recover(filesystem, directory, A0) == expected
    directory.had_clean_shutdown = True
    assert bytes_to_recover(filesystem, directory, A0) == 0
