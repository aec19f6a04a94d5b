"""Tables in S3: bucket, plans, files, commits and catalogs' files, all by a server's protocol."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from pipeline.lake.assembly import run_job
from pipeline.lake.config import JobConfig, parse_job
from pipeline.lake.locations import open_catalog, open_table_store
from pipeline.lake.sinks.delta import storage_options
from pipeline.lake.sinks.parquet import committed_files
from tests.fakes.lake_bucket import LakeBucket, orders_bucket, record
from tests.fakes.lake_tables import KINDS, coordinates
from tests.fakes.moto_server import make_bucket, s3_settings

BUCKET = "lake-tables"


def job(kind: str, url: str, prefix: str, root: Path) -> JobConfig:
    sink = f"type: {kind}, table: s3://{BUCKET}/{prefix}/orders"
    if kind == "iceberg":
        catalog = f"uri: 'sqlite:///{root}/c.db', warehouse: 's3://{BUCKET}/{prefix}'"
        sink = f"type: iceberg, table: lake.orders, catalog: {{type: sql, {catalog}}}"
    return parse_job(
        f"source: {{location: '{root}/bucket', topic: t}}\n"
        f"value: {{format: json}}\n"
        f"sink: {{{sink}, store: {{endpoint: '{url}', region: us-east-1, path_style: true, "
        "access_key_id: varve-test, secret_access_key: varve-test-secret}}\n"
        "runner: {type: local}\n"
    )


def read(config: JobConfig) -> pa.Table:
    sink = config.sink
    if sink.type == "delta":
        from deltalake import DeltaTable

        options = storage_options(sink.table, config.sink_store)
        return DeltaTable(sink.table, storage_options=options).to_pyarrow_table()
    if sink.type == "iceberg":
        return open_catalog(config).load_table(sink.table).scan().to_arrow()
    import pyarrow.parquet as pq

    store = open_table_store(sink.table, config.sink_store)
    data = [store.get(file.key) for file in committed_files(store)]
    return pa.concat_tables([pq.read_table(pa.BufferReader(one)) for one in data])


def rows_of(bucket: LakeBucket) -> list[tuple[int, int]]:
    return [(0, offset) for offset, value in bucket.values.items() if value.startswith(b'{"')]


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
