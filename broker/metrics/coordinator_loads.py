"""Metrics of a coordinator's loads: the same for groups, transactions and share states."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from broker.coordinator.stats import LoadStats
from broker.metrics.families import counter


def load_metrics(prefix: str, topic: str, stats: LoadStats) -> Iterator[Metric]:
    """Families of one coordinator.

    Args:
        prefix: Of the metrics' names, without `_`.
        topic: The coordinator's topic.
        stats: Its counters.
    """
    for name, text, value in (
        ("loads", f"Partitions of {topic} that were loaded.", stats.loaded_partitions),
        (
            "load_failures",
            f"Loads of partitions of {topic} that failed; the log says why.",
            stats.load_failures,
        ),
        ("reloads", "Partitions reloaded after a write with unknown outcome.", stats.reloads),
        (
            "skipped_records",
            f"Records of {topic} passed over in a load: damaged, or of a newer release.",
            stats.skipped_records,
        ),
    ):
        yield counter(f"{prefix}_{name}", text, (), [((), value)])
