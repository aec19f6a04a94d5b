"""From the broker's settings to those of the remote log.

Paths that nobody has set lie below one of `log.dirs`, see `tier_home`:

    varve-objects             the filesystem backend's objects
    remote-log-index-cache    indexes of remote segments, as in Kafka
    varve-chunk-cache         pieces of remote segments

None of these names is taken for a partition's directory.
"""

import os
from collections.abc import Mapping
from dataclasses import fields
from posixpath import join
from typing import Final

from config.broker import BrokerConfig
from config.cache_paths import CHUNK_CACHE_DIRECTORY, INDEX_CACHE_DIRECTORY, OBJECTS_DIRECTORY
from config.sections.remote_storage import S3
from storage.environment.filesystem import Filesystem
from tiered.settings import (
    MIB,
    UNLIMITED,
    FormatSettings,
    KeyPairFiles,
    StoreSettings,
    TierSettings,
)

VERIFY_BYTES_PER_SECOND: Final = 4 * MIB
"""Unless told otherwise, where reading costs nothing but requests."""

FIXED: Final = frozenset(
    {
        "store",
        "format",
        "index_cache_directory",
        "chunk_cache_directory",
        "metadata_partitions",
        "metadata_snapshots",
        "worker",
        "worker_affinity",
    }
)
"""Fields that stay as they were at the start, whatever is set at run time."""


def tier_home(settings: BrokerConfig, filesystem: Filesystem) -> str:
    """The log directory below which remote storage keeps what has no place of its own.

    The one that has objects already, wherever among `log.dirs` it stands now: another order must
    not look like an empty object store. On a new node the first.
    """
    paths = list(map(os.path.abspath, settings.log_dirs))
    having = (path for path in paths if filesystem.exists(os.path.join(path, OBJECTS_DIRECTORY)))
    return next(having, paths[0])


def tier_settings(settings: BrokerConfig, home: str | None = None) -> TierSettings:
    """All of the remote log's settings; paths are absolute.

    Args:
        settings: The broker's.
        home: See `tier_home`; default: the first of `log.dirs`.
    """
    first = home or os.path.abspath(settings.log_dirs[0])
    chunk_cache = settings.rsm_config_fetch_chunk_cache_size
    limit = settings.rsm_config_upload_rate_limit_bytes_per_second
    return TierSettings(
        store=_store(settings, first),
        format=_format(settings),
        copier_tasks=settings.remote_log_manager_copier_thread_pool_size,
        expiration_tasks=settings.remote_log_manager_expiration_thread_pool_size,
        follower_tasks=settings.remote_log_manager_follower_thread_pool_size,
        task_interval_ms=settings.remote_log_manager_task_interval_ms,
        task_backoff_ms=settings.remote_log_manager_task_retry_backoff_ms,
        task_backoff_max_ms=settings.remote_log_manager_task_retry_backoff_max_ms,
        task_jitter=settings.remote_log_manager_task_retry_jitter,
        copy_max_bytes_per_second=min(
            settings.remote_log_manager_copy_max_bytes_per_second,
            UNLIMITED if limit is None else limit,
        ),
        copy_quota_windows=settings.remote_log_manager_copy_quota_window_num,
        copy_quota_window_seconds=settings.remote_log_manager_copy_quota_window_size_seconds,
        fetch_max_bytes_per_second=settings.remote_log_manager_fetch_max_bytes_per_second,
        fetch_quota_windows=settings.remote_log_manager_fetch_quota_window_num,
        fetch_quota_window_seconds=settings.remote_log_manager_fetch_quota_window_size_seconds,
        client_fetch_max_bytes_per_second=settings.tier_client_fetch_max_bytes_per_second,
        reader_tasks=settings.remote_log_reader_threads,
        reader_queue_max=settings.remote_log_reader_max_pending_tasks,
        fetch_max_wait_ms=settings.remote_fetch_max_wait_ms,
        list_offsets_timeout_ms=settings.remote_list_offsets_request_timeout_ms,
        index_cache_bytes=settings.remote_log_index_file_cache_total_size_bytes,
        index_cache_directory=_path(settings.tier_index_cache_path, first, INDEX_CACHE_DIRECTORY),
        chunk_cache_bytes=UNLIMITED if chunk_cache < 0 else chunk_cache,
        chunk_cache_directory=_path(
            settings.rsm_config_fetch_chunk_cache_path, first, CHUNK_CACHE_DIRECTORY
        ),
        prefetch_max_bytes=settings.rsm_config_fetch_chunk_cache_prefetch_max_size,
        abandoned_reads=settings.tier_abandoned_reads,
        custom_metadata_max_bytes=settings.remote_log_metadata_custom_metadata_max_bytes,
        metadata_partitions=settings.rlmm_config_remote_log_metadata_topic_num_partitions,
        metadata_snapshots=settings.tier_metadata_snapshots,
        gc_grace_ms=settings.tier_gc_grace_ms,
        gc_interval_ms=settings.tier_gc_interval_ms,
        history_interval_ms=settings.tier_history_interval_ms,
        verify_bytes_per_second=_verify_bytes_per_second(settings),
        stalled_copy_ms=settings.tier_stalled_copy_ms,
        worker=settings.tier_worker,
        worker_affinity=tuple(int(word) for word in settings.tier_cpu_affinity),
        copy_paused=settings.tier_copy_paused,
        fetch_paused=settings.tier_fetch_paused,
    )


def changed_fields(
    before: TierSettings, after: TierSettings
) -> Mapping[str, tuple[object, object]]:
    """What is different, by name: (before, after). Paths, formats and the store do not count."""
    return {
        one.name: (getattr(before, one.name), getattr(after, one.name))
        for one in fields(TierSettings)
        if one.name not in FIXED and getattr(before, one.name) != getattr(after, one.name)
    }


def _verify_bytes_per_second(settings: BrokerConfig) -> int:
    given = settings.tier_verify_bytes_per_second
    if given is not None:
        return given
    is_s3 = settings.rsm_config_storage_backend_class == S3
    is_charged = is_s3 and settings.rsm_config_storage_s3_storage_class != "STANDARD"
    return 0 if is_charged else VERIFY_BYTES_PER_SECOND


def _path(given: str | None, first: str, name: str) -> str:
    return os.path.abspath(given) if given else join(first, name)


def _store(settings: BrokerConfig, first: str) -> StoreSettings:
    endpoint = settings.rsm_config_storage_s3_endpoint_url or ""
    path_style = settings.rsm_config_storage_s3_path_style_access_enabled
    checksum = settings.tier_s3_checksum
    if checksum == "none" and settings.rsm_config_storage_s3_legacy_md5_plugin_enabled:
        checksum = "md5"
    credentials = settings.tier_s3_credentials_file
    uses_s3 = settings.rsm_config_storage_backend_class == S3
    return StoreSettings(
        backend=settings.rsm_config_storage_backend_class,
        root="" if uses_s3 else _path(settings.rsm_config_storage_root, first, OBJECTS_DIRECTORY),
        key_prefix=settings.rsm_config_key_prefix,
        bucket=settings.rsm_config_storage_s3_bucket_name or "",
        region=settings.rsm_config_storage_s3_region or "",
        endpoint_url=endpoint,
        path_style=bool(endpoint) if path_style is None else path_style,
        storage_class=settings.rsm_config_storage_s3_storage_class,
        access_key_id=settings.rsm_config_storage_aws_access_key_id or "",
        secret_access_key=settings.rsm_config_storage_aws_secret_access_key or "",
        credentials_file=os.path.abspath(credentials) if credentials else "",
        credentials_profile=settings.tier_s3_credentials_profile,
        part_bytes=settings.rsm_config_storage_s3_multipart_upload_part_size,
        parts_in_flight=settings.tier_s3_parts_in_flight,
        connect_timeout_ms=settings.tier_store_connect_timeout_ms,
        read_timeout_ms=(
            settings.rsm_config_storage_s3_api_call_attempt_timeout
            or settings.tier_store_read_timeout_ms
        ),
        call_timeout_ms=(
            settings.rsm_config_storage_s3_api_call_timeout or settings.tier_store_call_timeout_ms
        ),
        attempts=settings.tier_store_attempts,
        max_connections=settings.tier_store_connections,
        checksum=checksum,
    )


def _format(settings: BrokerConfig) -> FormatSettings:
    rings = settings.rsm_config_encryption_key_pairs_files
    return FormatSettings(
        chunk_bytes=settings.rsm_config_chunk_size,
        compression=settings.rsm_config_compression_enabled,
        compression_heuristic=settings.rsm_config_compression_heuristic_enabled,
        compression_level=settings.tier_compression_level,
        encryption=settings.rsm_config_encryption_enabled,
        key_pair_id=settings.rsm_config_encryption_key_pair_id or "",
        key_pairs={
            pair: KeyPairFiles(
                os.path.abspath(rings[pair].public),
                os.path.abspath(rings[pair].private) if rings[pair].private else None,
            )
            for pair in settings.rsm_config_encryption_key_pairs
            if pair in rings
        },
    )
