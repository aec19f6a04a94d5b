"""Request counters of each API, at half a microsecond a request; read at scrape time."""

from bisect import bisect_left
from typing import Final

BUCKETS_MS: Final[tuple[float, ...]] = (
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1000.0,
    2500.0,
    5000.0,
    10000.0,
)
"""Upper bounds of the request time histogram, in milliseconds; one more bucket holds the rest.

Of a tuple whose length is in its type compiled code makes a new one each time it is named.
"""

SHORTEST_MS: Final = 0.1
"""The first of them."""


class ApiStats:
    """Counters of one API.

    `buckets[i]` counts requests of at most `BUCKETS_MS[i]`; the last one those above all bounds.
    Times run from the frame's arrival to the answer being handed to the socket's queue, waiting in
    a purgatory included.
    """

    __slots__ = ("buckets", "errors", "request_bytes", "requests", "total_ms", "versions")

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.request_bytes = 0
        self.total_ms = 0.0
        self.buckets = [0] * (len(BUCKETS_MS) + 1)
        self.versions: dict[int, int] = {}

    def observe(self, elapsed_ms: float) -> None:
        """Count an answered request."""
        self.total_ms += elapsed_ms
        # Most requests are in the first bucket, which need not be searched for.
        self.buckets[0 if elapsed_ms <= SHORTEST_MS else bisect_left(BUCKETS_MS, elapsed_ms)] += 1
