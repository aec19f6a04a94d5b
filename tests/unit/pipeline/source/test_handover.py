"""Where the bucket ends, for a query of Spark's Kafka source."""

from pathlib import Path

import pytest

from pipeline import handover as of_the_package
from pipeline.plan.errors import OptionsError, PlanError
from pipeline.source.handover import ends_of, handover
from tests.unit.pipeline.source.views import ONE, TWO, ZERO, broker_view, bucket_view


def test_it_is_json_of_the_kafka_source() -> None:
    """A partition of which nothing was copied begins at its earliest offset."""
    views = {
        ZERO: bucket_view(ZERO, (0, 40, 400), (40, 60, 200), stable=50),
        ONE: broker_view(ONE, 3, 90, (0, 40, 400)),
        TWO: broker_view(TWO, 3, 90),
    }
    assert ends_of(views) == '{"t":{"0":50,"1":40,"2":-2}}'


def test_another_history_is_not_handed_over() -> None:
    view = broker_view(ZERO, 3, 90)._replace(problem="t-0: it is another history")
    with pytest.raises(PlanError, match="another history"):
        ends_of({ZERO: view})


def test_mistakes_in_the_options_are_told() -> None:
    with pytest.raises(OptionsError, match="needs a path"):
        handover({"subscribe": "t"})
    with pytest.raises(OptionsError, match="no bucket to hand over from"):
        handover({"subscribe": "t", "tier": "broker", "kafka.bootstrap.servers": "h:1"})


def test_it_is_found_in_the_package(tmp_path: Path) -> None:
    """By whoever writes a query, without a session."""
    with pytest.raises(PlanError, match="there is no topic t in"):
        of_the_package({"path": str(tmp_path), "subscribe": "t"})
