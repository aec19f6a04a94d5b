"""An object store and how to reach it."""

from dataclasses import dataclass, field

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Out of a broker's settings (`config.tier`), or out of a Spark reader's options.

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
    part_bytes: int = 8 * _MIB
    parts_in_flight: int = 2
    connect_timeout_ms: int = 5_000
    read_timeout_ms: int = 10_000
    call_timeout_ms: int = 60_000
    attempts: int = 3
    max_connections: int = 32
    checksum: str = "none"
