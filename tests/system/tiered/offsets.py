"""The offset invariants of a partition with remote storage, and how they are read from outside.

    remote   Rx ├──────────────────────────┤ Ry
    local                    Lx ├───────────────────────┤ Ly ├────┤ Lz
    log      S  ├───────────────────────────────────────────────────┤

    S    log start offset                       ListOffsets -2 (EARLIEST)
    Rx   first offset in remote storage         the bucket: lowest start of a whole segment
    Ry   end of what is in remote storage       ListOffsets -5 (LATEST_TIERED) + 1
    Lx   local log start offset                 ListOffsets -4 (EARLIEST_LOCAL)
    Ly   last stable offset                     ListOffsets -1, read_committed
    Lz   end of the log (high watermark)        ListOffsets -1, read_uncommitted

All ends are exclusive here, so Ry is what Kafka tells plus one: with nothing tiered it tells -1 and
Ry is 0. KIP-405 gives the four first; the fifth is what they are for: nothing is missing between.

    1  Lz >= Ly         the stable part is part of the log
    2  Ly >= Lx         local deletion stops at what is stable
    3  Ly >= Ry         only stable records are copied
    4  Ry >= Rx         (where anything is in remote storage)
    5  no hole          when S < Lx: every offset of [S, Lx) is in a whole remote segment, and
                        Lx <= Ry

The values change while they are read, but each of S, Lx, Ry, Ly and Lz only grows. Read in the
order files, S, Lx, Ry, bucket, Ly, Lz, S again, a violation can only be a real one: whatever is
compared with `>=` was read later on its greater side. For the fifth, Lx is older than the listing,
and only offsets at or above the later S are asked for, since S moves before segments are deleted.

The directory must agree: the first local segment begins at or below Lx.

Source: KIP-405, "RemoteLogManager" (Lx, Ly, Lz, Rx, Ry); features.md 4.4 names the two chains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TieredOffsets:
    """See the module; `first_local_segment` is None when the directory could not be looked at."""

    log_start: int
    local_start: int
    remote_end: int
    last_stable: int
    log_end: int
    log_start_later: int
    remote_segments: Sequence[tuple[int, int]] = field(default=())
    """(start, end exclusive) of whole segments, ascending by start; they may overlap."""
    first_local_segment: int | None = None


def violations(offsets: TieredOffsets) -> list[str]:
    """What does not hold, one line each; empty when all does."""
    o = offsets
    found = []
    if o.log_end < o.last_stable:
        found.append(f"1: Lz {o.log_end} < Ly {o.last_stable}")
    if o.last_stable < o.local_start:
        found.append(f"2: Ly {o.last_stable} < Lx {o.local_start}")
    if o.last_stable < o.remote_end:
        found.append(f"3: Ly {o.last_stable} < Ry {o.remote_end}")
    if o.remote_end and o.remote_segments and o.remote_end < o.remote_segments[0][0]:
        found.append(f"4: Ry {o.remote_end} < Rx {o.remote_segments[0][0]}")
    if o.log_start < o.local_start and o.log_start_later < o.local_start:
        if o.local_start > o.remote_end:
            found.append(f"5: Lx {o.local_start} > Ry {o.remote_end}")
        hole = _first_missing(o.remote_segments, o.log_start_later, o.local_start)
        if hole is not None:
            found.append(
                f"5: offset {hole} is neither local (Lx {o.local_start}) nor in the bucket"
            )
    if o.first_local_segment is not None and o.first_local_segment > o.local_start:
        found.append(f"directory begins at {o.first_local_segment} > Lx {o.local_start}")
    return found


def _first_missing(segments: Sequence[tuple[int, int]], begin: int, end: int) -> int | None:
    """The first offset of [begin, end) that no segment holds."""
    for start, stop in segments:
        if start > begin:
            break
        begin = max(begin, stop)
    return begin if begin < end else None
