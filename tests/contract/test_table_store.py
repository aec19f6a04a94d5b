"""What every store of a table's files promises."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.settings.config import StoreConfig
from pipeline.lake.stores.s3_store import S3Store
from pipeline.lake.stores.table_store import TableStore
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from tests.fakes.lake.tables import open_directory
from tests.fakes.s3.moto_server import make_bucket, s3_settings


@pytest.fixture(params=["directory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TableStore:
    if request.param == "directory":
        return open_directory(str(tmp_path / "table"))
    url = request.getfixturevalue("moto_url")
    asyncio.run(make_bucket(s3_settings(url, "lake-contract")))
    return open_s3(url, "lake-contract", uuid4().hex)


def open_s3(url: str, bucket: str, prefix: str) -> S3Store:
    options = StoreConfig.model_validate(
        {
            "endpoint": url,
            "region": "us-east-1",
            "path_style": True,
            "access_key_id": "varve-test",
            "secret_access_key": "varve-test-secret",
        }
    )
    return S3Store(bucket, prefix, options, LocalFilesystem(), SystemRandomness())


def write(store: TableStore, key: str, data: bytes) -> int:
    path = store.scratch_path(key)
    Path(path).write_bytes(data)
    return store.publish(path, key)


def keys(found: Iterator[object]) -> list[str]:
    return [getattr(file, "key", "") for file in found]


def test_a_published_file_is_whole_and_replaces(store: TableStore) -> None:
    assert write(store, "day=1/a.parquet", b"first") == 5
    assert write(store, "day=1/a.parquet", b"second") == 6
    assert store.get("day=1/a.parquet") == b"second"
    assert store.size("day=1/a.parquet") == 6


def test_a_part_of_a_file_is_read_by_itself(store: TableStore) -> None:
    write(store, "a.parquet", b"0123456789")
    assert store.read("a.parquet", 3, 4) == b"3456"
    assert store.read("a.parquet", 8, 100) == b"89"
    assert store.read("a.parquet", 10, 5) == b""
    assert store.read("a.parquet", 0, 0) == b""
    assert store.read("b.parquet", 0, 5) is None


def test_a_scratch_file_is_in_no_listing(store: TableStore) -> None:
    """Nobody reads what is half written."""
    path = store.scratch_path("a.parquet")
    Path(path).write_bytes(b"half")
    assert keys(store.list("")) == []
    store.discard(path)
    store.discard(path)
    assert not Path(path).exists()


def test_a_file_of_any_size_is_at_a_local_path_for_a_while(store: TableStore) -> None:
    data = bytes(range(256)) * 20_000
    store.put("day=1/a.parquet", data)
    with store.local("day=1/a.parquet") as path:
        assert path is not None
        assert Path(path).read_bytes() == data
    assert store.get("day=1/a.parquet") == data
    with store.local("nothing") as path:
        assert path is None


def test_scratch_files_of_who_was_killed_can_be_found_and_removed(store: TableStore) -> None:
    """In a bucket there are none: they are on the machine that was writing."""
    path = store.scratch_path("day=1/a.parquet")
    Path(path).write_bytes(b"half")
    store.put("day=1/b.parquet", b"whole")
    found = list(store.scratch_files())
    if isinstance(store, S3Store):
        assert found == []
        return
    assert [file.size for file in found] == [4]
    assert found[0].key.startswith("day=1/.a.parquet.")
    store.delete([file.key for file in found])
    assert not Path(path).exists()
    assert keys(store.list("")) == ["day=1/b.parquet"]


def test_of_two_puts_if_absent_one_is_there(store: TableStore) -> None:
    assert store.put_if_absent("c/1", b"mine")
    assert not store.put_if_absent("c/1", b"yours")
    assert store.get("c/1") == b"mine"


def test_a_put_that_is_there_already_is_done(store: TableStore) -> None:
    """The answer to the first try may have got lost."""
    assert store.put_if_absent("c/1", b"mine")
    assert store.put_if_absent("c/1", b"mine")


def test_of_many_at_once_exactly_one_wins(store: TableStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(lambda n: store.put_if_absent("c/2", f"{n}".encode()), range(8)))
    assert sum(won) == 1
    assert store.get("c/2") == f"{won.index(True)}".encode()


def test_keys_are_listed_in_order_from_where_one_wants(store: TableStore) -> None:
    for key in ("a/1", "a/2", "a/3", "a-b", "b/1"):
        store.put(key, b"x")
    assert keys(store.list("a/")) == ["a/1", "a/2", "a/3"]
    assert keys(store.list("a/", after="a/1")) == ["a/2", "a/3"]
    assert keys(store.list("")) == ["a-b", "a/1", "a/2", "a/3", "b/1"]
    assert keys(store.list("c/")) == []
    assert next(iter(store.list("b/"))).size == 1


def test_what_is_not_there_is_none(store: TableStore) -> None:
    assert store.get("nothing") is None
    assert store.size("nothing") is None
    store.delete(["nothing"])


def test_deleted_files_are_gone(store: TableStore) -> None:
    store.put("a/1", b"x")
    store.put("a/2", b"x")
    store.delete(["a/1"])
    assert keys(store.list("a/")) == ["a/2"]


def test_a_store_that_is_away_is_told(tmp_path: Path) -> None:
    """As one kind of error, whatever the library's is."""
    away = open_s3("http://127.0.0.1:9", "lake-contract", "x")
    with pytest.raises(TableUnavailableError):
        away.get("a")
    (tmp_path / "file").write_bytes(b"")
    blocked = open_directory(str(tmp_path / "file"))
    with pytest.raises(TableUnavailableError):
        blocked.put("a", b"x")
