"""Tables for tests of lake jobs: each kind in a directory, without any server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from pipeline.lake.settings.config import PartitionField, parse_partition_field
from pipeline.lake.sinks.base import Sink
from pipeline.lake.sinks.delta import DeltaSink
from pipeline.lake.sinks.iceberg import IcebergSink
from pipeline.lake.sinks.parquet import ParquetSink, committed_files
from pipeline.lake.stores.directory_store import DirectoryStore
from pipeline.lake.stores.table_store import TableStore
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness

KINDS = ("delta", "iceberg", "parquet")


class OpenDirectory(NamedTuple):
    """Opens a table's store where a task runs; a directory's need no secrets."""

    path: str

    def __call__(self) -> TableStore:
        return open_directory(self.path)


class ForgetfulStore(DirectoryStore):
    """Takes every put, as S3-like servers do that know nothing of If-None-Match."""

    @override
    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.put(key, data)
        return True


def open_directory(uri: str) -> DirectoryStore:
    return DirectoryStore(uri.removeprefix("file://"), LocalFilesystem(), SystemRandomness())


def open_catalog(root: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    root.mkdir(parents=True, exist_ok=True)
    return load_catalog(
        "tests", type="sql", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/tables"
    )


def open_sink(
    kind: str,
    root: Path,
    *,
    name: str = "orders",
    job: str = "orders-lake",
    partition_by: Sequence[str] = (),
) -> Sink:
    fields: list[PartitionField] = [parse_partition_field(one) for one in partition_by]
    if kind == "delta":
        return DeltaSink(open_directory(f"{root}/{name}"), job, fields)
    if kind == "parquet":
        return ParquetSink(open_directory(f"{root}/{name}"), job, SystemRandomness(), fields)
    return IcebergSink(lambda: open_catalog(root), f"lake.{name}", job, open_directory, fields)


def read_table(kind: str, root: Path, name: str = "orders") -> pa.Table:
    """The table as a released reader gives it; a Parquet one by the files it says it has."""
    if kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(f"{root}/{name}").to_pyarrow_table()
    if kind == "iceberg":
        return open_catalog(root).load_table(f"lake.{name}").scan().to_arrow()
    store = open_directory(f"{root}/{name}")
    tables = [pq.ParquetFile(f"{root}/{name}/{f.key}").read() for f in committed_files(store)]
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def coordinates(table: pa.Table) -> list[tuple[int, int]]:
    """(partition, offset) of all rows, ascending; a row that is there twice is twice in it."""
    if not table.num_rows:
        return []
    columns = table.select(["partition", "offset"]).to_pydict()
    return sorted(zip(columns["partition"], columns["offset"], strict=True))
