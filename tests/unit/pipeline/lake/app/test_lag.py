"""How far a table is behind."""

import pytest

from pipeline.lake.app.lag import Lag, partition_lag
from pipeline.lake.batch.batch_plan import Span
from pipeline.lake.batch.log_view import PartitionView

SPANS = (Span(10, 20, 1000, 5_000), Span(20, 40, 2000, 9_000), Span(40, 50, 600, 12_000))
LOG = PartitionView(10, 50, SPANS, 12_000)


@pytest.mark.parametrize(
    ("reached", "lag"),
    [
        (None, Lag(40, 3600, 7_000)),
        (0, Lag(40, 3600, 7_000)),
        (20, Lag(30, 2600, 7_000)),
        (30, Lag(20, 1600, 7_000)),
        (40, Lag(10, 600, 3_000)),
        (50, Lag(0, 0, 0)),
        (60, Lag(0, 0, 0)),
    ],
)
def test_what_is_missing_is_counted_and_timed(reached: int | None, lag: Lag) -> None:
    assert partition_lag(LOG, reached) == lag


def test_of_what_only_a_broker_has_there_is_no_time() -> None:
    view = PartitionView(0, 10, (Span(0, 10, 1000),))
    assert partition_lag(view, 4) == Lag(6, 600, 0)
