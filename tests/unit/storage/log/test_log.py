"""Opening, renaming and deleting a log; its parts have test modules of their own."""

import pytest

from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    TOPIC_ID,
    TOPIC_PARTITION,
    append,
    make_batch,
    open_log,
    read_records,
    small_segments,
)


def test_a_renamed_folder_keeps_serving() -> None:
    """Deleting a topic begins with a new name."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(150))
    for _ in range(4):
        append(log, make_batch(b"x" * 40))
    log.rename_directory(f"{DIRECTORY}.0-delete")
    assert len(read_records(log)) == 4
    for segment in log.segment_facts():
        segment.close()
    assert len(read_records(log)) == 4
    log.delete()
    assert not filesystem.exists(f"{DIRECTORY}.0-delete")


@pytest.mark.parametrize(
    ("checkpointed", "is_short"),
    [
        (CheckpointedLog(high_watermark=4, recovery_point=4), False),
        (CheckpointedLog(high_watermark=5), True),
        (CheckpointedLog(recovery_point=5), True),
        (CheckpointedLog(recovery_point=5, clean_shutdown=True), True),
        (CheckpointedLog(), False),
    ],
)
def test_a_log_that_ends_before_its_checkpoints_has_lost_records(
    checkpointed: CheckpointedLog, is_short: bool
) -> None:
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    for _ in range(4):
        append(log, make_batch(b"x"))
    log.close(clean=False)
    again = Log.open(
        DIRECTORY,
        TOPIC_PARTITION,
        topic_id=TOPIC_ID,
        config=small_segments(),
        environment=Environment.without_loop(
            filesystem=filesystem, clock=ManualClock(), randomness=SeededRandomness(1)
        ),
        checkpointed=checkpointed,
    )
    assert again.is_short is is_short
