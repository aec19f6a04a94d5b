"""Every setting of remote storage reaches the remote log under its own name, paths absolute."""

import os

from broker.remote.tier_settings import tier_home, tier_settings
from config.broker import BrokerConfig
from config.remote_kinds import KeyFiles
from config.tier import TierConfig
from tests.fakes.filesystem import FakeFilesystem


def test_a_setting_keeps_its_name_and_value() -> None:
    given = BrokerConfig().replace(
        log_dirs=("/data",),
        remote_log_manager_copier_thread_pool_size=3,
        tier_verify_bytes_per_second=5,
        rsm_config_storage_aws_secret_access_key="secret",
    )
    found = tier_settings(given)
    paths = {
        "rsm_config_storage_root": "/data/varve-objects",
        "tier_index_cache_path": "/data/remote-log-index-cache",
        "rsm_config_fetch_chunk_cache_path": "/data/varve-chunk-cache",
    }
    for name in TierConfig.model_fields:
        assert getattr(found, name) == paths.get(name, getattr(given, name)), name


def test_objects_are_found_in_whatever_order_the_directories_are() -> None:
    """Another order is no empty object store."""
    filesystem = FakeFilesystem()
    one, other = (BrokerConfig().replace(log_dirs=d) for d in (("/a", "/b"), ("/b", "/a")))
    assert (tier_home(one, filesystem), tier_home(other, filesystem)) == ("/a", "/b")
    filesystem.mkdir("/a/varve-objects")
    assert (tier_home(one, filesystem), tier_home(other, filesystem)) == ("/a", "/a")
    assert tier_settings(other, "/a").store.root == "/a/varve-objects"


def test_paths_are_absolute() -> None:
    """The tier process may have another working directory."""
    found = tier_settings(
        BrokerConfig().replace(
            rsm_config_storage_root="objects",
            tier_index_cache_path="indexes",
            rsm_config_fetch_chunk_cache_path="chunks",
            tier_s3_credentials_file="credentials",
            rsm_config_encryption_key_pairs=("k", "missing"),
            rsm_config_encryption_key_pairs_files={
                "k": KeyFiles("p.pem", "q.pem"),
                "half": KeyFiles("p.pem", ""),
                "unused": KeyFiles("p.pem", "q.pem"),
            },
        )
    )
    assert found.rsm_config_storage_root == os.path.abspath("objects")
    assert found.tier_index_cache_path == os.path.abspath("indexes")
    assert found.rsm_config_fetch_chunk_cache_path == os.path.abspath("chunks")
    assert found.tier_s3_credentials_file == os.path.abspath("credentials")
    ring = {"k": KeyFiles(os.path.abspath("p.pem"), os.path.abspath("q.pem"))}
    assert found.rsm_config_encryption_key_pairs_files == ring


def test_a_key_pair_without_its_private_half_stays_so() -> None:
    """An empty path must not become the working directory."""
    found = tier_settings(
        BrokerConfig().replace(
            rsm_config_encryption_key_pairs=("half",),
            rsm_config_encryption_key_pairs_files={"half": KeyFiles("/p.pem", "")},
        )
    )
    assert found.rsm_config_encryption_key_pairs_files == {"half": KeyFiles("/p.pem", "")}
