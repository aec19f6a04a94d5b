"""Quantiles of what a histogram counted in between."""

import pytest

from bench.scrape import buckets, quantile

BEFORE = """# TYPE lag histogram
lag_bucket{le="0.001"} 10
lag_bucket{le="0.005"} 12
lag_bucket{le="+Inf"} 12
lag_sum 1
"""
AFTER = """# TYPE lag histogram
lag_bucket{le="0.001"} 10
lag_bucket{le="0.005"} 111
lag_bucket{le="+Inf"} 112
lag_sum 2
"""


def test_samples_of_before_do_not_count() -> None:
    before, after = buckets(BEFORE, "lag"), buckets(AFTER, "lag")
    assert before == {0.001: 10, 0.005: 12, float("inf"): 12}
    assert quantile(before, after, 0.5) == 0.005
    assert quantile(before, after, 0.99) == 0.005
    assert quantile(before, after, 0.999) == float("inf")
    assert quantile({}, before, 0.5) == 0.001


def test_without_samples() -> None:
    assert quantile(buckets(BEFORE, "lag"), buckets(BEFORE, "lag"), 0.99) == 0


def test_another_name() -> None:
    with pytest.raises(LookupError):
        buckets(BEFORE, "lag_bucket")
