"""Tables in S3: bucket, plans, files, commits and catalogs' files, all by a server's protocol."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from pipeline.lake.app.assembly import run_job
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.sinks.fence import PROBE
from tests.fakes.lake.s3_jobs import BUCKET, job, read, rows_of
from tests.fakes.lake.tables import KINDS, coordinates
from tests.fakes.lake.topic_bucket import orders_bucket, record
from tests.fakes.network.http_faults import Fault, faulty_http
from tests.fakes.s3.moto_server import make_bucket, s3_settings


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_in_s3_has_every_row_once(kind: str, moto_url: str, tmp_path: Path) -> None:
    asyncio.run(make_bucket(s3_settings(moto_url, BUCKET)))
    bucket = asyncio.run(orders_bucket(tmp_path / "bucket"))
    config = job(kind, moto_url, uuid4().hex, tmp_path)
    assert run_job(config) == 1
    assert coordinates(read(config)) == rows_of(bucket)
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    assert run_job(config) == 1
    assert coordinates(read(config)) == rows_of(bucket)


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_store_that_ignores_if_none_match_is_refused(
    kind: str, moto_url: str, tmp_path: Path
) -> None:
    """Two jobs could both commit there, and one's rows would be gone."""
    asyncio.run(make_bucket(s3_settings(moto_url, BUCKET)))
    asyncio.run(orders_bucket(tmp_path / "bucket"))
    with faulty_http(moto_url) as proxy:
        proxy.dropped_headers = frozenset({"if-none-match"})
        config = job(kind, proxy.url, uuid4().hex, tmp_path)
        with pytest.raises(ForeignTableError, match="ignores If-None-Match"):
            run_job(config)


@pytest.mark.merge
def test_a_table_that_was_moved_to_such_a_store_is_not_committed_to(
    moto_url: str, tmp_path: Path
) -> None:
    asyncio.run(make_bucket(s3_settings(moto_url, BUCKET)))
    bucket = asyncio.run(orders_bucket(tmp_path / "bucket"))
    prefix = uuid4().hex
    run_job(job("delta", moto_url, prefix, tmp_path))
    bucket.write([record(n) for n in range(400, 420)])
    asyncio.run(bucket.copy())
    with faulty_http(moto_url) as proxy:
        proxy.dropped_headers = frozenset({"if-none-match"})
        with pytest.raises(ForeignTableError, match="ignores If-None-Match"):
            run_job(job("delta", proxy.url, prefix, tmp_path))


@pytest.mark.merge
def test_a_catalog_decides_where_a_store_cannot(moto_url: str, tmp_path: Path) -> None:
    asyncio.run(make_bucket(s3_settings(moto_url, BUCKET)))
    bucket = asyncio.run(orders_bucket(tmp_path / "bucket"))
    with faulty_http(moto_url) as proxy:
        proxy.dropped_headers = frozenset({"if-none-match"})
        config = job("iceberg", proxy.url, uuid4().hex, tmp_path)
        assert run_job(config) == 1
        assert coordinates(read(config)) == rows_of(bucket)


def test_a_store_that_does_not_know_conditional_puts_is_refused(
    moto_url: str, tmp_path: Path
) -> None:
    asyncio.run(make_bucket(s3_settings(moto_url, BUCKET)))
    asyncio.run(orders_bucket(tmp_path / "bucket"))
    with faulty_http(moto_url) as proxy:
        proxy.faults = [Fault("PUT", PROBE, 0, 501, times=9)]
        with pytest.raises(ForeignTableError, match="does not know If-None-Match"):
            run_job(job("parquet", proxy.url, uuid4().hex, tmp_path))
