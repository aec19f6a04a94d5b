"""Replication between brokers."""

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import LONG_MAX, Boolean, Choice, Integer

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ReplicationSettings(Settings):
    """Followers, in-sync replicas, high watermarks."""

    replica_high_watermark_checkpoint_interval_ms: int = config_key(
        "replica.high.watermark.checkpoint.interval.ms",
        milliseconds(),
        default=5000,
        text="How often `replication-offset-checkpoint`, the high watermarks, is written.",
        difference="At least every five seconds.",
    )
    replica_lag_time_max_ms: int = config_key(
        "replica.lag.time.max.ms",
        milliseconds(),
        default=30_000,
        text="A follower that has not caught up for this long leaves the in-sync replicas.",
        difference="No effect on a single node.",
    )
    replica_silence_max_ms: int = config_key(
        "replica.silence.max.ms",
        milliseconds(),
        default=5000,
        text="A follower for which records wait, and which has not fetched for this long, leaves "
        "the in-sync replicas, too, unless fewer than `min.insync.replicas` would be left: it may "
        "be cut off from its leader alone.",
        source="Varve",
        difference="No effect on a single node.",
    )
    replica_fetch_min_bytes: int = config_key(
        "replica.fetch.min.bytes",
        size(),
        default=1,
        text="Bytes a follower waits for.",
        difference="No effect on a single node.",
    )
    replica_fetch_max_bytes: int = config_key(
        "replica.fetch.max.bytes",
        size(0),
        default=1_048_576,
        text="Most bytes a follower asks of one partition at a time.",
        difference="No effect on a single node.",
    )
    replica_fetch_response_max_bytes: int = config_key(
        "replica.fetch.response.max.bytes",
        size(0),
        default=10_485_760,
        text="Most bytes a follower asks for at a time.",
        difference="No effect on a single node.",
    )
    replica_fetch_wait_max_ms: int = config_key(
        "replica.fetch.wait.max.ms",
        milliseconds(bits=32),
        default=500,
        text="How long a follower's request may wait for data.",
        difference="No effect on a single node.",
    )
    replica_fetch_backoff_ms: int = config_key(
        "replica.fetch.backoff.ms",
        milliseconds(0, bits=32),
        default=1000,
        text="How long a follower waits after a failed fetch.",
        difference="No effect on a single node.",
    )
    replica_socket_timeout_ms: int = config_key(
        "replica.socket.timeout.ms",
        milliseconds(bits=32),
        default=30_000,
        text="How long a follower waits for an answer.",
        difference="No effect on a single node.",
    )
    replica_socket_receive_buffer_bytes: int = config_key(
        "replica.socket.receive.buffer.bytes",
        size(),
        default=65_536,
        text="SO_RCVBUF of a follower's connection.",
        difference="No effect on a single node. Kafka's default leaves the size to the system.",
    )
    num_replica_fetchers: int = config_key(
        "num.replica.fetchers",
        count(1, "fetchers"),
        default=1,
        text="Fetchers of a follower for every leader.",
        difference="No effect on a single node.",
        dynamic=True,
    )
    replica_selector_class: str | None = config_key(
        "replica.selector.class",
        Choice(("", RACK_AWARE_SELECTOR)),
        default=None,
        text="Where consumers with `client.rack` read: unset or empty, from leaders; else leaders "
        "send them to the follower in their rack that has most of what is in sync.",
        difference="No other class than these. No effect on a single node.",
        source="Kafka, KIP-392",
    )
    num_replica_alter_log_dirs_threads: int | None = config_key(
        "num.replica.alter.log.dirs.threads",
        count(unit="threads"),
        default=None,
        text="Replicas that move between directories at the same time. Unset: one for every "
        "directory.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = config_key(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        Integer("bytes per second", 0, bits=64),
        default=LONG_MAX,
        text="Bytes that all moves between directories together copy in a second, at most.",
        source="Kafka, KIP-113",
        dynamic=True,
        internal=True,
    )
    leader_replication_throttled_rate: int = config_key(
        "leader.replication.throttled.rate",
        Integer("bytes per second", 0, bits=64),
        default=LONG_MAX,
        text="Bytes that this broker sends in a second to followers that are out of sync, of the "
        "replicas that `leader.replication.throttled.replicas` of their topics names, at most.",
        source="Kafka, KIP-73",
        difference="No effect on a single node.",
        dynamic=True,
        internal=True,
    )
    follower_replication_throttled_rate: int = config_key(
        "follower.replication.throttled.rate",
        Integer("bytes per second", 0, bits=64),
        default=LONG_MAX,
        text="Bytes that this broker fetches in a second for replicas that are out of sync, of "
        "those that `follower.replication.throttled.replicas` of their topics names, at most.",
        source="Kafka, KIP-73",
        difference="No effect on a single node.",
        dynamic=True,
        internal=True,
    )
    replication_quota_window_num: int = config_key(
        "replication.quota.window.num",
        count(1, "windows"),
        default=11,
        text="Over how many windows the rates of replication are averaged.",
        difference="No effect on a single node.",
    )
    replication_quota_window_size_seconds: int = config_key(
        "replication.quota.window.size.seconds",
        count(1, "seconds"),
        default=1,
        text="How long such a window is.",
        difference="No effect on a single node.",
    )
    auto_leader_rebalance_enable: bool = config_key(
        "auto.leader.rebalance.enable",
        Boolean(),
        default=True,
        text="Move leadership back to preferred replicas.",
        difference="No effect on a single node.",
    )
    leader_imbalance_check_interval_seconds: int = config_key(
        "leader.imbalance.check.interval.seconds",
        count(1, "seconds", bits=64),
        default=300,
        text="How often the controller checks whether partitions are led by their "
        "preferred replicas.",
        difference="No effect on a single node.",
    )
