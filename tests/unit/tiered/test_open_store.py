"""The object store that the settings name."""

from dataclasses import replace
from pathlib import Path

import pytest

from config.object_store import StoreSettings
from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tiered.errors import RemoteStorageError
from tiered.object_store.base import ObjectStore
from tiered.object_store.filesystem import FilesystemObjectStore
from tiered.object_store.s3.credentials import CredentialsFile, FixedCredentials
from tiered.object_store.s3.store import S3ObjectStore
from tiered.open_store import open_store


def made(settings: StoreSettings) -> ObjectStore:
    return open_store(settings, LocalFilesystem(), SystemClock(), SeededRandomness(1))


async def test_a_directory(tmp_path: Path) -> None:
    store = made(StoreSettings(root=str(tmp_path / "o"), key_prefix="p/"))
    assert isinstance(store, FilesystemObjectStore)
    await store.put("a", b"1")
    assert (tmp_path / "o/p/a").read_bytes() == b"1"
    await store.close()


async def test_s3_by_keys_by_file_and_by_the_machine() -> None:
    kinds = []
    plain = StoreSettings(backend="s3", bucket="b", key_prefix="p/")
    by_keys = replace(plain, access_key_id="k")
    by_file = replace(plain, credentials_file="/none")
    for settings in (by_keys, by_file, plain):
        store = made(settings)
        assert isinstance(store, S3ObjectStore)
        assert store.name == "s3://b/p/"
        kinds.append(type(store._calls._credentials))
        await store.close()
    assert kinds == [FixedCredentials, CredentialsFile, type(None)]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (StoreSettings(), "no root"),
        (StoreSettings(backend="s3"), "no bucket"),
        (StoreSettings(backend="tape"), "'tape'"),
    ],
)
def test_settings_that_name_no_store(settings: StoreSettings, problem: str) -> None:
    with pytest.raises(RemoteStorageError, match=problem):
        made(settings)
