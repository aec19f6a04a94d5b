"""Loads of a coordinator, as metrics."""

from broker.coordinator.stats import LoadStats
from broker.metrics.coordinator_loads import load_metrics


def test_every_outcome_of_a_load_has_a_metric() -> None:
    stats = LoadStats(loaded_partitions=4, load_failures=3, reloads=2, skipped_records=1)
    families = list(load_metrics("varve_x", "__x", stats))
    values = {sample.name: sample.value for family in families for sample in family.samples}
    assert values == {
        "varve_x_loads_total": 4,
        "varve_x_load_failures_total": 3,
        "varve_x_reloads_total": 2,
        "varve_x_skipped_records_total": 1,
    }
