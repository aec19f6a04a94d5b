"""What was open at the end of a remote log is aborted at the start of the local one."""

from uuid import UUID

import pytest

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from storage.log.truncation import StateBelow
from storage.producers.entry import BatchMetadata, ProducerEntry
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.producer_snapshots import encode_snapshot
from tiered.restore.open_transactions import abort_open_transactions
from tiered.tasks.follower import install_auxiliary_state

ID = UUID(int=5)
DIRECTORY = "/data/t-0"


def producer(producer_id: int, *, txn_first_offset: int = -1, sequence: int = 7) -> ProducerEntry:
    entry = ProducerEntry(producer_id, 3)
    entry.add_batch(BatchMetadata(sequence, 90, 0, 1_700_000_000_000))
    entry.txn_first_offset = txn_first_offset
    return entry


def opened(filesystem: FakeFilesystem, start: int = 20, *, clean: bool = True) -> Log:
    return Log.open(
        DIRECTORY,
        TopicPartition("t", 0),
        topic_id=ID,
        config=TopicConfig(remote_storage_enable=True),
        environment=Environment.without_loop(
            filesystem=filesystem, clock=ManualClock(), randomness=SeededRandomness(1)
        ),
        checkpointed=CheckpointedLog(
            recovery_point=100, log_start_offset=start, high_watermark=100, clean_shutdown=clean
        ),
    )


def laid(*producers: ProducerEntry) -> FakeFilesystem:
    filesystem = FakeFilesystem(ManualClock())
    filesystem.mkdir("/data")
    log = opened(filesystem)
    state = StateBelow(100, [(1, 20), (4, 60)], encode_snapshot(producers))
    install_auxiliary_state(log, state, log_start_offset=20, now_ms=1_700_000_000_000)
    log.close()
    return filesystem


@pytest.mark.parametrize("clean", [True, False])
def test_the_log_goes_on_where_the_remote_part_ends(clean: bool) -> None:
    """With its epochs and its producers: a retry of the last batch is known."""
    log = opened(laid(producer(9)), clean=clean)
    assert (log.log_start_offset, log.local_log_start_offset) == (20, 100)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (100, 100, 100)
    assert list(log.leader_epochs.entries()) == [(1, 20), (4, 60)]
    retry = build_batch(
        [(None, b"v", (), 1_700_000_000_000)], producer_id=9, producer_epoch=3, base_sequence=7
    )
    again = log.writer.append_as_leader(memoryview(retry), leader_epoch=5, now_ms=1_700_000_000_000)
    assert again.first_offset == 90

    batch = build_batch(
        [(None, b"v", (), 1_700_000_000_000)], producer_id=9, producer_epoch=3, base_sequence=8
    )
    info = log.writer.append_as_leader(memoryview(batch), leader_epoch=5, now_ms=1_700_000_000_000)
    assert info.first_offset == 100


def test_what_was_open_is_aborted() -> None:
    """Nobody else could end it; readers of committed records go on, without its records."""
    log = opened(
        laid(producer(9, txn_first_offset=50), producer(8), producer(7, txn_first_offset=70))
    )
    assert log.last_stable_offset == 50
    assert abort_open_transactions(log, leader_epoch=5, now_ms=1_700_000_000_001) == 2
    assert (log.log_end_offset, log.last_stable_offset) == (102, 102)
    aborted = log.reader.aborted_transactions(100, 102)
    assert sorted(aborted) == [(7, 70), (9, 50)]
    assert abort_open_transactions(log, leader_epoch=5, now_ms=1_700_000_000_001) == 0
