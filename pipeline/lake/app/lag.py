"""Lag of a table behind its log: records, bytes, time."""

from typing import NamedTuple

from pipeline.lake.batch.log_view import PartitionView


class Lag(NamedTuple):
    """Lag of one partition.

    Attributes:
        records: Offsets that the table lacks, markers and aborted records among them.
        size: Their bytes in the log, estimated from segment sizes.
        time_ms: From the newest record the table has, or might have, to the newest of the log;
            of what only a broker has there is no time. 0: nothing is lacking or known.
    """

    records: int
    size: int
    time_ms: int


def partition_lag(partition: PartitionView, reached: int | None) -> Lag:
    """Of a table that has all below `reached`; None: it has nothing."""
    start = partition.start if reached is None else max(reached, partition.start)
    records = max(0, partition.end - start)
    size = 0
    had_ms = oldest_ms = -1
    for span in partition.spans:
        if span.end <= start:
            had_ms = max(had_ms, span.newest_ms)
        else:
            missing = span.end - max(span.start, start)
            size += span.size * missing // (span.end - span.start)
            if oldest_ms < 0:
                oldest_ms = span.newest_ms
    since_ms = had_ms if had_ms >= 0 else oldest_ms
    known = records > 0 and since_ms >= 0
    return Lag(records, size, max(0, partition.newest_ms - since_ms) if known else 0)
