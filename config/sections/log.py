"""The local log: where it lies, how it rolls, how long it stays, when it is synced."""

from typing import Literal

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import (
    LONG_MAX,
    Boolean,
    Choice,
    Integer,
    Text,
    WordList,
)


class LogSettings(Settings):
    """Directories, segments, retention, flushing, recovery."""

    log_dirs: tuple[str, ...] = config_key(
        "log.dirs",
        WordList(what="directories", may_be_empty=False),
        default=("./data",),
        text="Directories of the data. A new partition goes to the one with the fewest; one that "
        "fails goes offline and the others serve on.",
        difference="Kafka's default is /tmp/kafka-logs, which a restart of the machine may empty.",
    )
    log_dir: tuple[str, ...] | None = config_key(
        "log.dir",
        WordList(what="directories", may_be_empty=False),
        default=None,
        text="Older name of `log.dirs`, used when that one is not set.",
    )
    metadata_log_dir: str | None = config_key(
        "metadata.log.dir",
        Text("a directory"),
        default=None,
        text="Directory of a new node's metadata store; a start on Kafka's directories "
        "searches it, and `log.dirs`, for their `__cluster_metadata` log. Unset: the "
        "first of `log.dirs`. An existing store is used wherever among these it lies.",
        difference="Kafka keeps its metadata log there.",
    )
    zookeeper_connect: str | None = config_key(
        "zookeeper.connect",
        Text("addresses"),
        default=None,
        text="Address of ZooKeeper, where Kafka before 4.0 keeps the configs of its "
        "topics. No connection is made: a start on such directories is refused with "
        "a sentence that says so.",
        source="Kafka before 4.0",
        internal=True,
    )
    log_segment_bytes: int = config_key(
        "log.segment.bytes",
        size(1_048_576),
        default=1_073_741_824,
        text="Default of the topic setting `segment.bytes`.",
        dynamic=True,
    )
    log_roll_ms: int | None = config_key(
        "log.roll.ms",
        milliseconds(1),
        default=None,
        text="Default of the topic setting `segment.ms`. Unset: `log.roll.hours`.",
        dynamic=True,
    )
    log_roll_hours: int = config_key(
        "log.roll.hours",
        count(1, "hours"),
        default=168,
        text="Used when `log.roll.ms` is not set.",
    )
    log_roll_jitter_ms: int | None = config_key(
        "log.roll.jitter.ms",
        milliseconds(0),
        default=None,
        text="Default of the topic setting `segment.jitter.ms`. Unset: `log.roll.jitter.hours`.",
        dynamic=True,
    )
    log_roll_jitter_hours: int = config_key(
        "log.roll.jitter.hours",
        count(0, "hours"),
        default=0,
        text="Used when `log.roll.jitter.ms` is not set.",
    )
    log_retention_ms: int | None = config_key(
        "log.retention.ms",
        milliseconds(special=((-1, "no limit"),)),
        default=None,
        text="Default of the topic setting `retention.ms`. Unset: `log.retention.minutes`.",
        dynamic=True,
    )
    log_retention_minutes: int | None = config_key(
        "log.retention.minutes",
        count(unit="minutes", special=((-1, "no limit"),)),
        default=None,
        text="Used when `log.retention.ms` is not set. Unset: `log.retention.hours`.",
    )
    log_retention_hours: int = config_key(
        "log.retention.hours",
        count(unit="hours", special=((-1, "no limit"),)),
        default=168,
        text="Used when neither `log.retention.ms` nor `log.retention.minutes` is set.",
    )
    log_retention_bytes: int = config_key(
        "log.retention.bytes",
        size(bits=64, special=((-1, "no limit"),)),
        default=-1,
        text="Default of the topic setting `retention.bytes`.",
        dynamic=True,
    )
    log_retention_check_interval_ms: int = config_key(
        "log.retention.check.interval.ms",
        milliseconds(1),
        default=300_000,
        text="How often the broker checks for segments to delete by retention.",
    )
    log_cleanup_policy: tuple[str, ...] = config_key(
        "log.cleanup.policy",
        WordList(("compact", "delete")),
        default=("delete",),
        text="Default of the topic setting `cleanup.policy`.",
        dynamic=True,
    )
    log_index_size_max_bytes: int = config_key(
        "log.index.size.max.bytes",
        size(4),
        default=10_485_760,
        text="Default of the topic setting `segment.index.bytes`.",
        dynamic=True,
    )
    log_index_interval_bytes: int = config_key(
        "log.index.interval.bytes",
        size(0),
        default=4096,
        text="Default of the topic setting `index.interval.bytes`.",
        dynamic=True,
    )
    log_segment_delete_delay_ms: int = config_key(
        "log.segment.delete.delay.ms",
        milliseconds(0),
        default=60_000,
        text="Default of the topic setting `file.delete.delay.ms`.",
        dynamic=True,
    )
    log_preallocate: bool = config_key(
        "log.preallocate",
        Boolean(),
        default=False,
        text="Default of the topic setting `preallocate`.",
        dynamic=True,
    )
    log_flush_interval_messages: int = config_key(
        "log.flush.interval.messages",
        count(1, "records", bits=64),
        default=LONG_MAX,
        text="Default of the topic setting `flush.messages`. 1: acknowledged is on disk.",
        dynamic=True,
    )
    log_flush_interval_ms: int | None = config_key(
        "log.flush.interval.ms",
        milliseconds(),
        default=None,
        text="Default of the topic setting `flush.ms`. Unset: `log.flush.scheduler.interval.ms`.",
        dynamic=True,
    )
    log_flush_scheduler_interval_ms: int = config_key(
        "log.flush.scheduler.interval.ms",
        milliseconds(),
        default=LONG_MAX,
        text="How often the broker checks which logs are due to be flushed by `flush.ms`.",
        difference="Gives `flush.ms` its default; the broker checks four times a second in any "
        "case.",
    )
    log_flush_offset_checkpoint_interval_ms: int = config_key(
        "log.flush.offset.checkpoint.interval.ms",
        milliseconds(0, bits=32),
        default=60_000,
        text="How often `recovery-point-offset-checkpoint` is written. Recovery after a "
        "crash starts there.",
        difference="Written every five seconds when this is longer, so that recovery after a "
        "crash reads less.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = config_key(
        "log.flush.start.offset.checkpoint.interval.ms",
        milliseconds(0, bits=32),
        default=60_000,
        text="How often `log-start-offset-checkpoint` is written.",
    )
    log_initial_task_delay_ms: int = config_key(
        "log.initial.task.delay.ms",
        milliseconds(0),
        default=30_000,
        text="How long after the start retention, flushing and checkpoints first run.",
        source="Kafka",
    )
    log_message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = config_key(
        "log.message.timestamp.type",
        Choice(("CreateTime", "LogAppendTime")),
        default="CreateTime",
        text="Default of the topic setting `message.timestamp.type`.",
        dynamic=True,
    )
    log_message_timestamp_before_max_ms: int = config_key(
        "log.message.timestamp.before.max.ms",
        milliseconds(0),
        default=LONG_MAX,
        text="Default of the topic setting `message.timestamp.before.max.ms`.",
        dynamic=True,
    )
    log_message_timestamp_after_max_ms: int = config_key(
        "log.message.timestamp.after.max.ms",
        milliseconds(0),
        default=3_600_000,
        text="Default of the topic setting `message.timestamp.after.max.ms`.",
        dynamic=True,
    )
    log_local_retention_bytes: int = config_key(
        "log.local.retention.bytes",
        size(-2, bits=64, special=((-2, "as retention.bytes"), (-1, "no limit"))),
        default=-2,
        text="Default of the topic setting `local.retention.bytes`.",
        source="KIP-405",
        dynamic=True,
    )
    log_local_retention_ms: int = config_key(
        "log.local.retention.ms",
        milliseconds(-2, special=((-2, "as retention.ms"), (-1, "no limit"))),
        default=-2,
        text="Default of the topic setting `local.retention.ms`.",
        source="KIP-405",
        dynamic=True,
    )
    message_max_bytes: int = config_key(
        "message.max.bytes",
        size(0),
        default=1_048_588,
        text="Default of the topic setting `max.message.bytes`.",
        dynamic=True,
    )
    min_insync_replicas: int = config_key(
        "min.insync.replicas",
        count(1, "replicas"),
        default=1,
        text="Default of the topic setting `min.insync.replicas`.",
        dynamic=True,
    )
    compression_type: Literal["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"] = (
        config_key(
            "compression.type",
            Choice(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
            default="producer",
            text="Default of the topic setting `compression.type`.",
            dynamic=True,
        )
    )
    compression_gzip_level: int = config_key(
        "compression.gzip.level",
        Integer("level", 1, 9, also=-1, special=((-1, "the library's default"),)),
        default=-1,
        text="Default of the topic setting `compression.gzip.level`.",
        source="KIP-390",
        dynamic=True,
    )
    compression_lz4_level: int = config_key(
        "compression.lz4.level",
        Integer("level", 1, 17),
        default=9,
        text="Default of the topic setting `compression.lz4.level`.",
        source="KIP-390",
        dynamic=True,
    )
    compression_zstd_level: int = config_key(
        "compression.zstd.level",
        Integer("level", -131072, 22),
        default=3,
        text="Default of the topic setting `compression.zstd.level`.",
        source="KIP-390",
        dynamic=True,
    )
    record_validation: Literal["batch", "full"] = config_key(
        "record.validation",
        Choice(("batch", "full")),
        default="batch",
        text="Default of the topic setting `record.validation`.",
        source="Varve",
    )
    unclean_leader_election_enable: bool = config_key(
        "unclean.leader.election.enable",
        Boolean(),
        default=False,
        text="Default of the topic setting `unclean.leader.election.enable`.",
        dynamic=True,
    )
    unclean_recovery_strategy: Literal["None", "Balanced", "Aggressive"] = config_key(
        "unclean.recovery.strategy",
        Choice(("None", "Balanced", "Aggressive")),
        default="Balanced",
        text="Default of the topic setting `unclean.recovery.strategy`.",
        source="Varve",
        dynamic=True,
    )
    num_recovery_threads_per_data_dir: int = config_key(
        "num.recovery.threads.per.data.dir",
        count(1, "threads"),
        default=2,
        text="Logs of one directory that recover at the same time after a crash; finished ones "
        "serve meanwhile.",
        dynamic=True,
    )
    producer_id_expiration_ms: int = config_key(
        "producer.id.expiration.ms",
        milliseconds(1, bits=32),
        default=86_400_000,
        text="Time without a write to a partition after which the id of an idempotent "
        "producer expires there.",
        difference="Time is that of its records, as in Kafka; but one that has written since the "
        "last check stays.",
        source="KIP-854",
        dynamic=True,
    )
    producer_id_expiration_check_interval_ms: int = config_key(
        "producer.id.expiration.check.interval.ms",
        milliseconds(1, bits=32),
        default=600_000,
        text="How often expired producer ids are removed.",
        source="KIP-854",
    )
