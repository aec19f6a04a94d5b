"""Leader epochs that their checkpoint lacks, read from the log's batches."""

import logging
from collections.abc import Callable

from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.log.recovery.replay import REPLAY_TICK_BATCHES
from storage.segment.segments import Segments

_log = logging.getLogger(__name__)


def complete_epochs(
    epochs: LeaderEpochCache,
    segments: Segments,
    begin: int | None,
    tick: Callable[[], None],
) -> None:
    """Read the epochs that are missing, all of them or those below the first known one.

    DeleteRecords drops epochs that end before the new log start. The epochs' checkpoint is written
    with the next epoch, the one of the log start later: after a crash between them the log starts
    where it did before.

    Args:
        epochs: Of the log; changed.
        segments: Of the log, at least one.
        begin: Where the log begins; None after a clean stop: no epoch lacks there.
        tick: Called now and then; what it raises ends this.

    Raises:
        DiskError: The disk refused.
    """
    first = epochs.earliest_entry
    if first is None:
        # What a scan will refuse may have left its epochs here; the truncation at the end of
        # loading takes them out again, as they begin after the log's end.
        if entries := _epochs_of_batches(segments, None, tick):
            epochs.replace(entries)
        return
    first_start = first[1]
    if begin is None or first_start <= begin:
        return
    entries = _epochs_of_batches(segments, first_start, tick)
    if entries and epochs.extend_back(entries):
        _log.warning(
            "leader epochs below offset %d were missing in %s, read from the batches epochs=%d",
            first_start,
            epochs.path,
            len(entries),
        )


def _epochs_of_batches(
    segments: Segments, end_offset: int | None, tick: Callable[[], None]
) -> list[tuple[int, int]]:
    """(epoch, start offset) of the batches below `end_offset`; None: of all."""
    entries: list[tuple[int, int]] = []
    for segment in segments:
        tick()
        if end_offset is not None and segment.base_offset >= end_offset:
            break
        for count, (_, header) in enumerate(segment.scan(), 1):
            if count % REPLAY_TICK_BATCHES == 0:
                tick()
            if end_offset is not None and header.base_offset >= end_offset:
                break
            if header.leader_epoch > (entries[-1][0] if entries else -1):
                entries.append((header.leader_epoch, header.base_offset))
    return entries
