"""Settings of remote storage that contradict each other are found, where it is switched on."""

import pytest

from config.broker import BrokerConfig
from config.broker_rules import conflicts
from config.remote_kinds import KeyFiles
from config.remote_rules import remote_conflicts

S3 = {"rsm_config_storage_backend_class": "s3", "rsm_config_storage_s3_bucket_name": "b"}
ENCRYPTED: dict[str, object] = {
    "rsm_config_encryption_enabled": True,
    "rsm_config_encryption_key_pair_id": "k",
    "rsm_config_encryption_key_pairs": ("k",),
    "rsm_config_encryption_key_pairs_files": {"k": KeyFiles("/p", "/q")},
}


def keys(**values: object) -> list[str]:
    """Keys in conflict, of a broker with remote storage."""
    broker = BrokerConfig().replace(remote_log_storage_system_enable=True, **values)
    return [conflict.key for conflict in conflicts(broker)]


@pytest.mark.parametrize("values", [{}, S3, ENCRYPTED, {"rsm_config_fetch_chunk_cache_size": -1}])
def test_what_fits_together_is_accepted(values: dict[str, object]) -> None:
    """The defaults first of all: a directory as object store."""
    assert keys(**values) == []


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("rsm.config.storage.s3.bucket.name", {"rsm_config_storage_backend_class": "s3"}),
        (
            "rsm.config.storage.s3.endpoint.url",
            {**S3, "rsm_config_storage_s3_endpoint_url": "minio:9000"},
        ),
        (
            "rsm.config.storage.aws.secret.access.key",
            {**S3, "rsm_config_storage_aws_access_key_id": "a"},
        ),
        (
            "rsm.config.storage.aws.access.key.id",
            {**S3, "rsm_config_storage_aws_secret_access_key": "a"},
        ),
        (
            "tier.s3.credentials.file",
            {
                **S3,
                "rsm_config_storage_aws_secret_access_key": "a",
                "rsm_config_storage_aws_access_key_id": "a",
                "tier_s3_credentials_file": "/c",
            },
        ),
        ("rsm.config.key.prefix", {"rsm_config_key_prefix": "/a"}),
        ("rsm.config.key.prefix", {"rsm_config_key_prefix": "a/../b"}),
        ("rsm.config.compression.enabled", {"rsm_config_compression_heuristic_enabled": True}),
        (
            "rsm.config.encryption.key.pair.id",
            {**ENCRYPTED, "rsm_config_encryption_key_pair_id": "other"},
        ),
        (
            "rsm.config.encryption.key.pairs",
            {**ENCRYPTED, "rsm_config_encryption_key_pairs_files": {"k": KeyFiles("/p", "")}},
        ),
        (
            "rsm.config.encryption.key.pairs",
            {**ENCRYPTED, "rsm_config_encryption_key_pairs_files": {"k": KeyFiles("", "/q")}},
        ),
        ("rsm.config.fetch.chunk.cache.size", {"rsm_config_fetch_chunk_cache_size": 1000}),
        ("tier.cpu.affinity", {"tier_cpu_affinity": ("0", "x")}),
        ("log.local.retention.ms", {"log_local_retention_ms": -1}),
        (
            "log.local.retention.bytes",
            {"log_local_retention_bytes": 2, "log_retention_bytes": 1},
        ),
    ],
)
def test_what_does_not_is_found(key: str, values: dict[str, object]) -> None:
    """Under the key that is to be changed."""
    assert keys(**values) == [key]


def test_nothing_matters_while_it_is_off() -> None:
    """Somebody may prepare a file."""
    broker = BrokerConfig().replace(rsm_config_storage_backend_class="s3")
    assert list(conflicts(broker)) == []
    assert list(remote_conflicts(broker)) != []
