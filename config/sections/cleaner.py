"""Compaction: how much of it, how often, with how much memory."""

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import DOUBLE_MAX, LONG_MAX, Boolean, Double


class CleanerSettings(Settings):
    """The log cleaner."""

    log_cleaner_enable: bool = config_key(
        "log.cleaner.enable",
        Boolean(),
        default=True,
        text="Run the log cleaner. Without it compacted topics, `__consumer_offsets` "
        "among them, only grow.",
    )
    log_cleaner_threads: int = config_key(
        "log.cleaner.threads",
        count(0, "threads"),
        default=1,
        text="Logs that are compacted at the same time, each by a process of its own, "
        "which ends after a minute without work.",
        dynamic=True,
    )
    log_cleaner_io_max_bytes_per_second: float = config_key(
        "log.cleaner.io.max.bytes.per.second",
        Double("bytes per second"),
        default=DOUBLE_MAX,
        text="Most bytes per second that the log cleaner reads and writes, all threads together.",
        dynamic=True,
    )
    log_cleaner_dedupe_buffer_size: int = config_key(
        "log.cleaner.dedupe.buffer.size",
        size(bits=64),
        default=134_217_728,
        text="Memory for the offset maps of all cleaner threads, which decides how many "
        "different keys one pass can deduplicate.",
        dynamic=True,
    )
    log_cleaner_io_buffer_size: int = config_key(
        "log.cleaner.io.buffer.size",
        size(0),
        default=524_288,
        text="Memory for the read and write buffers of all cleaner threads.",
        dynamic=True,
    )
    log_cleaner_io_buffer_load_factor: float = config_key(
        "log.cleaner.io.buffer.load.factor",
        Double("share of the slots"),
        default=0.9,
        text="Load factor of the cleaner's offset maps: how full one may become.",
        dynamic=True,
    )
    log_cleaner_backoff_ms: int = config_key(
        "log.cleaner.backoff.ms",
        milliseconds(0),
        default=15_000,
        text="How long the log cleaner sleeps when there are no logs to clean.",
        dynamic=True,
    )
    log_cleaner_min_cleanable_ratio: float = config_key(
        "log.cleaner.min.cleanable.ratio",
        Double("share of the log's bytes", 0, 1),
        default=0.5,
        text="Default of the topic setting `min.cleanable.dirty.ratio`.",
        dynamic=True,
    )
    log_cleaner_delete_retention_ms: int = config_key(
        "log.cleaner.delete.retention.ms",
        milliseconds(0),
        default=86_400_000,
        text="Default of the topic setting `delete.retention.ms`.",
        dynamic=True,
    )
    log_cleaner_min_compaction_lag_ms: int = config_key(
        "log.cleaner.min.compaction.lag.ms",
        milliseconds(0),
        default=0,
        text="Default of the topic setting `min.compaction.lag.ms`.",
        source="KIP-58",
        dynamic=True,
    )
    log_cleaner_max_compaction_lag_ms: int = config_key(
        "log.cleaner.max.compaction.lag.ms",
        milliseconds(1),
        default=LONG_MAX,
        text="Default of the topic setting `max.compaction.lag.ms`.",
        source="KIP-354",
        dynamic=True,
    )
