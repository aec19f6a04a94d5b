"""In which bucket of the request time histogram a request is counted."""

import pytest

from broker.requests.api_stats import BUCKETS_MS, SHORTEST_MS, ApiStats


@pytest.mark.parametrize(
    ("elapsed_ms", "bucket"),
    [
        (-1.0, 0),
        (0.0, 0),
        (SHORTEST_MS, 0),
        (0.100001, 1),
        (0.25, 1),
        (0.3, 2),
        (10_000.0, len(BUCKETS_MS) - 1),
        (10_000.1, len(BUCKETS_MS)),
        (float("inf"), len(BUCKETS_MS)),
    ],
)
def test_a_request_is_counted_below_the_first_bound_that_is_not_less(
    elapsed_ms: float, bucket: int
) -> None:
    """Also where the bucket is known without a search."""
    stats = ApiStats()
    stats.observe(elapsed_ms)
    assert [index for index, count in enumerate(stats.buckets) if count] == [bucket]
    assert stats.total_ms == elapsed_ms


def test_the_shortest_bound_is_the_first() -> None:
    assert BUCKETS_MS[0] == SHORTEST_MS
