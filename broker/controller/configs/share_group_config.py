"""Share group config for record delivery, and the start offset of a new group."""

import re
from collections.abc import Callable
from typing import NamedTuple

EARLIEST = "earliest"
LATEST = "latest"
BY_DURATION = "by_duration:"

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


class ShareGroupConfig(NamedTuple):
    """Of one group.

    Attributes:
        record_lock_duration_ms: `share.record.lock.duration.ms`, or the broker's.
        is_read_committed: `share.isolation.level`.
        auto_offset_reset: `share.auto.offset.reset`: earliest, latest, by_duration:<ISO 8601>.
    """

    record_lock_duration_ms: int
    is_read_committed: bool = False
    auto_offset_reset: str = LATEST


ShareGroupConfigs = Callable[[str], ShareGroupConfig]
"""The settings of a group, as they are now."""


def duration_ms(auto_offset_reset: str) -> int:
    """How far back `by_duration:PnDTnHnMnS` goes.

    Raises:
        ValueError: It is something else.
    """
    text = auto_offset_reset.removeprefix(BY_DURATION)
    found = _DURATION.fullmatch(text)
    if found is None or text.upper() in ("P", "PT") or text.upper().endswith("T"):
        raise ValueError(f"{auto_offset_reset[:80]!r} is no duration")
    parts = {name: float(value or 0) for name, value in found.groupdict().items()}
    hours = parts["days"] * 24 + parts["hours"]
    return int(((hours * 60 + parts["minutes"]) * 60 + parts["seconds"]) * 1000)
