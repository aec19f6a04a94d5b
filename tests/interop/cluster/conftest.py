"""Three brokers for the whole folder, whole again before each test.

`VARVE_INTEROP_BROKER=kafka` runs the same tests against released Kafka: what fails there is a
mistake of the test.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cluster.cluster import Cluster
from bench.cluster.kinds import KafkaCluster, VarveCluster
from config.sections.replication import RACK_AWARE_SELECTOR
from tests.harness.etcd import etcd_or_skip
from tests.interop.conftest import BROKER, COORDINATOR_PROPERTIES, PROPERTIES

RACKS = ("rack-1", "rack-2", "rack-3")
"""Of brokers 1, 2, 3: a consumer with `client.rack` reads from the broker in its rack."""

KEPT_LOGS = Path(__file__).resolve().parents[3] / ".build" / "cluster-logs"


@pytest.fixture(scope="module")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers, started."""
    directory = tmp_path_factory.mktemp("cluster")
    properties = {
        **PROPERTIES,
        **COORDINATOR_PROPERTIES,
        "replica.selector.class": RACK_AWARE_SELECTOR,
    }
    cluster: Cluster
    if BROKER == "kafka":
        cluster = KafkaCluster(directory, properties, racks=RACKS)
    else:
        etcd_or_skip()
        cluster = VarveCluster(directory, properties, racks=RACKS)
    try:
        cluster.start()
        yield cluster
        cluster.stop()
    finally:
        cluster.close()


@pytest.fixture
def cluster(running_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers, all there; the logs of a test that failed are kept."""
    running_cluster.heal()
    running_cluster.wait_for_all()
    failed_before = request.session.testsfailed
    yield running_cluster
    if request.session.testsfailed > failed_before:
        running_cluster.keep_logs(KEPT_LOGS / request.node.name)
