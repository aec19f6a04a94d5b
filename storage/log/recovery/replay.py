"""Reading the producers of a log again, from the headers of its batches."""

from collections.abc import Callable
from typing import Final

from protocol.records.batch import CONTROL_BIT, LOG_OVERHEAD
from storage.log.recovery.segment_recovery import replay_batch
from storage.producers.state import ProducerStateManager
from storage.segment.segments import Segments

REPLAY_TICK_BATCHES: Final = 4096
"""Batches between two checks whether the broker stops."""


def replay(
    segments: Segments,
    producer_state: ProducerStateManager,
    start: int,
    end: int,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Give the batches of [start, end) to the producer state, by their headers.

    Transaction indexes are not written: what is below the recovery point has them. `tick` is called
    now and then; what it raises ends this.
    """
    if start >= end:
        return
    for segment in segments.from_offset(start):
        if segment.base_offset >= end:
            break
        tick()
        batches = segment.scan(segment.position_of(start))
        for count, (position, header) in enumerate(batches, 1):
            if count % REPLAY_TICK_BATCHES == 0:
                tick()
            if header.base_offset >= end:
                break
            if header.producer_id < 0:
                continue
            batch = memoryview(b"")
            if header.attributes & CONTROL_BIT:
                size = header.batch_length + LOG_OVERHEAD
                batch = memoryview(segment.open_file().read_at(size, position))
            replay_batch(producer_state, None, header, batch)
    producer_state.map_end_offset = end
