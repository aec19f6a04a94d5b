"""Every setting of the remote log comes from a setting of the broker."""

import os
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from broker.remote.tier_settings import FIXED, changed_fields, tier_home, tier_settings
from config.broker import BROKER_KEYS, BrokerConfig
from config.remote_kinds import KeyFiles
from config.sections.remote import RemoteLogSettings
from config.sections.remote_storage import RemoteStorageSettings
from config.sections.tier import TierOwnSettings
from tests.fakes.filesystem import FakeFilesystem
from tiered.settings import UNLIMITED, FormatSettings, KeyPairFiles, StoreSettings, TierSettings

OTHER: dict[str, Any] = {
    "remote_log_manager_copier_thread_pool_size": 3,
    "remote_log_manager_expiration_thread_pool_size": 4,
    "remote_log_manager_follower_thread_pool_size": 5,
    "remote_log_manager_task_interval_ms": 6,
    "remote_log_manager_task_retry_backoff_ms": 7,
    "remote_log_manager_task_retry_backoff_max_ms": 8,
    "remote_log_manager_task_retry_jitter": 0.1,
    "remote_log_manager_copy_max_bytes_per_second": 9,
    "remote_log_manager_copy_quota_window_num": 10,
    "remote_log_manager_copy_quota_window_size_seconds": 12,
    "remote_log_manager_fetch_max_bytes_per_second": 13,
    "remote_log_manager_fetch_quota_window_num": 14,
    "remote_log_manager_fetch_quota_window_size_seconds": 15,
    "remote_log_reader_threads": 16,
    "remote_log_reader_max_pending_tasks": 17,
    "remote_fetch_max_wait_ms": 18,
    "remote_list_offsets_request_timeout_ms": 19,
    "remote_log_index_file_cache_total_size_bytes": 20,
    "remote_log_metadata_custom_metadata_max_bytes": 21,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 22,
    "rsm_config_storage_backend_class": "s3",
    "rsm_config_storage_root": "/root",
    "rsm_config_key_prefix": "p/",
    "rsm_config_chunk_size": 23,
    "rsm_config_compression_enabled": True,
    "rsm_config_compression_heuristic_enabled": True,
    "rsm_config_encryption_enabled": True,
    "rsm_config_encryption_key_pair_id": "k",
    "rsm_config_encryption_key_pairs": ("k",),
    "rsm_config_encryption_key_pairs_files": {
        "k": KeyFiles("/p", ""),
        "unused": KeyFiles("/u", ""),
    },
    "rsm_config_upload_rate_limit_bytes_per_second": 2_000_000,
    "rsm_config_fetch_chunk_cache_path": "/chunks",
    "rsm_config_fetch_chunk_cache_size": 24,
    "rsm_config_fetch_chunk_cache_prefetch_max_size": 25,
    "rsm_config_storage_s3_bucket_name": "b",
    "rsm_config_storage_s3_region": "r",
    "rsm_config_storage_s3_endpoint_url": "http://h:1",
    "rsm_config_storage_s3_path_style_access_enabled": True,
    "rsm_config_storage_s3_storage_class": "STANDARD_IA",
    "rsm_config_storage_s3_multipart_upload_part_size": 26,
    "rsm_config_storage_s3_api_call_timeout": 27,
    "rsm_config_storage_s3_api_call_attempt_timeout": 28,
    "rsm_config_storage_s3_legacy_md5_plugin_enabled": True,
    "rsm_config_storage_aws_access_key_id": "id",
    "rsm_config_storage_aws_secret_access_key": "secret",
    "tier_s3_credentials_file": "/c",
    "tier_s3_credentials_profile": "other",
    "tier_s3_checksum": "crc32c",
    "tier_s3_parts_in_flight": 3,
    "tier_store_connect_timeout_ms": 29,
    "tier_store_read_timeout_ms": 30,
    "tier_store_call_timeout_ms": 31,
    "tier_store_attempts": 4,
    "tier_store_connections": 5,
    "tier_worker": "inline",
    "tier_cpu_affinity": ("0", "2"),
    "tier_index_cache_path": "/indexes",
    "tier_compression_level": 9,
    "tier_client_fetch_max_bytes_per_second": 32,
    "tier_abandoned_reads": "cancel",
    "tier_copy_paused": True,
    "tier_fetch_paused": True,
    "tier_metadata_snapshots": "bucket",
    "tier_gc_grace_ms": 33,
    "tier_gc_interval_ms": 34,
    "tier_history_interval_ms": 36,
    "tier_verify_bytes_per_second": 35,
    "tier_stalled_copy_ms": 36,
}
"""A value that is not the default for every field that has a say."""

NO_SAY = {
    "remote_log_storage_system_enable",
    "remote_log_storage_manager_class_name",
    "remote_log_storage_manager_class_path",
    "remote_log_storage_manager_impl_prefix",
    "remote_log_metadata_manager_class_name",
    "remote_log_metadata_manager_class_path",
    "remote_log_metadata_manager_impl_prefix",
    "remote_log_metadata_manager_listener_name",
    "remote_log_manager_thread_pool_size",
    "rlmm_config_remote_log_metadata_topic_replication_factor",
    "rlmm_config_remote_log_metadata_topic_retention_ms",
    "rlmm_config_remote_log_metadata_consume_wait_ms",
    "rlmm_config_remote_log_metadata_initialization_retry_interval_ms",
    "rlmm_config_remote_log_metadata_initialization_retry_max_timeout_ms",
    "tier_describe_log_dirs_remote",
}
"""Fields whose meaning lies elsewhere, or that have none here."""


def flat(settings: object) -> dict[str, object]:
    """Every field by its path."""
    found: dict[str, object] = {}
    for one in fields(settings):  # type: ignore[arg-type]  # is a dataclass
        value = getattr(settings, one.name)
        if is_dataclass(value):
            found |= {f"{one.name}.{name}": inner for name, inner in flat(value).items()}
        else:
            found[one.name] = value
    return found


def test_the_table_above_is_complete() -> None:
    """A new setting has to say what it does."""
    sections = (RemoteLogSettings, RemoteStorageSettings, TierOwnSettings)
    names = {name for section in sections for name in section.model_fields}
    assert set(OTHER) | NO_SAY == names
    assert not set(OTHER) & NO_SAY


def test_every_field_can_be_reached() -> None:
    """None stays at its default when all settings differ from theirs."""
    default, other = flat(TierSettings()), flat(tier_settings(BrokerConfig().replace(**OTHER)))
    same = {name for name in default if default[name] == other[name]}
    # S3 has no root.
    assert same == {"store.root"}
    store = tier_settings(BrokerConfig().replace(rsm_config_storage_root="/root")).store
    assert store.root == "/root"


@pytest.mark.parametrize("name", sorted(OTHER))
def test_every_setting_has_an_effect(name: str) -> None:
    """Alone, or beside those it needs."""
    base = BrokerConfig().replace(
        **{
            key: value
            for key, value in OTHER.items()
            if key.startswith("rsm_config_encryption") and key != name
        }
    )
    changed = base.replace(**{name: OTHER[name]})
    assert flat(tier_settings(changed)) != flat(tier_settings(base))


def test_objects_are_found_in_whatever_order_the_directories_are() -> None:
    """Another order is no empty object store."""
    filesystem = FakeFilesystem()
    one, other = (BrokerConfig().replace(log_dirs=d) for d in (("/a", "/b"), ("/b", "/a")))
    assert (tier_home(one, filesystem), tier_home(other, filesystem)) == ("/a", "/b")
    filesystem.mkdir("/a/varve-objects")
    assert (tier_home(one, filesystem), tier_home(other, filesystem)) == ("/a", "/a")
    assert tier_settings(other, "/a").store.root == "/a/varve-objects"


def test_a_broker_without_settings_has_those_of_the_tier() -> None:
    """But for the paths, which depend on the data directory."""
    settings = flat(tier_settings(BrokerConfig().replace(log_dirs=("/data", "/more"))))
    paths = {
        "store.root": "/data/varve-objects",
        "index_cache_directory": "/data/remote-log-index-cache",
        "chunk_cache_directory": "/data/varve-chunk-cache",
    }
    assert settings == flat(TierSettings()) | paths


def test_paths_are_absolute() -> None:
    """The tier process may stand elsewhere."""
    settings = tier_settings(BrokerConfig())
    assert settings.store.root == os.path.abspath("./data/varve-objects")
    files = {"k": KeyFiles("p.pem", "q.pem")}
    ring = tier_settings(
        BrokerConfig().replace(
            rsm_config_encryption_key_pairs=("k", "missing"),
            rsm_config_encryption_key_pairs_files=files,
        )
    ).format.key_pairs
    assert ring == {"k": KeyPairFiles(os.path.abspath("p.pem"), os.path.abspath("q.pem"))}


def test_the_lower_limit_of_copying_counts() -> None:
    """Kafka's and Aiven's."""
    kafkas = BrokerConfig().replace(remote_log_manager_copy_max_bytes_per_second=3_000_000)
    assert tier_settings(kafkas).copy_max_bytes_per_second == 3_000_000
    both = kafkas.replace(rsm_config_upload_rate_limit_bytes_per_second=2_000_000)
    assert tier_settings(both).copy_max_bytes_per_second == 2_000_000


def test_an_unlimited_cache_is_the_largest() -> None:
    """-1, as in Aiven's plugin."""
    settings = BrokerConfig().replace(rsm_config_fetch_chunk_cache_size=-1)
    assert tier_settings(settings).chunk_cache_bytes == UNLIMITED


def test_an_endpoint_means_path_style_unless_told_otherwise() -> None:
    """Few of the other stores answer to names of buckets."""
    there = BrokerConfig().replace(rsm_config_storage_s3_endpoint_url="http://h:1")
    assert tier_settings(there).store.path_style
    told = there.replace(rsm_config_storage_s3_path_style_access_enabled=False)
    assert not tier_settings(told).store.path_style
    assert not tier_settings(BrokerConfig()).store.path_style


def test_only_what_may_change_is_told_as_changed() -> None:
    """The store and the format of new segments stay as they were."""
    assert {one.name for one in fields(TierSettings)} >= FIXED
    before = TierSettings()
    after = TierSettings(
        store=StoreSettings(root="/x"), format=FormatSettings(chunk_bytes=1), copier_tasks=3
    )
    assert changed_fields(before, after) == {"copier_tasks": (10, 3)}


def test_what_is_dynamic_reaches_a_field_that_may_change() -> None:
    """A dynamic key whose change nobody is told of would be a lie."""
    for name in OTHER:
        row = next(row for row in BROKER_KEYS.values() if row.field_name == name)
        if row.dynamic:
            changed = tier_settings(BrokerConfig().replace(**{name: OTHER[name]}))
            assert changed_fields(tier_settings(BrokerConfig()), changed), name


def test_verifying_is_off_where_reading_is_charged() -> None:
    """4 MiB/s for ever is 10 TiB a month; who sets it has decided."""

    def rate(**values: object) -> int:
        return tier_settings(BrokerConfig().replace(**values)).verify_bytes_per_second

    s3 = {"rsm_config_storage_backend_class": "s3", "rsm_config_storage_s3_bucket_name": "b"}
    assert rate() == rate(**s3) == 4 << 20
    for name in ("STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", "INTELLIGENT_TIERING"):
        charged = {**s3, "rsm_config_storage_s3_storage_class": name}
        assert rate(**charged) == 0
        assert rate(**charged, tier_verify_bytes_per_second=1000) == 1000
    assert rate(**s3, tier_verify_bytes_per_second=0) == 0
    # A class means nothing for a directory.
    assert rate(rsm_config_storage_s3_storage_class="STANDARD_IA") == 4 << 20
