"""The remote log's settings as one frozen object; `config.sections.remote` says where each is from.

Tests build it directly; the broker fills it from its configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

MIB = 1024 * 1024
UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class KeyPairFiles:
    """PEM files of one RSA key pair; `private` may be missing where nothing is read."""

    public: str
    private: str | None


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Which object store, and how to reach it.

    Attributes:
        backend: "filesystem" or "s3".
        root: Directory of the filesystem backend.
        key_prefix: In front of every key, as it is (Aiven: `key.prefix`).
        bucket, region, endpoint_url, path_style, storage_class: S3.
        access_key_id, secret_access_key: S3; empty: by credentials_file or the default chain.
        credentials_file: An AWS credentials file, read again when it changes.
        part_bytes: Of multipart uploads.
        parts_in_flight: Of one upload.
        connect_timeout_ms, read_timeout_ms, call_timeout_ms: See StoreDeadlines.
        attempts: Tries per call within its total deadline.
        max_connections: To the store.
        checksum: "crc32c" (our own header, only stores that know it), "md5", or "none".
    """

    backend: str = "filesystem"
    root: str = ""
    key_prefix: str = ""
    bucket: str = ""
    region: str = ""
    endpoint_url: str = ""
    path_style: bool = False
    storage_class: str = "STANDARD"
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    credentials_file: str = ""
    credentials_profile: str = "default"
    part_bytes: int = 8 * MIB
    parts_in_flight: int = 2
    connect_timeout_ms: int = 5_000
    read_timeout_ms: int = 10_000
    call_timeout_ms: int = 60_000
    attempts: int = 3
    max_connections: int = 32
    checksum: str = "none"


@dataclass(frozen=True, slots=True)
class FormatSettings:
    """How new segments are written; old ones say themselves how they were.

    Attributes:
        chunk_bytes: Unit of compression, encryption, checksums and of the cache.
        compression: zstd per chunk.
        compression_heuristic: Leave segments alone whose first batch is compressed.
        encryption: AES-256-GCM per chunk and side file.
        key_pair_id: The pair that wraps new data keys.
        key_pairs: All pairs by id; the private halves unwrap old keys.
    """

    chunk_bytes: int = 8 * MIB
    compression: bool = False
    compression_heuristic: bool = False
    compression_level: int = 3
    encryption: bool = False
    key_pair_id: str = ""
    key_pairs: Mapping[str, KeyPairFiles] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TierSettings:
    """All of it. Kafka's names in brackets where they differ.

    Attributes:
        copier_tasks, expiration_tasks, follower_tasks: At most so many at a time
            (`remote.log.manager.{copier,expiration,follower}.thread.pool.size`).
        task_interval_ms: `remote.log.manager.task.interval.ms`.
        task_backoff_ms, task_backoff_max_ms, task_jitter: After a failure: doubled up to the
            maximum, spread by the jitter (a fraction).
        copy_max_bytes_per_second, fetch_max_bytes_per_second: Kafka's quotas, with their windows.
        client_fetch_max_bytes_per_second: Per client id and principal.
        reader_tasks, reader_queue_max: Downloads for waiting readers at a time, and waiting
            (`remote.log.reader.threads`, `.max.pending.tasks`).
        fetch_max_wait_ms: `remote.fetch.max.wait.ms`.
        list_offsets_timeout_ms: `remote.list.offsets.request.timeout.ms`.
        index_cache_bytes, index_cache_directory: `remote.log.index.file.cache.total.size.bytes`.
        chunk_cache_bytes, chunk_cache_directory: Of our chunk cache.
        prefetch_max_bytes: Most bytes ahead of one reader; 0: no prefetch.
        abandoned_reads: "finish" (into the cache) or "cancel", when nobody waits any more.
        custom_metadata_max_bytes: `remote.log.metadata.custom.metadata.max.bytes`.
        metadata_partitions: `remote.log.metadata.topic.num.partitions`.
        metadata_snapshots: "local" or "bucket".
        gc_grace_ms: Objects that nobody owns are kept so long.
        gc_interval_ms: Between two listings of the bucket.
        verify_bytes_per_second: Speed of re-reading what is tiered; 0: not at all.
        history_interval_ms: A partition's history object is written at most once in that time, if
            it has changed and nobody waits for it; 0: never.
        stalled_copy_ms: A copy that has moved nothing for so long counts as stalled.
        worker: "process" or "inline" (in the broker's own loop; for tests and tiny machines).
        worker_affinity: CPUs for the tier process (`tier.cpu.affinity`); empty: any.
        copy_paused, fetch_paused: Cluster-wide switches.
    """

    store: StoreSettings = field(default_factory=StoreSettings)
    format: FormatSettings = field(default_factory=FormatSettings)
    copier_tasks: int = 10
    expiration_tasks: int = 10
    follower_tasks: int = 2
    task_interval_ms: int = 30_000
    task_backoff_ms: int = 500
    task_backoff_max_ms: int = 30_000
    task_jitter: float = 0.2
    copy_max_bytes_per_second: int = UNLIMITED
    copy_quota_windows: int = 11
    copy_quota_window_seconds: int = 1
    fetch_max_bytes_per_second: int = UNLIMITED
    fetch_quota_windows: int = 11
    fetch_quota_window_seconds: int = 1
    client_fetch_max_bytes_per_second: int = UNLIMITED
    reader_tasks: int = 10
    reader_queue_max: int = 100
    fetch_max_wait_ms: int = 500
    list_offsets_timeout_ms: int = 30_000
    index_cache_bytes: int = 1024 * MIB
    index_cache_directory: str = ""
    chunk_cache_bytes: int = 1024 * MIB
    chunk_cache_directory: str = ""
    prefetch_max_bytes: int = 32 * MIB
    abandoned_reads: str = "finish"
    custom_metadata_max_bytes: int = 128
    metadata_partitions: int = 50
    metadata_snapshots: str = "local"
    gc_grace_ms: int = 3_600_000
    gc_interval_ms: int = 3_600_000
    verify_bytes_per_second: int = 4 * MIB
    history_interval_ms: int = 30_000
    stalled_copy_ms: int = 60_000
    worker: str = "process"
    worker_affinity: tuple[int, ...] = ()
    copy_paused: bool = False
    fetch_paused: bool = False
