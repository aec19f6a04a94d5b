"""Segments are made with the topic's settings: jitter, preallocation."""

from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    NOW_MS,
    TOPIC_ID,
    TOPIC_PARTITION,
    append,
    make_batch,
    open_log,
    small_segments,
)


def test_jitter_comes_off_the_age() -> None:
    """So that partitions do not roll together; the seed repeats it."""
    config = small_segments(9999, segment_ms=1000, segment_jitter_ms=500)
    found = set()
    for seed in range(20):
        log = Log.open(
            DIRECTORY,
            TOPIC_PARTITION,
            topic_id=TOPIC_ID,
            config=config,
            environment=FakeEnvironment(
                filesystem=FakeFilesystem(),
                clock=ManualClock(NOW_MS),
                randomness=SeededRandomness(seed),
            ),
        )
        found.add(log.segment_facts()[0].roll_jitter_ms)
    assert len(found) > 10
    assert all(0 <= jitter < 500 for jitter in found)


def test_preallocated_space_is_no_log() -> None:
    """It is cut off when the segment is closed, and after a kill."""
    filesystem = FakeFilesystem()
    config = small_segments(300, preallocate=True)
    log = open_log(filesystem, config)
    append(log, make_batch(b"x"))
    assert filesystem.file_size(log.segment_facts()[0].path) == 300
    killed = open_log(filesystem, config)
    assert (killed.log_end_offset, killed.size()) == (1, log.size())
    killed.writer.roll()
    assert filesystem.file_size(killed.segment_facts()[0].path) == log.size()
