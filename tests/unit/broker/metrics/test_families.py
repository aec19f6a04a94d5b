"""Families come out of Prometheus' own parser as they were meant."""

from prometheus_client.parser import text_string_to_metric_families

from broker.metrics.families import counter, gauge, histogram
from broker.metrics.page import render

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: bytes, family: str) -> Samples:
    """Samples of one family."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for found in text_string_to_metric_families(text.decode())
        for sample in found.samples
        if sample.name.startswith(family)
    }


def test_counters_and_gauges_have_their_labels() -> None:
    text = render(
        [
            counter("varve_seen", "Seen.", ("topic",), [(("a",), 3), (("b",), 0)]),
            gauge("varve_now", "Now.", (), [((), 1.5)]),
        ]
    )
    assert samples(text, "varve_seen") == {
        ("varve_seen_total", (("topic", "a"),)): 3,
        ("varve_seen_total", (("topic", "b"),)): 0,
    }
    assert samples(text, "varve_now") == {("varve_now", ()): 1.5}
    assert b"# TYPE varve_seen_total counter" in text
    assert b"# TYPE varve_now gauge" in text


def test_hostile_label_values_do_not_break_the_page() -> None:
    """Group and client names come from strangers."""
    evil = 'a"} 1\nvarve_fake{x="\\'
    text = render([gauge("varve_groups", "G.", ("group",), [((evil,), 7)])])
    assert samples(text, "varve_groups") == {("varve_groups", (("group", evil),)): 7}
    assert samples(text, "varve_fake") == {}


def test_histogram_buckets_add_up() -> None:
    """Counts are per bucket, what is told is cumulative; the last bucket is everything."""
    counts = [2, 0, 3, 4]
    text = render(
        [histogram("varve_ms", "Time.", ("api",), (0.5, 1.0, 10.0), [(("F",), counts, 55.5)])]
    )
    assert samples(text, "varve_ms") == {
        ("varve_ms_bucket", (("api", "F"), ("le", "0.5"))): 2,
        ("varve_ms_bucket", (("api", "F"), ("le", "1.0"))): 2,
        ("varve_ms_bucket", (("api", "F"), ("le", "10.0"))): 5,
        ("varve_ms_bucket", (("api", "F"), ("le", "+Inf"))): 9,
        ("varve_ms_count", (("api", "F"),)): 9,
        ("varve_ms_sum", (("api", "F"),)): 55.5,
    }
