"""From settings to stores and sinks."""

import pickle
from typing import Any

import pytest

from pipeline.lake.app.locations import (
    OpenTableStore,
    iceberg_properties,
    needed,
    open_sinks,
    open_table_store,
)
from pipeline.lake.errors import JobConfigError, MissingExtraError
from pipeline.lake.settings.config import JobConfig, StoreConfig, parse_job
from pipeline.lake.stores.directory_store import DirectoryStore
from pipeline.lake.stores.s3_store import S3Store

STORE = StoreConfig.model_validate(
    {
        "endpoint": "http://localhost:9000",
        "path_style": True,
        "access_key_id": "someone",
        "secret_access_key": "hush-hush",
    }
)


def job(sink: str, more: str = "") -> JobConfig:
    return parse_job(f"source: {{topic: t, location: /b}}\nsink: {sink}\n{more}")


@pytest.mark.parametrize(
    ("location", "uri", "kind"),
    [
        ("/a/b/", "file:///a/b", DirectoryStore),
        ("file:///a/b", "file:///a/b", DirectoryStore),
        ("file:/a/b", "file:///a/b", DirectoryStore),
        ("s3://bucket/a/b/", "s3://bucket/a/b", S3Store),
        ("s3a://bucket", "s3://bucket", S3Store),
    ],
)
def test_a_location_is_a_store(location: str, uri: str, kind: type) -> None:
    store = open_table_store(location, STORE)
    assert isinstance(store, kind)
    assert store.uri == uri


@pytest.mark.parametrize("location", ["gs://bucket/x", "a/b", "file://host/x", ""])
def test_other_locations_are_refused(location: str) -> None:
    with pytest.raises(JobConfigError):
        open_table_store(location, STORE)


def test_an_opener_travels_and_hides_its_secret() -> None:
    opener = OpenTableStore("s3://bucket/t", STORE)
    assert pickle.loads(pickle.dumps(opener)) == opener
    assert opener().uri == "s3://bucket/t"
    assert "hush" not in repr(opener)
    assert "hush" not in repr((opener, STORE))


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_quarantine_lies_beside_its_table(kind: str, tmp_path: Any) -> None:
    rows, quarantine = open_sinks(job(f"{{type: {kind}, table: {tmp_path}/t/}}"))
    assert rows.name == f"file://{tmp_path}/t"
    assert quarantine is not None
    assert quarantine.name == f"file://{tmp_path}/t_quarantine"
    failing = job(f"{{type: {kind}, table: {tmp_path}/t}}", "errors: {quarantine: fail}")
    assert open_sinks(failing)[1] is None


def test_an_iceberg_table_is_its_catalogs(tmp_path: Any) -> None:
    catalog = f"{{type: sql, uri: 'sqlite:///{tmp_path}/c.db', warehouse: 'file://{tmp_path}/w'}}"
    sinks = open_sinks(job(f"{{type: iceberg, table: lake.t, catalog: {catalog}}}"))
    assert [sink.name for sink in sinks if sink] == ["iceberg:lake.t", "iceberg:lake.t_quarantine"]
    assert sinks[0].view().schema is None


def test_a_catalog_reaches_files_as_the_settings_say() -> None:
    assert iceberg_properties(STORE) == {
        "s3.endpoint": "http://localhost:9000",
        "s3.access-key-id": "someone",
        "s3.secret-access-key": "hush-hush",
    }


def test_a_missing_library_names_its_extra() -> None:
    needed("json", "lake")
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[lake\]'"):
        needed("no_such_library", "lake")
