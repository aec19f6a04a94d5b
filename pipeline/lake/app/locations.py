"""Stores and sinks of a job, opened by its settings: the edge to disks, networks and catalogs."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from typing_extensions import override

from pipeline.lake.errors import JobConfigError, MissingExtraError
from pipeline.lake.settings.config import JobConfig, StoreConfig
from pipeline.lake.sinks.base import Sink
from pipeline.lake.sinks.delta import DeltaSink
from pipeline.lake.sinks.delta_store import access_keys, storage_options
from pipeline.lake.sinks.iceberg import IcebergSink
from pipeline.lake.sinks.library_errors import iceberg_refusals
from pipeline.lake.sinks.parquet import ParquetSink
from pipeline.lake.stores.directory_store import DirectoryStore
from pipeline.lake.stores.s3_store import S3Store
from pipeline.lake.stores.table_store import TableStore
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness

QUARANTINE_SUFFIX = "_quarantine"


class OpenTableStore(NamedTuple):
    """Opens a table's store where it is called; pickled to executors, its text has no secret."""

    location: str
    options: StoreConfig

    def __call__(self) -> TableStore:
        """A store of its own."""
        return open_table_store(self.location, self.options)

    @override
    def __repr__(self) -> str:
        """The location alone."""
        return f"OpenTableStore({self.location!r})"


def open_table_store(location: str, options: StoreConfig) -> TableStore:
    """The store at `s3://bucket/prefix`, `file:///dir` or `/dir`.

    Raises:
        JobConfigError: Some other kind of location.
    """
    filesystem, randomness = LocalFilesystem(), SystemRandomness()
    scheme, separator, rest = location.partition("://")
    if separator and scheme in ("s3", "s3a"):
        bucket, _, prefix = rest.partition("/")
        return S3Store(bucket, prefix.strip("/"), options, filesystem, randomness)
    path = rest if separator and scheme == "file" else location.removeprefix("file:")
    if not path.startswith("/"):
        raise JobConfigError([f"the table's location {location!r} is neither s3:// nor file:///"])
    return DirectoryStore(path, filesystem, randomness)


@contextmanager
def scratch_store() -> Iterator[TableStore]:
    """A store in a folder for temporary files, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="varve-") as folder:
        yield DirectoryStore(folder, LocalFilesystem(), SystemRandomness())


def open_sinks(config: JobConfig) -> tuple[Sink, Sink | None]:
    """The table's sink, and that of its quarantine if there is one.

    Raises:
        MissingExtraError: The sink's library is not installed.
    """
    sink = config.sink
    options = config.sink_store
    if sink.type == "iceberg":
        needed("pyiceberg", "lake")

        def open_store(location: str) -> TableStore:
            return open_table_store(location, options)

        def iceberg(name: str, *, quarantine: bool) -> Sink:
            fields = () if quarantine else sink.partition_by
            return IcebergSink(
                lambda: open_catalog(config), name, config.job_name, open_store, fields
            )

        return _both(config, sink.table, iceberg)
    location = sink.table.rstrip("/")

    def plain(name: str, *, quarantine: bool) -> Sink:
        store = open_table_store(name, options)
        fields = () if quarantine else sink.partition_by
        if sink.type == "parquet":
            return ParquetSink(store, config.job_name, SystemRandomness(), fields)
        needed("deltalake", "lake")
        return DeltaSink(store, config.job_name, fields, partial(storage_options, name, options))

    return _both(config, location, plain)


def _both(config: JobConfig, name: str, make: Callable[..., Sink]) -> tuple[Sink, Sink | None]:
    rows = make(name, quarantine=False)
    if config.errors.quarantine == "fail":
        return rows, None
    return rows, make(name + QUARANTINE_SUFFIX, quarantine=True)


def open_catalog(config: JobConfig) -> Any:
    """The catalog of an Iceberg job, which reaches files as the job's store settings say."""
    from pyiceberg.catalog import load_catalog

    found = config.sink.catalog
    assert found is not None
    properties = {**iceberg_properties(config.sink_store), **found.properties()}
    if config.sink_store.endpoint:
        # With sums of its own Arrow's client sends uploads without a length, which servers but
        # Amazon's may refuse; there is no setting for it. The tier's and the tables' clients send
        # none either.
        os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_REQUIRED")
    with iceberg_refusals(f"the catalog {found.name}"):
        if found.type == "rest":
            from pipeline.lake.sinks.rest_catalog import JobRestCatalog

            return JobRestCatalog(found.name, **properties)
        return load_catalog(found.name, **properties)


def iceberg_properties(store: StoreConfig) -> dict[str, str]:
    """Properties by which pyiceberg reaches the table's store; secrets included."""
    properties = {}
    if store.endpoint:
        properties["s3.endpoint"] = store.endpoint
    if store.region:
        properties["s3.region"] = store.region
    if store.endpoint and not store.path_style:
        properties["s3.force-virtual-addressing"] = "true"
    access = access_keys(store)
    if access is not None:
        properties["s3.access-key-id"], properties["s3.secret-access-key"], token = access
        if token:
            properties["s3.session-token"] = token
    return properties


def needed(module: str, extra: str) -> None:
    """Import a library; MissingExtraError says what to install if it is not there."""
    try:
        import_module(module)
    except ImportError as error:
        raise MissingExtraError(module, extra) from error
