"""Lake jobs whose tables, and if wanted whose log, lie in an S3 server's buckets."""

from pathlib import Path

import pyarrow as pa
from botocore.session import Session

from pipeline.lake.app.locations import open_catalog, open_table_store
from pipeline.lake.settings.config import JobConfig, parse_job
from pipeline.lake.sinks.delta_store import storage_options
from pipeline.lake.sinks.parquet import committed_files
from tests.fakes.lake.topic_bucket import LakeBucket

BUCKET = "lake-tables"


def job(
    kind: str, url: str, prefix: str, root: Path, *, source: str = "", more: str = ""
) -> JobConfig:
    """`source`: of the log, below the same bucket; a directory's if none is given."""
    store = (
        f"{{endpoint: '{url}', region: us-east-1, path_style: true, "
        "access_key_id: varve-test, secret_access_key: varve-test-secret}"
    )
    location = f"'{root}/bucket'"
    if source:
        location = f"'s3://{BUCKET}/{source}', store: {store}"
    sink = f"type: {kind}, table: s3://{BUCKET}/{prefix}/orders"
    if kind == "iceberg":
        catalog = f"uri: 'sqlite:///{root}/c.db', warehouse: 's3://{BUCKET}/{prefix}'"
        sink = f"type: iceberg, table: lake.orders, catalog: {{type: sql, {catalog}}}"
    return parse_job(
        f"source: {{location: {location}, topic: t}}\n"
        f"value: {{format: json}}\n"
        f"sink: {{{sink}, store: {store}}}\n"
        f"runner: {{type: local}}\n{more}"
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


def upload(directory: Path, url: str, prefix: str) -> None:
    """Copy a bucket that is a directory below a prefix of `BUCKET`, as it is now."""
    client = Session().create_client(
        "s3",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="varve-test",
        aws_secret_access_key="varve-test-secret",
    )
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(directory)}"
            client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
