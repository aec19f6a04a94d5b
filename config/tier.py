"""Settings of remote storage: its sections, joined, and what follows from several of them.

The remote log takes a `TierConfig` and no other object of settings: a field is Kafka's name with
`.` as `_`, here as in the tier process. The broker's are a `BrokerConfig`, which is one.
"""

from typing import Final

from config.kinds import LONG_MAX
from config.object_store import StoreSettings
from config.sections.remote import RemoteLogSettings
from config.sections.remote_storage import S3, RemoteStorageSettings
from config.sections.tier import TierOwnSettings

UNLIMITED: Final = LONG_MAX

VERIFY_BYTES_PER_SECOND: Final = 4 * 1024 * 1024
"""`tier.verify.bytes.per.second` when it is unset and the store charges nothing but requests."""


class TierConfig(TierOwnSettings, RemoteStorageSettings, RemoteLogSettings):
    """See the module; `TierConfig()` is all defaults."""

    @property
    def copy_max_bytes_per_second(self) -> int:
        """The lower of Kafka's limit and `rsm.config.upload.rate.limit.bytes.per.second`."""
        limit = self.remote_log_manager_copy_max_bytes_per_second
        upload = self.rsm_config_upload_rate_limit_bytes_per_second
        return limit if upload is None else min(limit, upload)

    @property
    def chunk_cache_max_bytes(self) -> int:
        """`rsm.config.fetch.chunk.cache.size`, whose -1 is `UNLIMITED`."""
        size = self.rsm_config_fetch_chunk_cache_size
        return UNLIMITED if size < 0 else size

    @property
    def verify_bytes_per_second(self) -> int:
        """`tier.verify.bytes.per.second`; unset it is 0 where the store charges what is read."""
        given = self.tier_verify_bytes_per_second
        if given is not None:
            return given
        is_s3 = self.rsm_config_storage_backend_class == S3
        is_charged = is_s3 and self.rsm_config_storage_s3_storage_class != "STANDARD"
        return 0 if is_charged else VERIFY_BYTES_PER_SECOND

    @property
    def call_timeout_ms(self) -> int:
        """Of one call to the object store, its attempts included."""
        return self.rsm_config_storage_s3_api_call_timeout or self.tier_store_call_timeout_ms

    @property
    def store(self) -> StoreSettings:
        """The object store; S3 has no root."""
        endpoint = self.rsm_config_storage_s3_endpoint_url or ""
        path_style = self.rsm_config_storage_s3_path_style_access_enabled
        checksum = self.tier_s3_checksum
        if checksum == "none" and self.rsm_config_storage_s3_legacy_md5_plugin_enabled:
            checksum = "md5"
        uses_s3 = self.rsm_config_storage_backend_class == S3
        return StoreSettings(
            backend=self.rsm_config_storage_backend_class,
            root="" if uses_s3 else self.rsm_config_storage_root or "",
            key_prefix=self.rsm_config_key_prefix,
            bucket=self.rsm_config_storage_s3_bucket_name or "",
            region=self.rsm_config_storage_s3_region or "",
            endpoint_url=endpoint,
            path_style=bool(endpoint) if path_style is None else path_style,
            storage_class=self.rsm_config_storage_s3_storage_class,
            access_key_id=self.rsm_config_storage_aws_access_key_id or "",
            secret_access_key=self.rsm_config_storage_aws_secret_access_key or "",
            credentials_file=self.tier_s3_credentials_file or "",
            credentials_profile=self.tier_s3_credentials_profile,
            part_bytes=self.rsm_config_storage_s3_multipart_upload_part_size,
            parts_in_flight=self.tier_s3_parts_in_flight,
            connect_timeout_ms=self.tier_store_connect_timeout_ms,
            read_timeout_ms=(
                self.rsm_config_storage_s3_api_call_attempt_timeout
                or self.tier_store_read_timeout_ms
            ),
            call_timeout_ms=self.call_timeout_ms,
            attempts=self.tier_store_attempts,
            max_connections=self.tier_store_connections,
            checksum=checksum,
        )
