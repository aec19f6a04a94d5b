"""Skip of a corrupt local segment (`varve tier skip`), so that copying goes on behind it.

    blocked (`tiered.tasks.copier`) ──skip──> an empty segment in its place: nothing to copy, and
                                              reads there go on behind it, as in a compacted log
                                              its files stay in the folder, suffix `.skipped`

The empty segment is the record: it is on disk before the copier checks again, and is there after
every restart. When local retention has taken it, the hole between the remote segments shows it.
Entries of the transaction index are kept as far as they can be read: transactions that began before
the segment, and were aborted in it, stay aborted for readers of the local log.
"""

import logging
from typing import NamedTuple

from storage.cleaner.cleaned_segment import CleanedSegment
from storage.environment.environment import Environment
from storage.errors import CorruptFileError
from storage.segment.segment import Segment
from storage.types.log_files import LOG_SUFFIX, SKIPPED_SUFFIX, log_file_name
from tiered.errors import RemoteStorageError
from tiered.tasks.led_partition import LedPartition, uncopied_segments

_log = logging.getLogger(__name__)


class SkippedSegment(NamedTuple):
    """The segment that is, or would be, skipped.

    Attributes:
        start_offset, end_offset: Of the segment; `end_offset` exclusive.
        size_bytes: Of its log.
        problem: Why it cannot be copied.
        kept_as: The file that its log will be.
    """

    start_offset: int
    end_offset: int
    size_bytes: int
    problem: str
    kept_as: str


def blocked_segment(led: LedPartition) -> tuple[Segment, SkippedSegment]:
    """The segment that copying stops before.

    Raises:
        RemoteStorageError: There is none.
    """
    blocked = led.blocked
    waiting = uncopied_segments(led, 1)
    if blocked is None or not waiting or waiting[0][0].base_offset != blocked.base_offset:
        raise RemoteStorageError(
            f"{led.tiered.partition}: no segment is known to be corrupt: nothing to skip"
        )
    segment, end = waiting[0]
    name = log_file_name(segment.base_offset, LOG_SUFFIX, SKIPPED_SUFFIX)
    kept_as = f"{segment.directory}/{name}"
    return segment, SkippedSegment(segment.base_offset, end, segment.size, blocked.problem, kept_as)


async def skip_blocked(
    led: LedPartition, start_offset: int, environment: Environment
) -> SkippedSegment:
    """Skip the blocked segment; no copy of the partition may be under way.

    Args:
        led: Whose.
        start_offset: Of the segment that is meant.
        environment: Of the log.

    Raises:
        RemoteStorageError: It is another one, or none.
        StorageError: The disk refused; the segment is as it was, or wholly replaced.
    """
    segment, found = blocked_segment(led)
    if found.start_offset != start_offset:
        raise RemoteStorageError(
            f"{led.tiered.partition}: the corrupt segment begins at offset {found.start_offset}, "
            f"not at {start_offset}"
        )
    log = led.tiered.log

    def make_empty() -> None:
        empty = CleanedSegment(
            segment.directory,
            segment.base_offset,
            environment.filesystem,
            log.config.index_interval_bytes,
        )
        try:
            for aborted in segment.transaction_index.entries():
                empty.append_aborted(aborted)
        except CorruptFileError as error:
            _log.warning(
                "%s: transaction index of the skipped segment cannot be read: %s",
                led.tiered.partition,
                error,
            )
        empty.finish()

    await environment.run_blocking(make_empty)
    if not led.is_active or segment not in log.segment_facts():
        # The next start removes what was made.
        raise RemoteStorageError(f"{led.tiered.partition}: the segment is not here any more")
    log.replacement.replace(start_offset, [start_offset], keep=True)
    led.blocked = None
    _log.warning(
        "%s: offsets %d to %d are skipped (%s); the segment's files are kept as %s",
        led.tiered.partition,
        found.start_offset,
        found.end_offset - 1,
        found.problem,
        found.kept_as,
    )
    return found
