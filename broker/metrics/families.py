"""Metric families by Kafka's JMX-exporter names, so that existing dashboards work.

Names are the MBean's domain, type and name in lower case, joined by underscores, as the usual
exporter rules make them: `kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=t` becomes
`kafka_server_brokertopicmetrics_bytesin_total{topic="t"}`. What Kafka has no name for begins with
`varve_`.
"""

from collections.abc import Iterable, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

Labelled = Iterable[tuple[Sequence[str], float]]
"""(label values, value)."""


def counter(name: str, text: str, labels: Sequence[str], samples: Labelled) -> Metric:
    """A counter; `_total` is added to its name."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def gauge(name: str, text: str, labels: Sequence[str], samples: Labelled) -> Metric:
    """A gauge."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def histogram(
    name: str,
    text: str,
    labels: Sequence[str],
    bounds: Sequence[float],
    samples: Iterable[tuple[Sequence[str], Sequence[int], float]],
) -> Metric:
    """A histogram of (label values, counts per bucket and above all bounds, sum)."""
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, counts, total in samples:
        buckets: list[tuple[str, float]] = []
        seen = 0
        for bound, count in zip(bounds, counts, strict=False):
            seen += count
            buckets.append((str(bound), seen))
        seen += counts[len(bounds)]
        buckets.append(("+Inf", seen))
        family.add_metric(values, buckets, total)
    return family
