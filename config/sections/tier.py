"""Remote storage: what only Varve has."""

from typing import Literal

from config.definition import Settings, config_key, milliseconds, size
from config.kinds import LONG_MAX, Boolean, Choice, Integer, Text, WordList

_MIB = 1024 * 1024


class TierOwnSettings(Settings):
    """Remote storage, our own settings."""

    tier_worker: Literal["process", "inline"] = config_key(
        "tier.worker",
        Choice(("process", "inline")),
        default="process",
        text="Where segments are copied and read: `process`, in a process of its own, so "
        "that clients of local data do not notice it, or `inline`, in the broker "
        "process.",
        source="Varve",
    )
    tier_cpu_affinity: tuple[str, ...] = config_key(
        "tier.cpu.affinity",
        WordList(what="CPU numbers"),
        default=(),
        text="CPUs that the tier process may run on. Empty: any.",
        source="Varve",
    )
    tier_index_cache_path: str | None = config_key(
        "tier.index.cache.path",
        Text("directory", non_empty=True),
        default=None,
        text="Directory of the cache of remote segments' indexes. Unset: "
        "`remote-log-index-cache` in the first of `log.dirs`, as in Kafka. Elsewhere "
        "in a log directory, above one, or in the object store's root it is refused.",
        source="Varve",
    )
    tier_compression_level: int = config_key(
        "tier.compression.level",
        Integer("level", -7, 22),
        default=3,
        text="zstd level of copied segments, with `rsm.config.compression.enabled`.",
        source="Varve",
    )
    tier_client_fetch_max_bytes_per_second: int = config_key(
        "tier.client.fetch.max.bytes.per.second",
        Integer("bytes per second", 1, bits=64),
        default=LONG_MAX,
        text="Most bytes one client (its principal and client id) reads from remote storage.",
        source="Varve",
        dynamic=True,
    )
    tier_abandoned_reads: Literal["finish", "cancel"] = config_key(
        "tier.abandoned.reads",
        Choice(("finish", "cancel")),
        default="finish",
        text="What happens to a download that no consumer waits for any more, because it "
        "has left or has not fetched again for a second: `finish` puts the chunk "
        "into the cache for later reads, `cancel` stops it.",
        source="Varve",
    )
    tier_copy_paused: bool = config_key(
        "tier.copy.paused",
        Boolean(),
        default=False,
        text="Pause copying to remote storage, for all topics. Local segments are kept "
        "meanwhile, and copying resumes where it stopped.",
        source="Varve",
        dynamic=True,
    )
    tier_fetch_paused: bool = config_key(
        "tier.fetch.paused",
        Boolean(),
        default=False,
        text="Pause reading from remote storage, for all topics. Consumers that need it "
        "get empty responses meanwhile.",
        source="Varve",
        dynamic=True,
    )
    tier_metadata_snapshots: Literal["local", "bucket"] = config_key(
        "tier.metadata.snapshots",
        Choice(("local", "bucket")),
        default="local",
        text="Where snapshots of the remote log's metadata are kept: on local disk, or in the "
        "object store, where a node without its disk finds them.",
        source="Varve",
    )
    tier_gc_grace_ms: int = config_key(
        "tier.gc.grace.ms",
        milliseconds(0),
        default=3_600_000,
        text="Age below which garbage collection leaves alone objects without metadata, "
        "and unfinished uploads.",
        source="Varve",
        dynamic=True,
    )
    tier_gc_interval_ms: int = config_key(
        "tier.gc.interval.ms",
        milliseconds(1000),
        default=3_600_000,
        text="How often garbage collection lists the object store.",
        source="Varve",
        dynamic=True,
    )
    tier_history_interval_ms: int = config_key(
        "tier.history.interval.ms",
        milliseconds(0),
        default=30_000,
        text="Shortest interval between two writes of a partition's `varve-history` "
        "object, which has, for readers of the object store, the partition's start, "
        "end and segments. It is also written before segments are removed and before "
        "DeleteRecords is answered. 0: it is never written, nor at a stop. Existing "
        "objects stay as they are: readers list what was copied since, and still see "
        "records that DeleteRecords has removed since.",
        source="Varve",
        dynamic=True,
    )
    tier_verify_bytes_per_second: int | None = config_key(
        "tier.verify.bytes.per.second",
        size(0, bits=64),
        default=None,
        text="How fast remote segments are read again and compared with their checksums, one "
        "after the other and for ever; in a cluster by one broker for all. 0: not at all. "
        "Unset: 4 MiB a second (some 10 TiB a month) where objects lie in a directory or in S3's "
        "class STANDARD, else not at all, since reading is charged there; "
        "`docs/s3-servers.md` says what it costs.",
        source="Varve",
        dynamic=True,
    )
    tier_stalled_copy_ms: int = config_key(
        "tier.stalled.copy.ms",
        milliseconds(1),
        default=60_000,
        text="Time without progress after which a copy counts as stalled in the metrics.",
        source="Varve",
        dynamic=True,
    )
    tier_describe_log_dirs_remote: bool = config_key(
        "tier.describe.log.dirs.remote",
        Boolean(),
        default=False,
        text="Let DescribeLogDirs show the size in remote storage as one more directory, "
        "`remote://...`. Off, because some tools take every row for a disk.",
        source="Varve",
        dynamic=True,
    )
