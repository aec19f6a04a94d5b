"""A lake job against Iceberg's own REST catalog: files in S3, conflicts, answers that get lost.

The catalog is the reference implementation's (`java_catalog/RestCatalog.java`): released classes in
a process of their own. Between it and the job is a proxy that does what gateways do.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pipeline.lake.app.assembly import run_job
from pipeline.lake.app.locations import open_catalog
from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.settings.config import JobConfig, parse_job
from tests.fakes.lake.tables import coordinates
from tests.fakes.lake.topic_bucket import LakeBucket, orders_bucket, record
from tests.fakes.network.http_faults import DROPPED, Fault, FaultyHttp, faulty_http
from tests.fakes.s3.moto_server import make_bucket, s3_settings
from tests.interop.s3.rest_catalog import rest_catalog

BUCKET = "rest-catalog"
KEYS = ("varve-test", "varve-test-secret")
COMMIT = "/tables/orders"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory, moto_url: str) -> Iterator[str]:
    """Its address."""
    asyncio.run(make_bucket(s3_settings(moto_url, BUCKET)))
    directory = tmp_path_factory.mktemp("catalog")
    with rest_catalog(directory, _properties(moto_url, "plain")) as url:
        yield url


def _properties(moto_url: str, folder: str) -> dict[str, str]:
    return {
        "warehouse": f"s3://{BUCKET}/{folder}",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": moto_url,
        "s3.path-style-access": "true",
        "s3.access-key-id": KEYS[0],
        "s3.secret-access-key": KEYS[1],
        "client.region": "us-east-1",
    }


@pytest.fixture
def proxy(catalog: str) -> Iterator[FaultyHttp]:
    with faulty_http(catalog) as found:
        yield found


@pytest.fixture
def bucket(tmp_path: Path) -> LakeBucket:
    return asyncio.run(orders_bucket(tmp_path / "bucket"))


def job(root: Path, url: str, moto_url: str, namespace: str, retries: int = 2) -> JobConfig:
    """Two batches."""
    store = (
        f"{{endpoint: '{moto_url}', region: us-east-1, path_style: true, "
        f"access_key_id: {KEYS[0]}, secret_access_key: {KEYS[1]}}}"
    )
    return parse_job(
        f"source: {{location: '{root}/bucket', topic: t}}\n"
        "value: {format: json}\n"
        f"sink: {{type: iceberg, table: {namespace}.orders, store: {store}, "
        f"catalog: {{type: rest, uri: '{url}'}}}}\n"
        f"batch: {{max_bytes: 4 KiB, retries: {retries}}}\n"
        "runner: {type: local}\n"
    )


def table_of(config: JobConfig) -> Any:
    return open_catalog(config).load_table(config.sink.table)


def check(config: JobConfig, bucket: LakeBucket) -> None:
    """Every row once, in every snapshot there ever was at most once, all files there."""
    expected = [(0, offset) for offset, value in bucket.values.items() if value[:2] == b'{"']
    table = table_of(config)
    assert coordinates(table.scan().to_arrow()) == expected
    seen = 0
    for snapshot in table.snapshots():
        rows = coordinates(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow())
        assert len(set(rows)) == len(rows) >= seen
        seen = len(rows)


def namespace() -> str:
    return f"n{uuid4().hex}"


def test_a_table_is_made_and_kept(
    proxy: FaultyHttp, moto_url: str, bucket: LakeBucket, tmp_path: Path
) -> None:
    config = job(tmp_path, proxy.url, moto_url, namespace())
    assert run_job(config) > 1
    check(config, bucket)
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    assert run_job(config) == 1
    check(config, bucket)


@pytest.mark.parametrize("status", [500, 502, 504, DROPPED])
def test_a_commit_whose_answer_is_lost_is_looked_for(
    proxy: FaultyHttp, moto_url: str, bucket: LakeBucket, tmp_path: Path, status: int
) -> None:
    """It took place: the next try finds it, and nothing of it is deleted or made twice."""
    config = job(tmp_path, proxy.url, moto_url, namespace())
    # The first commits begin the table and its quarantine; all of them take place.
    proxy.faults = [Fault("POST", COMMIT, 1, status, times=2)]
    run_job(config)
    assert proxy.faults == []
    check(config, bucket)
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    proxy.faults = [Fault("POST", COMMIT, 1, status)]
    run_job(config)
    assert proxy.faults == []
    check(config, bucket)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429, DROPPED])
def test_a_commit_that_never_arrived_is_tried_again(
    proxy: FaultyHttp, moto_url: str, bucket: LakeBucket, tmp_path: Path, status: int
) -> None:
    config = job(tmp_path, proxy.url, moto_url, namespace())
    run_job(config)
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    proxy.faults = [Fault("POST", COMMIT, 0, status)]
    run_job(config)
    assert proxy.faults == []
    check(config, bucket)


def test_a_request_that_a_gateway_repeats_is_one_commit(
    proxy: FaultyHttp, moto_url: str, bucket: LakeBucket, tmp_path: Path
) -> None:
    """The second one is a conflict with the first; its files must stay."""
    config = job(tmp_path, proxy.url, moto_url, namespace())
    run_job(config)
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    proxy.faults = [Fault("POST", COMMIT, 2, None)]
    assert run_job(config) == 1
    assert [status for method, path, status in proxy.seen if status == 409]
    check(config, bucket)


def test_somebody_else_may_commit_in_between(
    proxy: FaultyHttp, moto_url: str, bucket: LakeBucket, tmp_path: Path
) -> None:
    """A conflict: looked at again, and committed behind it."""
    config = job(tmp_path, proxy.url, moto_url, namespace())
    run_job(config)
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    other = table_of(config)
    empty = other.scan().to_arrow().slice(0, 0)
    proxy.before(Fault("POST", COMMIT, 1, None), lambda: other.append(empty))
    assert run_job(config) == 1
    assert 409 in [status for _, _, status in proxy.seen]
    check(config, bucket)


def test_two_jobs_at_once_make_one_table(
    proxy: FaultyHttp, moto_url: str, bucket: LakeBucket, tmp_path: Path
) -> None:
    """The other one begins and ends between this one's look and its commit."""
    config = job(tmp_path, proxy.url, moto_url, namespace())
    run_job(config)
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    proxy.before(Fault("POST", COMMIT, 1, None), lambda: run_job(config))
    run_job(config)
    check(config, bucket)


def test_a_catalog_that_stays_away_is_told(
    proxy: FaultyHttp, moto_url: str, bucket: LakeBucket, tmp_path: Path
) -> None:
    config = job(tmp_path, proxy.url, moto_url, namespace(), retries=0)
    proxy.faults = [Fault("POST", COMMIT, 0, 503, times=9)]
    with pytest.raises(TableUnavailableError) as told:
        run_job(config)
    assert KEYS[1] not in str(told.value)
    proxy.faults = []
    run_job(config)
    check(config, bucket)
