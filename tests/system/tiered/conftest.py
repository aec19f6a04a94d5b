"""Clusters for scenarios, and the summary of what ran.

`VARVE_SCENARIOS_BROKER=kafka` runs the same scenarios against released Kafka with
LocalTieredStorage, as many brokers as a scenario asks for: what fails there is a mistake of the
scenario. On Varve those that need several brokers, marked `cluster`, need an etcd: without one they
are skipped, and the summary counts them.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bench.kafka_release import KafkaRelease, KafkaReleaseError
from bench.s3_server import broker_settings
from tests.fakes.s3.moto_server import moto_server
from tests.system.tiered.cluster import Cluster, KafkaCluster, VarveCluster
from tests.system.tiered.s3 import new_bucket

BROKER = os.environ.get("VARVE_SCENARIOS_BROKER", "varve")

NewCluster = Callable[..., Cluster]


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """Moto's server, for all tests of the session."""
    with moto_server() as url:
        yield url


@pytest.fixture
def new_cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NewCluster]:
    """Make brokers with remote storage, started unless told otherwise; stopped with the test.

    `s3` is the address of a server (or of a proxy in front of the session's one): a fresh bucket
    there instead of a directory.
    """
    made: list[Cluster] = []

    def make(
        properties: Mapping[str, str] | None = None,
        *,
        brokers: int = 1,
        s3: str | None = None,
        start: bool = True,
    ) -> Cluster:
        where = tmp_path / f"cluster{len(made)}"
        cluster: Cluster
        if BROKER == "kafka":
            if s3 is not None:
                pytest.skip("LocalTieredStorage knows directories only")
            try:
                KafkaRelease.resolve(with_test_jars=True)
            except KafkaReleaseError as error:
                pytest.fail(str(error))
            cluster = KafkaCluster(where, properties or {}, brokers=brokers)
        elif s3 is None:
            cluster = VarveCluster(where, properties or {}, brokers=brokers)
        else:
            name = f"bucket-{abs(hash(str(where))):x}"
            bucket = new_bucket(request.getfixturevalue("s3_url"), name)
            settings = broker_settings(s3, name)
            cluster = VarveCluster(where, properties or {}, store=settings, bucket=bucket)
        made.append(cluster)
        if start:
            cluster.start()
        return cluster

    yield make
    for cluster in made:
        cluster.stop_all()


__all__ = ["BROKER", "NewCluster", "new_cluster", "s3_url"]
