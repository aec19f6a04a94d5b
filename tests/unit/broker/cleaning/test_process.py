"""The process itself: cleans a log on the disk, is killed, ends with its broker."""

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from broker.cleaning.messages import Limits
from broker.cleaning.process import LocalCleaningProcess
from broker.cleaning.process_cleaner import ProcessCleaner
from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import CleaningFailedError
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition


@pytest.fixture
def process() -> Iterator[LocalCleaningProcess]:
    made = LocalCleaningProcess()
    yield made
    made.kill()


def gone(process: LocalCleaningProcess) -> bool:
    until = time.monotonic() + 20
    while not process.is_gone():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_it_cleans_a_log_and_can_be_killed(tmp_path: Path) -> None:
    """A killed one fails its run, and the next process does it."""
    filesystem = LocalFilesystem()
    log = Log.open(
        str(tmp_path / "t-0"),
        TopicPartition("t", 0),
        topic_id=UUID(int=1),
        config=TopicConfig(cleanup_policy=("compact",)),
        environment=Environment.without_loop(
            filesystem=filesystem, clock=SystemClock(), randomness=SeededRandomness(1)
        ),
    )
    for at in range(60):
        batch = build_batch([(b"k%d" % (at % 4), b"v%d" % at, (), 1_700_000_000_000)])
        log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=1_700_000_000_000)
    log.update_high_watermark(log.log_end_offset)
    log.writer.roll()
    made: list[LocalCleaningProcess] = []

    def start() -> LocalCleaningProcess:
        made.append(LocalCleaningProcess())
        if len(made) == 1:
            made[0]._process.kill()
        return made[-1]

    cleaner = ProcessCleaner(
        start,
        lambda: Cleaner(filesystem, dedupe_buffer_bytes=1 << 20),
        filesystem=filesystem,
        clock=SystemClock(),
        limits=Limits(1 << 20, 0.9, 1 << 16, 0.0),
    )

    def clean() -> int:
        return cleaner.clean(
            log,
            first_dirty_offset=0,
            first_uncleanable_offset=60,
            now_ms=1_700_000_000_000,
            check_done=lambda: None,
            on_owner=lambda act: act(),
        ).records_kept

    try:
        with pytest.raises(CleaningFailedError, match="ended status=-9"):
            clean()
        assert clean() == 4
        assert cleaner.lost == 1
    finally:
        cleaner.close()
    assert gone(made[1])


def test_it_ends_when_its_broker_has_gone(process: LocalCleaningProcess) -> None:
    """The kernel closes the connection of a broker that is killed."""
    process._socket.close()
    assert gone(process)


def test_it_says_nothing_unasked(process: LocalCleaningProcess) -> None:
    assert process.receive(0.01) is None
    assert not process.is_gone()
