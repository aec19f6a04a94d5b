"""What is remembered of one producer."""

import pytest

from storage.producers.entry import SEQUENCE_MAX, BatchMetadata, ProducerEntry


@pytest.mark.parametrize(
    ("last", "delta", "first"),
    [
        (4, 4, 0),
        (0, 0, 0),
        (0, 1, SEQUENCE_MAX),
        (2, 5, SEQUENCE_MAX - 2),
        (SEQUENCE_MAX, 0, SEQUENCE_MAX),
    ],
)
def test_first_sequence_wraps(last: int, delta: int, first: int) -> None:
    """A batch may begin before 2**31 - 1 and end after 0."""
    batch = BatchMetadata(last, 100, delta, 0)
    assert batch.first_sequence == first
    assert batch.first_offset == 100 - delta


def test_five_batches() -> None:
    """The oldest goes; the last one is what snapshots keep."""
    entry = ProducerEntry(1, 0)
    assert (entry.last_sequence, entry.last_data_offset, entry.last_offset_delta) == (-1, -1, 0)
    for index in range(7):
        entry.add_batch(BatchMetadata(index, 10 + index, 0, 1_000 + index))
    assert [batch.last_sequence for batch in entry.batches] == [2, 3, 4, 5, 6]
    assert (entry.last_sequence, entry.last_data_offset, entry.last_timestamp) == (6, 16, 1_006)


def test_epoch_clears_batches() -> None:
    """Only another one."""
    entry = ProducerEntry(1, 0)
    entry.add_batch(BatchMetadata(0, 10, 0, 1_000))
    entry.move_to_epoch(0)
    assert len(entry.batches) == 1
    entry.move_to_epoch(1)
    assert entry.batches == []
