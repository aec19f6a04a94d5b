"""Clusters for scenarios, and the summary of what ran.

`VARVE_SCENARIOS_BROKER=kafka` runs the same scenarios against released Kafka with
LocalTieredStorage, as many brokers as a scenario asks for: what fails there is a mistake of the
scenario. On Varve those that need several brokers are skipped, marked `cluster`.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bench.kafka_release import KafkaRelease, KafkaReleaseError
from tests.scenarios.tiered.cluster import Cluster, KafkaCluster, VarveCluster

BROKER = os.environ.get("VARVE_SCENARIOS_BROKER", "varve")
CLUSTER_REASON = "cluster: needs several brokers"

NewCluster = Callable[..., Cluster]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROKER == "varve" and item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.skip(reason=CLUSTER_REASON))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    waiting = sum(
        isinstance(report.longrepr, tuple) and CLUSTER_REASON in report.longrepr[2]
        for report in terminalreporter.stats.get("skipped", ())
    )
    if waiting:
        terminalreporter.write_line(f"tiered scenarios that wait for the cluster: {waiting}")


@pytest.fixture
def new_cluster(tmp_path: Path) -> Iterator[NewCluster]:
    """Brokers with remote storage, started; stopped with the test."""
    made: list[Cluster] = []

    def start(properties: Mapping[str, str] | None = None, *, brokers: int = 1) -> Cluster:
        where = tmp_path / f"cluster{len(made)}"
        cluster: Cluster
        if BROKER == "kafka":
            try:
                KafkaRelease.resolve(with_test_jars=True)
            except KafkaReleaseError as error:
                pytest.fail(str(error))
            cluster = KafkaCluster(where, properties or {}, brokers=brokers)
        else:
            cluster = VarveCluster(where, properties or {})
        made.append(cluster)
        cluster.start()
        return cluster

    yield start
    for cluster in made:
        cluster.stop_all()


__all__ = ["BROKER", "NewCluster", "new_cluster"]
