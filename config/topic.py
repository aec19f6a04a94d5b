"""Settings of a topic: Kafka's TopicConfig keys, and ours.

A topic's value is the topic's own override, else the broker's synonym (`log.segment.bytes` for
`segment.bytes`), else the default.

Source: Kafka 4.2, LogConfig.java, TopicConfig.java, ServerTopicConfigSynonyms.java.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from config.compound_kinds import ThrottledReplicas
from config.definition import (
    ConfigKey,
    Synonym,
    config_key,
    count,
    milliseconds,
    size,
)
from config.errors import InvalidConfigError
from config.kinds import (
    LONG_MAX,
    Boolean,
    Choice,
    Double,
    Integer,
    WordList,
)
from config.sections.tiered_topic import TieredTopicSettings
from config.topic_rules import check_combinations

if TYPE_CHECKING:
    from config.broker import BrokerConfig

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
HOUR_MS = 60 * 60 * 1000
MINUTE_MS = 60 * 1000

CompressionTypeName = Literal["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]
TimestampTypeName = Literal["CreateTime", "LogAppendTime"]


class TopicConfig(TieredTopicSettings):
    """All settings of one topic, resolved; `TopicConfig()` is all defaults."""

    cleanup_policy: tuple[str, ...] = config_key(
        "cleanup.policy",
        WordList(("compact", "delete")),
        default=("delete",),
        text="What becomes of old segments: `delete` drops them by time and size, `compact` keeps "
        "the last record of every key, both together do both. Empty keeps everything.",
        source="Kafka, KIP-71",
        synonyms=("log.cleanup.policy",),
        dynamic=True,
    )
    compression_gzip_level: int = config_key(
        "compression.gzip.level",
        Integer("level", 1, 9, also=-1, special=((-1, "the library's default"),)),
        default=-1,
        text="Level of gzip where the broker compresses batches itself.",
        source="KIP-390",
        synonyms=("compression.gzip.level",),
        dynamic=True,
    )
    compression_lz4_level: int = config_key(
        "compression.lz4.level",
        Integer("level", 1, 17),
        default=9,
        text="Level of lz4 where the broker compresses batches itself.",
        source="KIP-390",
        synonyms=("compression.lz4.level",),
        dynamic=True,
    )
    compression_type: CompressionTypeName = config_key(
        "compression.type",
        Choice(COMPRESSION_TYPES),
        default="producer",
        text="Codec of stored batches. `producer` keeps what arrived and costs nothing; any other "
        "value makes the broker compress again what came in another codec.",
        synonyms=("compression.type",),
        dynamic=True,
    )
    compression_zstd_level: int = config_key(
        "compression.zstd.level",
        Integer("level", -131072, 22),
        default=3,
        text="Level of zstd where the broker compresses batches itself.",
        source="KIP-390",
        synonyms=("compression.zstd.level",),
        dynamic=True,
    )
    delete_retention_ms: int = config_key(
        "delete.retention.ms",
        milliseconds(0),
        default=86_400_000,
        text="How long a tombstone and a transaction marker outlive the compaction that could drop "
        "them. A reader that needs longer from offset 0 to the end may miss deletions.",
        source="Kafka, KIP-534",
        synonyms=("log.cleaner.delete.retention.ms",),
        dynamic=True,
    )
    file_delete_delay_ms: int = config_key(
        "file.delete.delay.ms",
        milliseconds(0),
        default=60_000,
        text="How long a file that left the log stays on disk under the suffix `.deleted`.",
        synonyms=("log.segment.delete.delay.ms",),
        dynamic=True,
    )
    flush_messages: int = config_key(
        "flush.messages",
        count(1, "records", bits=64),
        default=LONG_MAX,
        text="Sync the log to disk once this many records wait for it. 1 means that acknowledged "
        "is on disk: Produce is answered after the sync, and those that wait together share one.",
        synonyms=("log.flush.interval.messages",),
        dynamic=True,
    )
    flush_ms: int = config_key(
        "flush.ms",
        milliseconds(0),
        default=LONG_MAX,
        text="Sync the log to disk at the latest this long after a write.",
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        dynamic=True,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = config_key(
        "follower.replication.throttled.replicas",
        ThrottledReplicas(),
        default=(),
        text="Replicas whose fetching counts against the follower's replication quota.",
        source="KIP-73",
        difference="No effect on a single node.",
        dynamic=True,
    )
    index_interval_bytes: int = config_key(
        "index.interval.bytes",
        size(0),
        default=4096,
        text="Log bytes between two entries of the sparse offset and time indexes. Smaller finds "
        "an offset with less scanning, at the price of larger indexes.",
        synonyms=("log.index.interval.bytes",),
        dynamic=True,
    )
    internal_segment_bytes: int | None = config_key(
        "internal.segment.bytes",
        size(1),
        default=None,
        text="For tests: a segment size below the lower bound of `segment.bytes`.",
        internal=True,
        dynamic=True,
    )
    leader_replication_throttled_replicas: tuple[str, ...] = config_key(
        "leader.replication.throttled.replicas",
        ThrottledReplicas(),
        default=(),
        text="Replicas that count against the leader's replication quota when they are served.",
        source="KIP-73",
        difference="No effect on a single node.",
        dynamic=True,
    )
    max_compaction_lag_ms: int = config_key(
        "max.compaction.lag.ms",
        milliseconds(1),
        default=LONG_MAX,
        text="Longest time that a record stays ineligible for compaction, however small "
        "the dirty ratio of its log is.",
        source="KIP-354",
        synonyms=("log.cleaner.max.compaction.lag.ms",),
        dynamic=True,
    )
    max_message_bytes: int = config_key(
        "max.message.bytes",
        size(0),
        default=1_048_588,
        text="Largest record batch accepted, compressed and with its header. Above it the producer "
        "sees MESSAGE_TOO_LARGE.",
        synonyms=("message.max.bytes",),
        dynamic=True,
    )
    message_timestamp_after_max_ms: int = config_key(
        "message.timestamp.after.max.ms",
        milliseconds(0),
        default=3_600_000,
        text="How far a record's own time may lie ahead of the broker's clock. Used with "
        "CreateTime; beyond it the producer sees INVALID_TIMESTAMP.",
        source="KIP-937",
        synonyms=("log.message.timestamp.after.max.ms",),
        dynamic=True,
    )
    message_timestamp_before_max_ms: int = config_key(
        "message.timestamp.before.max.ms",
        milliseconds(0),
        default=LONG_MAX,
        text="How far a record's own time may lie behind the broker's clock. Used with CreateTime; "
        "beyond it the producer sees INVALID_TIMESTAMP.",
        source="KIP-937",
        synonyms=("log.message.timestamp.before.max.ms",),
        dynamic=True,
    )
    message_timestamp_type: TimestampTypeName = config_key(
        "message.timestamp.type",
        Choice(("CreateTime", "LogAppendTime")),
        default="CreateTime",
        text="Timestamp that records get: CreateTime is the producer's, LogAppendTime the "
        "broker's at the append.",
        source="KIP-32",
        synonyms=("log.message.timestamp.type",),
        dynamic=True,
    )
    min_cleanable_dirty_ratio: float = config_key(
        "min.cleanable.dirty.ratio",
        Double("share of the log's bytes", 0, 1),
        default=0.5,
        text="Compact a log once this share of it has not been compacted yet. Lower keeps the log "
        "tighter and rewrites more.",
        synonyms=("log.cleaner.min.cleanable.ratio",),
        dynamic=True,
    )
    min_compaction_lag_ms: int = config_key(
        "min.compaction.lag.ms",
        milliseconds(0),
        default=0,
        text="Shortest time that a record stays uncompacted, so that readers near the end "
        "see every version of a key.",
        source="KIP-58",
        synonyms=("log.cleaner.min.compaction.lag.ms",),
        dynamic=True,
    )
    min_insync_replicas: int = config_key(
        "min.insync.replicas",
        count(1, "replicas"),
        default=1,
        text="With acks=all a write needs this many replicas in sync; below it the producer sees "
        "NOT_ENOUGH_REPLICAS.",
        synonyms=("min.insync.replicas",),
        difference="No effect on a single node.",
        dynamic=True,
    )
    preallocate: bool = config_key(
        "preallocate",
        Boolean(),
        default=False,
        text="Reserve the whole segment on disk when it is created.",
        synonyms=("log.preallocate",),
        dynamic=True,
    )
    record_validation: Literal["batch", "full"] = config_key(
        "record.validation",
        Choice(("batch", "full")),
        default="batch",
        text="How closely a produced batch is validated. `batch` checks the checksum, "
        "sizes, counts, timestamps and idempotence from the header; `full` also "
        "decompresses and checks every record, at a cost per record.",
        source="Varve",
        synonyms=("record.validation",),
        dynamic=True,
    )
    retention_bytes: int = config_key(
        "retention.bytes",
        size(bits=64, special=((-1, "no limit"),)),
        default=-1,
        text="Drop the oldest segments of a partition beyond this size. Needs `delete` in "
        "`cleanup.policy`.",
        synonyms=("log.retention.bytes",),
        dynamic=True,
    )
    retention_ms: int = config_key(
        "retention.ms",
        milliseconds(-1, special=((-1, "no limit"),)),
        default=604_800_000,
        text="Drop segments whose newest record is older. Needs `delete` in `cleanup.policy`.",
        synonyms=(
            "log.retention.ms",
            Synonym("log.retention.minutes", MINUTE_MS),
            Synonym("log.retention.hours", HOUR_MS),
        ),
        dynamic=True,
    )
    segment_bytes: int = config_key(
        "segment.bytes",
        size(1_048_576),
        default=1_073_741_824,
        text="Size at which a segment is closed and a new one begins. Retention and compaction "
        "work on whole closed segments.",
        synonyms=("log.segment.bytes",),
        dynamic=True,
    )
    segment_index_bytes: int = config_key(
        "segment.index.bytes",
        size(4),
        default=10_485_760,
        text="Largest offset or time index of a segment; a full one closes the segment.",
        synonyms=("log.index.size.max.bytes",),
        dynamic=True,
    )
    segment_jitter_ms: int = config_key(
        "segment.jitter.ms",
        milliseconds(0),
        default=0,
        text="Close segments up to this much earlier, at random, so that they do not all roll "
        "in the same moment.",
        synonyms=("log.roll.jitter.ms", Synonym("log.roll.jitter.hours", HOUR_MS)),
        dynamic=True,
    )
    segment_ms: int = config_key(
        "segment.ms",
        milliseconds(1),
        default=604_800_000,
        text="Age at which a segment is closed even when it is not full.",
        synonyms=("log.roll.ms", Synonym("log.roll.hours", HOUR_MS)),
        dynamic=True,
    )
    unclean_leader_election_enable: bool = config_key(
        "unclean.leader.election.enable",
        Boolean(),
        default=False,
        text="Let a replica that was not in sync lead when no other is left: available again, at "
        "the price of acknowledged records.",
        synonyms=("unclean.leader.election.enable",),
        difference="No effect on a single node.",
        dynamic=True,
    )
    unclean_recovery_strategy: Literal["None", "Balanced", "Aggressive"] = config_key(
        "unclean.recovery.strategy",
        Choice(("None", "Balanced", "Aggressive")),
        default="Balanced",
        text="What is done when no replica that was in sync or eligible can lead. `Balanced` waits "
        "for all that were, and elects the one with the longest log; `Aggressive` elects the "
        "longest of the logs that are found within 5 seconds; `None` waits for an administrator.",
        source="Varve",
        synonyms=("unclean.recovery.strategy",),
        difference="No effect on a single node.",
        dynamic=True,
    )

    @classmethod
    def resolve(cls, broker: "BrokerConfig", overrides: Mapping[str, str]) -> "TopicConfig":
        """Settings of a topic on `broker` with the topic's own `overrides`, by Kafka's names.

        Combinations are not checked: what has been stored was checked when it was set.

        Raises:
            InvalidConfigError: An override is unknown or refused.
        """
        values = broker_defaults(broker)
        values.update(_parse(overrides))
        smaller = values.get("internal_segment_bytes")
        if smaller is not None:
            values["segment_bytes"] = smaller
        return cls(**values)


TOPIC_KEYS: Mapping[str, ConfigKey] = TopicConfig.rows()
"""Every topic key by Kafka's name."""

_DEFAULTS: Mapping[str, object] = {row.field_name: row.default for row in TOPIC_KEYS.values()}


def validate_topic_overrides(
    overrides: Mapping[str, str],
    broker: "BrokerConfig | None" = None,
    *,
    remote_storage_system_enabled: bool | None = None,
    current: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Check topic configs of a request: names, values, combinations.

    Args:
        overrides: Texts by Kafka's names.
        broker: Whose defaults the combinations are checked against; None means all defaults.
        remote_storage_system_enabled: The broker has remote storage to copy to; None: as `broker`
            says.
        current: What is set on the topic now.

    Raises:
        InvalidConfigError: With Kafka's sentence. Client sees INVALID_CONFIG.
    """
    values = broker_defaults(broker) if broker is not None else dict(_DEFAULTS)
    values.update(_parse(overrides))
    if remote_storage_system_enabled is None:
        remote_storage_system_enabled = (
            broker is not None and broker.remote_log_storage_system_enable
        )
    check_combinations(
        values,
        remote_storage_system_enabled=remote_storage_system_enabled,
        was_tiered=is_tiered(current),
    )


def is_tiered(overrides: Mapping[str, str]) -> bool:
    """Whether a topic with these settings of its own has remote storage.

    There is no default for all topics, so its own settings are enough.
    """
    return overrides.get("remote.storage.enable", "").strip().lower() == "true"


def has_remote_history(overrides: Mapping[str, str]) -> bool:
    """Whether a topic with these settings of its own may have segments in remote storage.

    Also one whose remote storage was switched off: what it has there is being removed.
    """
    switched_off = overrides.get("remote.log.delete.on.disable", "").strip().lower() == "true"
    return switched_off or is_tiered(overrides)


def broker_defaults(broker: "BrokerConfig") -> dict[str, Any]:
    """Values of a topic without overrides, by field name."""
    return {row.field_name: broker.topic_default(row) for row in TOPIC_KEYS.values()}


def _parse(overrides: Mapping[str, str]) -> dict[str, object]:
    for name in overrides:
        if name not in TOPIC_KEYS:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
    rows = ((TOPIC_KEYS[name], text) for name, text in overrides.items())
    return {row.field_name: row.parse(text) for row, text in rows}
