"""A snapshot that came from elsewhere takes the place of everything."""

import pytest

from storage.errors import CorruptFileError
from storage.producers.state import ProducerStateManager
from storage.types.topic_partition import TopicPartition
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import NOW_MS, append, make_batch, open_log


def _batch(producer_id: int) -> memoryview:
    return make_batch(b"x", producer_id=producer_id, producer_epoch=1, base_sequence=0)


def test_it_is_on_disk_and_alone() -> None:
    filesystem = FakeFilesystem()
    source = open_log(filesystem, directory="/data/s-0")
    append(source, _batch(5))
    source.writer.roll()
    snapshot = filesystem.read_bytes(source.producer_snapshot_path(1))
    log = open_log(filesystem)
    append(log, _batch(9))
    log.writer.roll()
    state = log.producer_state
    state.restore(100, snapshot, NOW_MS)
    assert [entry.producer_id for entry in state.active_producers()] == [5]
    assert (state.map_end_offset, state.snapshots.latest_offset) == (100, 100)
    assert not filesystem.exists(log.producer_snapshot_path(1))
    assert filesystem.read_bytes(log.producer_snapshot_path(100)) == snapshot


def test_what_is_no_snapshot_changes_nothing() -> None:
    log = open_log(FakeFilesystem())
    append(log, _batch(9))
    with pytest.raises(CorruptFileError):
        log.producer_state.restore(100, b"nothing", NOW_MS)
    assert log.producer_state.producer_id_count == 1


def _sent(filesystem: FakeFilesystem, *sequences: int, epoch: int = 0) -> ProducerStateManager:
    """State after batches of one record each."""
    state = ProducerStateManager(TopicPartition("t", 0), "/d", filesystem)
    for offset, sequence in enumerate(sequences):
        state.append(5, epoch, sequence, sequence, offset, offset, 1_000 + offset, False)
        state.map_end_offset = offset + 1
    return state


def _batches(state: ProducerStateManager) -> list[int]:
    entry = state.last_entry(5)
    assert entry is not None
    return [batch.last_sequence for batch in entry.batches]


def test_all_batches_that_may_be_sent_again_are_known() -> None:
    """A producer got no answer to several requests before the log was closed."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    closed = _sent(filesystem, 3, 4, 5)
    closed.take_snapshot()
    opened = closed.empty_copy()
    opened.truncate_and_reload(0, 3, 5_000)
    assert _batches(opened) == [3, 4, 5]
    opened.append(5, 0, 6, 6, 3, 3, 2_000, False)
    assert _batches(closed) == [3, 4, 5]
