"""A snapshot written by a thread is of the moment it was asked for, whatever came since."""

import pytest

from storage.producers import capture as producer_capture
from storage.producers.entry import ProducerEntry
from storage.producers.snapshot import SnapshotRow, decode_snapshot, rows_of
from storage.producers.state import ProducerStateManager
from storage.types.topic_partition import TopicPartition
from tests.fakes.filesystem import FakeFilesystem

PATH = "/t-0/00000000000000000010.snapshot"


def state_with(filesystem: FakeFilesystem, producers: int) -> ProducerStateManager:
    filesystem.mkdir("/t-0")
    state = ProducerStateManager(TopicPartition("t", 0), "/t-0", filesystem, snapshot_offsets=())
    for producer in range(producers):
        state.append(producer, 0, 0, 0, producer, producer, 1000)
    return state


def test_changes_after_it_are_not_in_it() -> None:
    """Batches, markers, epochs, expiry and newcomers."""
    filesystem = FakeFilesystem()
    state = state_with(filesystem, 10)
    capture = state.capture(10)
    assert capture is not None
    state.append(0, 0, 1, 1, 10, 10, 2000)
    state.append(1, 1, 0, 0, 11, 11, 2000)
    state.append(2, 0, 1, 1, 12, 12, 2000, True)
    state.append_control(3, 1, 1, 5, 13, 2000)
    state.append(77, 0, 0, 0, 14, 14, 2000)
    for _ in range(2):
        state.remove_expired(1000 + 86_400_000)
    state.append(5, 0, 8, 8, 15, 15, 3000)
    state.append(5, 0, 9, 9, 16, 16, 3000)
    capture.run()
    state.finish_capture(capture)
    entries = {e.producer_id: e for e in decode_snapshot(filesystem.peek(PATH), PATH)}
    assert sorted(entries) == list(range(10))
    for producer, entry in entries.items():
        assert (entry.epoch, entry.last_sequence, entry.last_data_offset) == (0, 0, producer)
        assert (entry.txn_first_offset, entry.coordinator_epoch) == (-1, -1)
    assert state.snapshots.latest_offset == 10


def test_a_change_while_an_entry_is_read_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread may have read half of what was and half of what is."""
    filesystem = FakeFilesystem()
    state = state_with(filesystem, 3)
    capture = state.capture(10)
    assert capture is not None

    def interrupted(entry: ProducerEntry) -> tuple[SnapshotRow, ...]:
        if entry.producer_id == 1 and entry.last_sequence == 0:
            (row,) = rows_of(entry)
            monkeypatch.setattr(producer_capture, "rows_of", rows_of)
            state.append(1, 0, 1, 1, 10, 10, 2000)
            return ((*row[:2], *rows_of(entry)[-1][2:]),)
        return rows_of(entry)

    monkeypatch.setattr(producer_capture, "rows_of", interrupted)
    capture.run()
    entries = {e.producer_id: e for e in decode_snapshot(filesystem.peek(PATH), PATH)}
    assert (entries[1].last_sequence, entries[1].last_data_offset) == (0, 1)


def test_nothing_is_kept_once_nobody_writes() -> None:
    filesystem = FakeFilesystem()
    state = state_with(filesystem, 2)
    first, second = state.capture(10), state.capture(11)
    assert first is not None
    assert second is not None
    state.drop_capture(first)
    second.run()
    state.finish_capture(second)
    assert state.capture(11) is None
    assert state._captures is None
