"""Metrics of the tier process, and of its calls to the object store."""

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge, histogram
from tiered.object_store.statistics import LATENCY_BOUNDS_MS


def of_tier(statistics: Mapping[str, Any]) -> Iterator[Metric]:
    """Families from `Tier.statistics`."""
    worker = statistics.get("worker", {})
    for name, text in (
        ("starts", "Starts of the tier process."),
        ("losses", "Times the tier process was lost: killed, or without an answer."),
        ("calls_refused", "Calls to the tier process refused because too many waited."),
    ):
        yield counter(f"varve_tier_{name}", text, (), [((), worker.get(name) or 0)])
    for name, text in (
        ("calls_in_flight", "Calls the tier process is working on."),
        ("calls_waiting", "Calls that wait for a place in the tier process."),
        ("resident_bytes", "Memory of the tier process."),
        ("cpu_seconds", "CPU time of the tier process that runs now."),
    ):
        yield gauge(f"varve_tier_{name}", text, (), [((), worker.get(name) or 0)])
    calls: Mapping[str, Any] = statistics.get("store", {}).get("calls", {})
    for field, text in (
        ("calls", "Calls to the object store."),
        ("bytes", "Bytes of payload moved by calls to the object store."),
        ("retries", "Repeated attempts of calls to the object store."),
    ):
        yield counter(
            f"varve_tier_store_{field}",
            text,
            ("call",),
            [((call,), row[field]) for call, row in calls.items()],
        )
    yield counter(
        "varve_tier_store_errors",
        "Calls to the object store that failed.",
        ("call", "kind"),
        [
            ((call, kind), count)
            for call, row in calls.items()
            for kind, count in row["errors"].items()
        ],
    )
    yield histogram(
        "varve_tier_store_seconds",
        "How long calls to the object store took, retries included.",
        ("call",),
        [bound / 1000 for bound in LATENCY_BOUNDS_MS],
        [((call,), row["latency_counts"], row["seconds"]) for call, row in calls.items()],
    )
