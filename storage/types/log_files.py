"""Names of the files of a partition.

    <base offset, 20 digits>.log        batches               storage.segment.segment
                            .index      offset index          storage.index.offset_index
                            .timeindex  time index            storage.index.time_index
                            .txnindex   transaction index     storage.index.transaction_index
                            .snapshot   producer state        storage.producers.snapshot

A further suffix says what is going on:

    .deleted   no longer part of the log; removed after `file.delete.delay.ms`
    .cleaned   being written by the cleaner; worth nothing after a crash
    .skipped   skipped by an operator (`varve tier skip`); an empty segment stands in its place
    .swap      written whole by the cleaner, taking the place of what it was made from

A number so great that a segment's offsets would go beyond the last there is names no segment.

Source: Kafka, LogFileUtils.java.
"""

from typing import Final, NamedTuple

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
SKIPPED_SUFFIX: Final = ".skipped"

SEGMENT_SUFFIXES: Final = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

_DIGITS: Final = 20

OFFSET_MAX: Final = (1 << 63) - 1
"""The greatest offset there is."""

RELATIVE_OFFSET_MAX: Final = (1 << 31) - 1
"""How far above its segment's base offset a batch may end: what fits into an index entry."""


class LogFileName(NamedTuple):
    """A parsed file name. `stage` is "" for a live file, else e.g. `.deleted`."""

    base_offset: int
    kind: str
    stage: str


def log_file_name(base_offset: int, kind: str, stage: str = "") -> str:
    """The name of one file, e.g. `00000000000000000042.timeindex`."""
    return f"{base_offset:020d}{kind}{stage}"


def parse_log_file_name(name: str) -> LogFileName | None:
    """Parse a name; None for a file that belongs to no segment."""
    digits, dot, rest = name.partition(".")
    if not dot or len(digits) != _DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    kind, dot, stage = rest.partition(".")
    if "." + kind not in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX):
        return None
    if dot and "." + stage not in (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX):
        return None
    room = RELATIVE_OFFSET_MAX if "." + kind in SEGMENT_SUFFIXES else 0
    if int(digits) > OFFSET_MAX - room:
        return None
    return LogFileName(int(digits), "." + kind, dot + stage)
