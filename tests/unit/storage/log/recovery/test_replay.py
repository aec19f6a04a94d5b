"""Reading the producers again from a range of a log's batches."""

import pytest

from storage.log.log import Log
from storage.log.recovery.replay import REPLAY_TICK_BATCHES, replay
from storage.producers.state import ProducerStateManager
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import append, make_batch, open_log, small_segments

PRODUCER = 7


def _of_a_producer(batches: int) -> Log:
    """Each batch is a record of one producer, in small segments; every second of nobody."""
    log = open_log(FakeFilesystem(), small_segments(400))
    for sequence in range(batches):
        append(
            log,
            make_batch(b"own", producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence),
        )
        append(log, make_batch(b"of nobody"))
    return log


def _known(producers: ProducerStateManager) -> tuple[int, int] | None:
    """Last sequence and last offset of the producer."""
    entry = producers.last_entry(PRODUCER)
    return None if entry is None else (entry.last_sequence, entry.last_data_offset)


@pytest.mark.parametrize(
    ("start", "end", "known"),
    [
        (0, 20, (9, 18)),
        (0, 8, (3, 6)),  # What begins at the end is left out.
        (7, 11, (5, 10)),
        (19, 20, None),  # A batch of nobody alone.
        (8, 8, None),
    ],
)
def test_the_batches_of_the_range_are_known(
    start: int, end: int, known: tuple[int, int] | None
) -> None:
    """Over the borders of segments."""
    log = _of_a_producer(10)
    assert len(log.segments) > 3
    producers = log.producer_state.empty_copy()
    replay(log.segments, producers, start, end)
    assert _known(producers) == known


def test_a_long_replay_asks_whether_to_go_on() -> None:
    """At each segment, and within one."""
    log = open_log(FakeFilesystem(), small_segments(1 << 30))
    for _ in range(REPLAY_TICK_BATCHES):
        append(log, make_batch(b"x"))
    asked = []
    replay(
        log.segments,
        log.producer_state.empty_copy(),
        0,
        log.log_end_offset,
        lambda: asked.append(1),
    )
    assert len(asked) == 2
