"""Start of a table without records of its topic, as `source.start` says it.

    earliest                             each partition's log start; the default
    latest                               each partition's end at the job's first view
    {0: 120, 1: 77}                      offsets; partitions that are not named: earliest
    {timestamp: 2026-01-01T00:00:00Z}    the first record of that time or later
    {timestamp: {0: ..., 1: ...}}        the same by partition; others: earliest
    {timestamp: ..., strategy: latest}   where no record is of that time or later: begin at the end;
                                         `error`, the default, fails

Times are ISO 8601 with a time zone, or milliseconds since 1970. `strategy` is what
`startingOffsetsByTimestampStrategy` is to Spark's Kafka source.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from typing_extensions import TypeIs

EXPECTED: Final = (
    "earliest, latest, a mapping of partitions to offsets, or {timestamp: 2026-01-01T00:00:00Z} "
    "is expected"
)


class StartTimes(NamedTuple):
    """Times to begin at, in milliseconds since 1970.

    Attributes:
        time_ms: Of partitions without one of their own; None: they begin at the earliest offset.
        times_ms: By partition.
        latest_if_no_match: Begin at the end where no record is of the time or later.
    """

    time_ms: int | None
    times_ms: Mapping[int, int] = {}
    latest_if_no_match: bool = False

    def of(self, partition: int) -> int | None:
        """The time a partition begins at, if it does begin at one."""
        return self.times_ms.get(partition, self.time_ms)


Start: TypeAlias = Literal["earliest", "latest"] | Mapping[int, int] | StartTimes


def parse_start(given: object) -> Start:
    """Parse the setting; ValueError with what is expected."""
    if given == "earliest" or given == "latest":  # a tuple loses the literals
        return given
    if not isinstance(given, Mapping):
        raise ValueError(EXPECTED)
    if "timestamp" in given or "strategy" in given:
        return _parse_times(given)
    if not given or not all(_is_number(n) and _is_number(o) for n, o in given.items()):
        raise ValueError(EXPECTED)
    return dict(given)


def _parse_times(given: Mapping[object, object]) -> StartTimes:
    if strange := given.keys() - {"timestamp", "strategy"}:
        names = ", ".join(sorted(map(str, strange)))
        raise ValueError(f"{names}: only timestamp and strategy are expected")
    strategy = given.get("strategy", "error")
    if strategy not in ("error", "latest"):
        raise ValueError("strategy: error or latest is expected")
    time = given.get("timestamp")
    if isinstance(time, Mapping):
        if not time or not all(map(_is_number, time)):
            raise ValueError("timestamp: a mapping of partitions to times is expected")
        times = {partition: _milliseconds(one) for partition, one in time.items()}
        return StartTimes(None, times, strategy == "latest")
    return StartTimes(_milliseconds(time), {}, strategy == "latest")


def _milliseconds(given: object) -> int:
    """YAML makes a `datetime` of a time that is not quoted, and a `date` of one without a time."""
    found = given
    if isinstance(given, str):
        try:
            found = datetime.fromisoformat(given)
        except ValueError:
            found = None
    if isinstance(found, datetime) and found.tzinfo is not None:
        # Rounded up to a whole millisecond: no record before the time is meant.
        found = -(-int(found.timestamp() * 1_000_000) // 1000)
    if not _is_number(found):
        raise ValueError(
            "timestamp: a time from 1970 on with its zone, such as 2026-01-01T00:00:00Z, or "
            "milliseconds are expected"
        )
    return found


def _is_number(given: object) -> TypeIs[int]:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0
