"""Pages of several brokers as one: every sample is there, once, and says whose it is."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from broker.supervisor.merged_metrics import labelled, summed


def page(requests: int, *, only_here: bool = False) -> bytes:
    """A page with a family of each kind."""
    registry = CollectorRegistry()
    counter = Counter("requests", "Text with a # and a {.", ["api"], registry=registry)
    counter.labels("Produce").inc(requests)
    counter.labels('a "b} c\\').inc(1)
    Gauge("oldest_ms", "An age.", registry=registry).set(requests)
    sizes = Histogram("sizes", "Bytes.", buckets=(1, 10), registry=registry)
    sizes.observe(requests)
    if only_here:
        Counter("rare", "Of one broker.", registry=registry).inc(7)
    return generate_latest(registry)


def samples(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    ]
    assert len(dict(found)) == len(found), "a sample is there twice"
    return dict(found)


def test_every_sample_is_labelled_and_no_family_is_named_twice() -> None:
    pages = {"1": page(3), "2": page(5, only_here=True)}
    merged = labelled(pages)
    expected = {
        (name, labels | {("broker", broker)}): value
        for broker, text in pages.items()
        for (name, labels), value in samples(text).items()
    }
    assert samples(merged) == expected
    types = [line for line in merged.splitlines() if line.startswith(b"# TYPE")]
    assert len(types) == len(set(types))
    # All samples of a family stand together, as the format asks for.
    families = list(text_string_to_metric_families(merged.decode()))
    assert len({family.name for family in families}) == len(families)


def test_counters_and_histograms_are_added_up_and_gauges_left_out() -> None:
    merged = samples(summed({"1": page(3), "2": page(5, only_here=True)}))
    assert merged["requests_total", frozenset({("api", "Produce")})] == 8
    assert merged["requests_total", frozenset({("api", 'a "b} c\\')})] == 2
    assert merged["sizes_bucket", frozenset({("le", "10.0")})] == 2
    assert merged["sizes_bucket", frozenset({("le", "1.0")})] == 0
    assert merged["sizes_sum", frozenset()] == 8
    assert merged["rare_total", frozenset()] == 7
    assert not any(name == "oldest_ms" or name.endswith("_created") for name, _ in merged)


def test_no_broker_is_an_empty_page() -> None:
    assert labelled({}) == b""
    assert summed({}) == b""
