"""What follows from several settings of remote storage, and how they reach the tier process."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from config.broker import BrokerConfig
from config.object_store import StoreSettings
from config.remote_kinds import KeyFiles
from config.tier import UNLIMITED, TierConfig


def test_the_broker_has_all_of_them() -> None:
    assert issubclass(BrokerConfig, TierConfig)


def test_the_store_is_described_by_every_setting_of_it() -> None:
    settings = TierConfig(
        rsm_config_storage_backend_class="s3",
        rsm_config_storage_root="/root",
        rsm_config_key_prefix="p/",
        rsm_config_storage_s3_bucket_name="b",
        rsm_config_storage_s3_region="r",
        rsm_config_storage_s3_endpoint_url="http://h:1",
        rsm_config_storage_s3_path_style_access_enabled=True,
        rsm_config_storage_s3_storage_class="STANDARD_IA",
        rsm_config_storage_aws_access_key_id="id",
        rsm_config_storage_aws_secret_access_key="secret",
        tier_s3_credentials_file="/c",
        tier_s3_credentials_profile="other",
        rsm_config_storage_s3_multipart_upload_part_size=26,
        tier_s3_parts_in_flight=3,
        tier_store_connect_timeout_ms=29,
        tier_store_read_timeout_ms=30,
        tier_store_call_timeout_ms=31,
        tier_store_attempts=4,
        tier_store_connections=5,
        tier_s3_checksum="crc32c",
    )
    assert settings.store == StoreSettings(
        backend="s3",
        # S3 has none.
        root="",
        key_prefix="p/",
        bucket="b",
        region="r",
        endpoint_url="http://h:1",
        path_style=True,
        storage_class="STANDARD_IA",
        access_key_id="id",
        secret_access_key="secret",
        credentials_file="/c",
        credentials_profile="other",
        part_bytes=26,
        parts_in_flight=3,
        connect_timeout_ms=29,
        read_timeout_ms=30,
        call_timeout_ms=31,
        attempts=4,
        max_connections=5,
        checksum="crc32c",
    )
    assert TierConfig(rsm_config_storage_root="/root").store == StoreSettings(root="/root")
    assert TierConfig().store == StoreSettings()


def test_names_of_aivens_plugin_come_first() -> None:
    settings = TierConfig(
        rsm_config_storage_s3_api_call_timeout=27,
        rsm_config_storage_s3_api_call_attempt_timeout=28,
        tier_store_read_timeout_ms=30,
        tier_store_call_timeout_ms=31,
        rsm_config_storage_s3_legacy_md5_plugin_enabled=True,
    )
    store = settings.store
    assert (store.call_timeout_ms, store.read_timeout_ms, store.checksum) == (27, 28, "md5")
    assert settings.call_timeout_ms == 27


def test_the_lower_limit_of_copying_counts() -> None:
    """Kafka's and Aiven's."""
    kafkas = TierConfig(remote_log_manager_copy_max_bytes_per_second=3_000_000)
    assert kafkas.copy_max_bytes_per_second == 3_000_000
    both = kafkas.with_values({"rsm_config_upload_rate_limit_bytes_per_second": 2_000_000})
    assert both.copy_max_bytes_per_second == 2_000_000


def test_an_unlimited_cache_is_the_largest() -> None:
    """-1, as in Aiven's plugin."""
    settings = TierConfig(rsm_config_fetch_chunk_cache_size=-1)
    assert settings.chunk_cache_max_bytes == UNLIMITED


def test_an_endpoint_means_path_style_unless_it_is_set() -> None:
    """Few of the other stores answer to names of buckets."""
    there = TierConfig(rsm_config_storage_s3_endpoint_url="http://h:1")
    assert there.store.path_style
    other = there.with_values({"rsm_config_storage_s3_path_style_access_enabled": False})
    assert not other.store.path_style
    assert not TierConfig().store.path_style


def test_verifying_is_off_where_reading_is_charged() -> None:
    """4 MiB/s for ever is 10 TiB a month; who sets it has decided."""

    def rate(**values: Any) -> int:
        return TierConfig(**values).verify_bytes_per_second

    s3: dict[str, Any] = {
        "rsm_config_storage_backend_class": "s3",
        "rsm_config_storage_s3_bucket_name": "b",
    }
    assert rate() == rate(**s3) == 4 << 20
    for name in ("STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", "INTELLIGENT_TIERING"):
        charged = {**s3, "rsm_config_storage_s3_storage_class": name}
        assert rate(**charged) == 0
        assert rate(**charged, tier_verify_bytes_per_second=1000) == 1000
    assert rate(**s3, tier_verify_bytes_per_second=0) == 0
    # A class means nothing for a directory.
    assert rate(rsm_config_storage_s3_storage_class="STANDARD_IA") == 4 << 20


def test_settings_cross_to_the_tier_process_as_json() -> None:
    """Secrets, tuples and key files among them."""
    settings = TierConfig(
        rsm_config_storage_aws_secret_access_key="secret",
        rsm_config_encryption_key_pairs=("a",),
        rsm_config_encryption_key_pairs_files={"a": KeyFiles("/p", "")},
        tier_cpu_affinity=("1", "3"),
        remote_log_manager_task_retry_jitter=0.5,
        tier_copy_paused=True,
    )
    for one in (settings, TierConfig()):
        text = json.dumps(one.model_dump(mode="json"))
        assert TierConfig.model_validate_json(text) == one


def test_secrets_are_in_no_repr_and_no_error() -> None:
    settings = TierConfig(rsm_config_storage_aws_secret_access_key="hush")
    assert "hush" not in repr(settings) + str(settings)
    with pytest.raises(ValidationError) as caught:
        TierConfig(tier_worker="hush")  # type: ignore[arg-type]  # that is the test
    assert "hush" not in str(caught.value)
