"""Rules between settings of remote storage, where it is enabled.

Source: Kafka 4.2, LogConfig.java (validateBrokerLogConfigValues); Aiven's plugin,
RemoteStorageManagerConfig.java.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from config.cache_paths import cache_conflicts
from config.conflict import Conflict
from config.errors import InvalidConfigError
from config.sections.remote_storage import S3
from config.topic import broker_defaults
from config.topic_rules import check_local_retention

if TYPE_CHECKING:
    from config.broker import BrokerConfig

_KEYS = "rsm.config.encryption.key.pairs"


def remote_conflicts(broker: "BrokerConfig") -> Iterator[Conflict]:
    """Everything wrong between the settings of a broker's remote storage."""
    try:
        check_local_retention(broker_defaults(broker))
    except InvalidConfigError as error:
        key = "bytes" if "local.retention.bytes" in str(error) else "ms"
        yield Conflict(f"log.local.retention.{key}", str(error))
    yield from _store(broker)
    yield from _encryption(broker)
    yield from _sizes(broker)
    yield from cache_conflicts(broker)
    if any(not word.isdecimal() for word in broker.tier_cpu_affinity):
        yield Conflict("tier.cpu.affinity", "names something that is no CPU", "numbers, from 0 on")


def _store(broker: "BrokerConfig") -> Iterator[Conflict]:
    if broker.rsm_config_storage_backend_class == S3:
        if not broker.rsm_config_storage_s3_bucket_name:
            yield Conflict(
                "rsm.config.storage.s3.bucket.name",
                "is missing: rsm.config.storage.backend.class is s3",
                "name of a bucket that exists",
            )
        endpoint = broker.rsm_config_storage_s3_endpoint_url
        if endpoint and not endpoint.startswith(("http://", "https://")):
            yield Conflict("rsm.config.storage.s3.endpoint.url", "is no URL", "http(s)://host:port")
    access = broker.rsm_config_storage_aws_access_key_id
    secret = broker.rsm_config_storage_aws_secret_access_key
    if (access is None) != (secret is None):
        half = "access.key.id" if access is None else "secret.access.key"
        yield Conflict(
            f"rsm.config.storage.aws.{half}", "is missing: an access key needs both halves"
        )
    if access is not None and broker.tier_s3_credentials_file is not None:
        yield Conflict(
            "tier.s3.credentials.file",
            "stands beside rsm.config.storage.aws.access.key.id",
            "one of the two",
        )
    prefix = broker.rsm_config_key_prefix
    if prefix.startswith("/") or ".." in prefix.split("/"):
        yield Conflict("rsm.config.key.prefix", "leads out of the store", "text without a first /")


def _encryption(broker: "BrokerConfig") -> Iterator[Conflict]:
    if (
        broker.rsm_config_compression_heuristic_enabled
        and not broker.rsm_config_compression_enabled
    ):
        yield Conflict(
            "rsm.config.compression.enabled",
            "compression.enabled must be enabled if compression.heuristic.enabled is",
        )
    if not broker.rsm_config_encryption_enabled:
        return
    active, pairs = broker.rsm_config_encryption_key_pair_id, broker.rsm_config_encryption_key_pairs
    if not active or active not in pairs:
        yield Conflict(
            "rsm.config.encryption.key.pair.id", f"Encryption key '{active or ''}' must be provided"
        )
    for pair in pairs:
        files = broker.rsm_config_encryption_key_pairs_files.get(pair)
        if files is None or not files.public:
            yield Conflict(
                _KEYS, f"the public key of {pair} is missing", f"{_KEYS}.{pair}.public.key.file"
            )
        if files is None or not files.private:
            yield Conflict(
                _KEYS, f"the private key of {pair} is missing", f"{_KEYS}.{pair}.private.key.file"
            )


def _sizes(broker: "BrokerConfig") -> Iterator[Conflict]:
    chunk, cache = broker.rsm_config_chunk_size, broker.rsm_config_fetch_chunk_cache_size
    if 0 <= cache < 2 * chunk:
        yield Conflict(
            "rsm.config.fetch.chunk.cache.size",
            "is too small for two chunks (rsm.config.chunk.size)",
            f"at least {2 * chunk} bytes",
        )
