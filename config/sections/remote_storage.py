"""The object store: which one, how to reach it, and how segments are written there.

Names, types and bounds are those of Aiven's plugin for Kafka (docs/configs.rst there), under the
prefix that Kafka gives a storage manager's settings.
"""

from collections.abc import Mapping

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import Boolean, Choice, Integer, Text, WireType, WordList
from config.remote_kinds import Implementation, KeyFiles, KeyRing

_SOURCE = "Aiven's tiered storage plugin"
_MIB = 1024 * 1024

FILESYSTEM = "filesystem"
S3 = "s3"
_BACKENDS: Mapping[str, str] = {
    FILESYSTEM: FILESYSTEM,
    S3: S3,
    "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage": FILESYSTEM,
    "io.aiven.kafka.tieredstorage.storage.s3.S3Storage": S3,
}

STORAGE_CLASSES = (
    "STANDARD",
    "REDUCED_REDUNDANCY",
    "STANDARD_IA",
    "ONEZONE_IA",
    "INTELLIGENT_TIERING",
    "GLACIER",
    "DEEP_ARCHIVE",
    "OUTPOSTS",
    "GLACIER_IR",
    "SNOW",
    "EXPRESS_ONEZONE",
    "FSX_OPENZFS",
)


class RemoteStorageSettings(Settings):
    """The object store, in the names of Aiven's plugin."""

    rsm_config_storage_backend_class: str = config_key(
        "rsm.config.storage.backend.class",
        Implementation(
            _BACKENDS,
            "use filesystem or s3 (which also speaks to MinIO, Garage, SeaweedFS, and the "
            "S3 gateways of other stores)",
            WireType.CLASS,
        ),
        default=FILESYSTEM,
        text="The kind of object store: `filesystem`, a directory, or `s3`, anything that speaks "
        "S3. Aiven's class names for them are taken too.",
        source=_SOURCE,
        difference="Has a default; there are no clients for Azure, Google and Oracle.",
    )
    rsm_config_storage_root: str | None = config_key(
        "rsm.config.storage.root",
        Text("directory", non_empty=True),
        default=None,
        text="With `filesystem`: where the objects are. It should be on another disk, or on a "
        "network's; it may be mounted by several. Unset: `varve-objects` in the first of "
        "`log.dirs`, good for trying it out.",
        source=_SOURCE,
        difference="Has a default, and is created.",
    )
    rsm_config_key_prefix: str = config_key(
        "rsm.config.key.prefix",
        Text("text in front of every object's key"),
        default="",
        text="Prefix of every object key, so that clusters can share a bucket. It is used "
        "as it is; end it with `/` to have a folder.",
        source=_SOURCE,
    )
    rsm_config_chunk_size: int = config_key(
        "rsm.config.chunk.size",
        Integer("bytes", 1, 1_073_741_823),
        default=8 * _MIB,
        text="Size of the chunks in which segments are compressed, encrypted, verified, "
        "read and cached. Segments that were copied before keep theirs.",
        source=_SOURCE,
        difference="Has a default.",
    )
    rsm_config_compression_enabled: bool = config_key(
        "rsm.config.compression.enabled",
        Boolean(),
        default=False,
        text="Compress what is copied with zstd (`tier.compression.level`).",
        source=_SOURCE,
    )
    rsm_config_compression_heuristic_enabled: bool = config_key(
        "rsm.config.compression.heuristic.enabled",
        Boolean(),
        default=False,
        text="Leave segments as they are whose first batch is compressed already. Needs "
        "`rsm.config.compression.enabled`.",
        source=_SOURCE,
    )
    rsm_config_encryption_enabled: bool = config_key(
        "rsm.config.encryption.enabled",
        Boolean(),
        default=False,
        text="Encrypt segments and their indexes with AES-256-GCM, under a key of their own that "
        "is wrapped with an RSA key.",
        source=_SOURCE,
    )
    rsm_config_encryption_key_pair_id: str | None = config_key(
        "rsm.config.encryption.key.pair.id",
        Text("id of a key pair"),
        default=None,
        text="The RSA key pair that wraps the data keys of new segments. The others only "
        "unwrap; `varve tier rotate-keys` rewraps old keys.",
        source=_SOURCE,
    )
    rsm_config_encryption_key_pairs: tuple[str, ...] = config_key(
        "rsm.config.encryption.key.pairs",
        WordList(what="ids of key pairs"),
        default=(),
        text="All RSA key pairs. The PEM files of each are "
        "`rsm.config.encryption.key.pairs.<id>.public.key.file` and `...private.key.file`.",
        source=_SOURCE,
    )
    rsm_config_encryption_key_pairs_files: Mapping[str, KeyFiles] = config_key(
        "rsm.config.encryption.key.pairs.files",
        KeyRing(),
        default={},
        text="The files of all key pairs in one setting. What is set under Aiven's name for each "
        "file is shown here, and is stronger.",
        source="Varve",
    )
    rsm_config_upload_rate_limit_bytes_per_second: int | None = config_key(
        "rsm.config.upload.rate.limit.bytes.per.second",
        Integer("bytes per second", _MIB),
        default=None,
        text="As `remote.log.manager.copy.max.bytes.per.second`; the lower of the two counts.",
        source=_SOURCE,
    )
    rsm_config_fetch_chunk_cache_path: str | None = config_key(
        "rsm.config.fetch.chunk.cache.path",
        Text("directory", non_empty=True),
        default=None,
        text="Directory of the chunk cache: chunks of remote segments that were read or "
        "prefetched. Unset: `varve-chunk-cache` in the first of `log.dirs`. "
        "Elsewhere in a log directory, above one, or in the object store's root it "
        "is refused.",
        source=_SOURCE,
        difference="Has a default, and is created.",
    )
    rsm_config_fetch_chunk_cache_size: int = config_key(
        "rsm.config.fetch.chunk.cache.size",
        size(-1, bits=64, special=((-1, "no limit"),)),
        default=1024 * _MIB,
        text="Most bytes of the chunk cache. The least recently used chunks are evicted first.",
        source=_SOURCE,
        difference="Has a default.",
    )
    rsm_config_fetch_chunk_cache_prefetch_max_size: int = config_key(
        "rsm.config.fetch.chunk.cache.prefetch.max.size",
        size(0),
        default=32 * _MIB,
        text="Most bytes read ahead of one consumer; 0 reads nothing ahead.",
        source=_SOURCE,
        difference="Not always as much: the distance grows with the consumer's speed. Aiven's "
        "default is 0.",
    )
    rsm_config_storage_s3_bucket_name: str | None = config_key(
        "rsm.config.storage.s3.bucket.name",
        Text("name of a bucket", non_empty=True),
        default=None,
        text="With `s3`: the bucket. It must exist.",
        source=_SOURCE,
    )
    rsm_config_storage_s3_region: str | None = config_key(
        "rsm.config.storage.s3.region",
        Text("name of a region"),
        default=None,
        text="Where the bucket is. Unset: as the environment says, else us-east-1, which suits "
        "other stores than Amazon's.",
        source=_SOURCE,
        difference="Has a default.",
    )
    rsm_config_storage_s3_endpoint_url: str | None = config_key(
        "rsm.config.storage.s3.endpoint.url",
        Text("URL"),
        default=None,
        text="Endpoint of an S3-compatible store. Unset: Amazon S3.",
        source=_SOURCE,
    )
    rsm_config_storage_s3_path_style_access_enabled: bool | None = config_key(
        "rsm.config.storage.s3.path.style.access.enabled",
        Boolean(),
        default=None,
        text="Name the bucket in the path, not in the host. Unset: when there is an endpoint URL.",
        source=_SOURCE,
    )
    rsm_config_storage_s3_storage_class: str = config_key(
        "rsm.config.storage.s3.storage.class",
        Choice(STORAGE_CLASSES),
        default="STANDARD",
        text="Storage class of new objects. Classes whose objects must be restored before "
        "a read cannot be used.",
        source=_SOURCE,
    )
    rsm_config_storage_s3_multipart_upload_part_size: int = config_key(
        "rsm.config.storage.s3.multipart.upload.part.size",
        size(5 * _MIB),
        default=8 * _MIB,
        text="Size of the parts of a multipart upload. Every part in flight "
        "(`tier.s3.parts.in.flight`) takes as much memory.",
        source=_SOURCE,
        difference="Aiven's default is 25 MiB.",
    )
    rsm_config_storage_s3_api_call_timeout: int | None = config_key(
        "rsm.config.storage.s3.api.call.timeout",
        milliseconds(1),
        default=None,
        text="Timeout of a call, all attempts included. Unset: `tier.store.call.timeout.ms`.",
        source=_SOURCE,
        difference="There is always a limit.",
    )
    rsm_config_storage_s3_api_call_attempt_timeout: int | None = config_key(
        "rsm.config.storage.s3.api.call.attempt.timeout",
        milliseconds(1),
        default=None,
        text="Timeout of one attempt: the longest wait for bytes. Unset: "
        "`tier.store.read.timeout.ms`.",
        source=_SOURCE,
        difference="There is always a limit, on each wait for bytes and not on their sum.",
    )
    rsm_config_storage_s3_legacy_md5_plugin_enabled: bool = config_key(
        "rsm.config.storage.s3.legacy.md5.plugin.enabled",
        Boolean(),
        default=False,
        text="Send MD5 sums with uploads, as old stores want. The same as `tier.s3.checksum=md5`.",
        source=_SOURCE,
    )
    rsm_config_storage_aws_access_key_id: str | None = config_key(
        "rsm.config.storage.aws.access.key.id",
        Text("access key", non_empty=True),
        default=None,
        text="Static access key. Prefer `tier.s3.credentials.file`, or credentials that "
        "the environment provides.",
        source=_SOURCE,
        secret=True,
    )
    rsm_config_storage_aws_secret_access_key: str | None = config_key(
        "rsm.config.storage.aws.secret.access.key",
        Text("secret key", non_empty=True),
        default=None,
        text="The secret to `rsm.config.storage.aws.access.key.id`.",
        source=_SOURCE,
        secret=True,
    )
    tier_s3_credentials_file: str | None = config_key(
        "tier.s3.credentials.file",
        Text("file", non_empty=True),
        default=None,
        text="An AWS credentials file, read again whenever it changes: keys may rotate.",
        source="Varve",
    )
    tier_s3_credentials_profile: str = config_key(
        "tier.s3.credentials.profile",
        Text("name of a profile", non_empty=True),
        default="default",
        text="Profile of `tier.s3.credentials.file` that is used.",
        source="Varve",
    )
    tier_s3_checksum: str = config_key(
        "tier.s3.checksum",
        Choice(("none", "md5", "crc32c")),
        default="none",
        text="Checksum sent with uploads for the object store to verify. `none` is "
        "understood by all stores; Varve's own checksums are in the manifest in any "
        "case.",
        source="Varve",
    )
    tier_s3_parts_in_flight: int = config_key(
        "tier.s3.parts.in.flight",
        Integer("parts", 1, 16),
        default=2,
        text="Parts of one upload sent at the same time.",
        source="Varve",
    )
    tier_store_connect_timeout_ms: int = config_key(
        "tier.store.connect.timeout.ms",
        milliseconds(1, bits=32),
        default=5_000,
        text="Longest time for a connection to the object store.",
        source="Varve",
    )
    tier_store_read_timeout_ms: int = config_key(
        "tier.store.read.timeout.ms",
        milliseconds(1, bits=32),
        default=10_000,
        text="Longest wait for bytes of the object store within a call.",
        source="Varve",
    )
    tier_store_call_timeout_ms: int = config_key(
        "tier.store.call.timeout.ms",
        milliseconds(1, bits=32),
        default=60_000,
        text="Timeout of a call to the object store, all attempts included, for every "
        "started 64 MiB that it transfers.",
        source="Varve",
    )
    tier_store_attempts: int = config_key(
        "tier.store.attempts",
        Integer("attempts", 1, 20),
        default=3,
        text="Most attempts of a call to the object store, within its timeout.",
        source="Varve",
    )
    tier_store_connections: int = config_key(
        "tier.store.connections",
        count(1, "connections"),
        default=32,
        text="Most connections to the object store.",
        source="Varve",
    )
