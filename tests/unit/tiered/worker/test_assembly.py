"""What does the tier's work, put together."""

import tempfile
from pathlib import Path

import pytest

from tiered.errors import RemoteStorageError
from tiered.settings import FormatSettings, StoreSettings, TierSettings
from tiered.worker.assembly import build_tier, spool_directory


async def test_a_directory_as_store(tmp_path: Path) -> None:
    tier = build_tier(TierSettings(store=StoreSettings(root=str(tmp_path / "store"))))
    await tier.put_object("k", b"v")
    assert await tier.get_object("k") == b"v"
    await tier.close()


@pytest.mark.parametrize(
    "settings",
    [
        TierSettings(),
        TierSettings(store=StoreSettings(backend="tape")),
        TierSettings(store=StoreSettings(backend="s3")),
    ],
)
def test_settings_that_name_no_store_are_refused(settings: TierSettings) -> None:
    with pytest.raises(RemoteStorageError):
        build_tier(settings)


def test_encryption_without_a_key_is_refused(tmp_path: Path) -> None:
    store = StoreSettings(root=str(tmp_path))
    with pytest.raises(RemoteStorageError):
        build_tier(TierSettings(store=store, format=FormatSettings(encryption=True)))


def test_spool_lies_with_a_cache() -> None:
    both = TierSettings(chunk_cache_directory="/chunks", index_cache_directory="/indexes")
    assert spool_directory(both) == "/chunks/spool"
    assert spool_directory(TierSettings(index_cache_directory="/indexes")) == "/indexes/spool"
    assert spool_directory(TierSettings()) == tempfile.gettempdir() + "/spool"
