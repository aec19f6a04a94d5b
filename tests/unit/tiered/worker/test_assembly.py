"""What does the tier's work, put together."""

import tempfile
from pathlib import Path

import pytest

from config.tier import TierConfig
from tiered.errors import RemoteStorageError
from tiered.worker.assembly import build_tier, spool_directory


async def test_a_directory_as_store(tmp_path: Path) -> None:
    tier = build_tier(TierConfig(rsm_config_storage_root=str(tmp_path / "store")))
    await tier.put_object("k", b"v")
    assert await tier.get_object("k") == b"v"
    await tier.close()


@pytest.mark.parametrize(
    "settings",
    [
        TierConfig(),
        TierConfig(rsm_config_storage_backend_class="tape"),
        TierConfig(rsm_config_storage_backend_class="s3"),
    ],
)
async def test_settings_that_name_no_store_are_refused(settings: TierConfig) -> None:
    with pytest.raises(RemoteStorageError):
        build_tier(settings)


async def test_encryption_without_a_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RemoteStorageError):
        build_tier(
            TierConfig(rsm_config_storage_root=str(tmp_path), rsm_config_encryption_enabled=True)
        )


def test_spool_lies_with_a_cache() -> None:
    both = TierConfig(rsm_config_fetch_chunk_cache_path="/chunks", tier_index_cache_path="/indexes")
    assert spool_directory(both) == "/chunks/spool"
    assert spool_directory(TierConfig(tier_index_cache_path="/indexes")) == "/indexes/spool"
    assert spool_directory(TierConfig()) == tempfile.gettempdir() + "/spool"
