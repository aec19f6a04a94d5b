"""Histograms from a broker's `/metrics`: what it says of itself while it is measured."""

import http.client
import re
from collections.abc import Mapping, Sequence

Buckets = Mapping[float, float]
"""Upper bound to how many samples are not above it."""


def scrape(address: str) -> str:
    """The text of `/metrics` on an admin listener."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def buckets(text: str, name: str) -> dict[float, float]:
    """The buckets of a histogram that has no other label.

    Raises:
        LookupError: There is no such histogram.
    """
    pattern = re.compile(rf'^{re.escape(name)}_bucket{{le="([^"]+)"}} (\S+)$', re.MULTILINE)
    found = {float(bound): float(count) for bound, count in pattern.findall(text)}
    if not found:
        raise LookupError(f"no histogram {name}")
    return found


def quantile(before: Buckets, after: Buckets, fraction: float) -> float:
    """The bound that `fraction` of the samples in between do not exceed; 0 without samples."""
    bounds: Sequence[float] = sorted(after)
    total = after[bounds[-1]] - before.get(bounds[-1], 0.0)
    for bound in bounds:
        if after[bound] - before.get(bound, 0.0) >= fraction * total:
            return bound if total else 0.0
    return bounds[-1]
