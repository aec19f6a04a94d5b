"""Share groups (KIP-932): delivery of records, and the coordinator that keeps their state."""

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import Integer


class ShareSettings(Settings):
    """Delivery to share groups, the share coordinator and `__share_group_state`."""

    group_share_delivery_count_limit: int = config_key(
        "group.share.delivery.count.limit",
        Integer("deliveries", 2, 10),
        default=5,
        text="Delivery attempts of a record to a share group; after the last one it is archived.",
        source="KIP-932",
    )
    group_share_partition_max_record_locks: int = config_key(
        "group.share.partition.max.record.locks",
        Integer("records", 100, 10_000),
        default=2000,
        text="Records of one share-partition that may be acquired, and not acknowledged, "
        "at the same time.",
        source="KIP-932",
    )
    group_share_record_lock_duration_ms: int = config_key(
        "group.share.record.lock.duration.ms",
        Integer("milliseconds", 1000, 3_600_000),
        default=30_000,
        text="Duration of the acquisition lock: how long a record belongs to one consumer "
        "of a share group before it is delivered to another.",
        source="KIP-932",
    )
    group_share_min_record_lock_duration_ms: int = config_key(
        "group.share.min.record.lock.duration.ms",
        Integer("milliseconds", 1000, 30_000),
        default=15_000,
        text="Shortest `share.record.lock.duration.ms` that may be set on a group.",
        source="KIP-932",
    )
    group_share_max_record_lock_duration_ms: int = config_key(
        "group.share.max.record.lock.duration.ms",
        Integer("milliseconds", 30_000, 3_600_000),
        default=60_000,
        text="Longest `share.record.lock.duration.ms` that may be set on a group.",
        source="KIP-932",
    )
    group_share_max_share_sessions: int = config_key(
        "group.share.max.share.sessions",
        count(1, "sessions"),
        default=2000,
        text="Share sessions of the broker; a further one sees SHARE_SESSION_LIMIT_REACHED.",
        source="KIP-932",
    )
    share_fetch_purgatory_purge_interval_requests: int = config_key(
        "share.fetch.purgatory.purge.interval.requests",
        count(unit="requests"),
        default=1000,
        text="How often completed share fetches leave the purgatory.",
        source="KIP-932",
        difference="No effect: they leave when as many are done as wait.",
    )
    share_coordinator_state_topic_num_partitions: int = config_key(
        "share.coordinator.state.topic.num.partitions",
        count(1, "partitions"),
        default=50,
        text="Partitions of `__share_group_state`; must not change once the topic is there.",
        source="KIP-932",
    )
    share_coordinator_state_topic_replication_factor: int = config_key(
        "share.coordinator.state.topic.replication.factor",
        count(1, "replicas", bits=16),
        default=1,
        text="Replicas of `__share_group_state`.",
        source="KIP-932",
        difference="Kafka's default is 3, which a single node cannot meet; a larger number is "
        "lowered to the number of brokers there are.",
    )
    share_coordinator_state_topic_min_isr: int = config_key(
        "share.coordinator.state.topic.min.isr",
        count(1, "replicas", bits=16),
        default=1,
        text="In-sync replicas that `__share_group_state` needs for a write.",
        source="KIP-932",
        difference="Kafka's default is 2, which a single node cannot meet.",
    )
    share_coordinator_state_topic_segment_bytes: int = config_key(
        "share.coordinator.state.topic.segment.bytes",
        size(1),
        default=104_857_600,
        text="Segment size of `__share_group_state`.",
        source="KIP-932",
    )
    share_coordinator_state_topic_compression_codec: int = config_key(
        "share.coordinator.state.topic.compression.codec",
        count(unit="codec number"),
        default=0,
        text="Codec of the records in `__share_group_state`.",
        source="KIP-932",
        difference="No effect: records of a few bytes are written as they are.",
    )
    share_coordinator_threads: int = config_key(
        "share.coordinator.threads",
        count(1, "threads"),
        default=1,
        text="Threads of the share coordinator.",
        source="KIP-932",
        difference="No effect: the coordinator works on the event loop.",
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = config_key(
        "share.coordinator.snapshot.update.records.per.snapshot",
        count(0, "records"),
        default=500,
        text="Updates of a share-partition's state between two snapshots of it.",
        source="KIP-932",
    )
    share_coordinator_write_timeout_ms: int = config_key(
        "share.coordinator.write.timeout.ms",
        milliseconds(1, bits=32),
        default=5000,
        text="How long the share coordinator waits for its records to be committed.",
        source="KIP-932",
    )
    share_coordinator_load_buffer_size: int = config_key(
        "share.coordinator.load.buffer.size",
        size(1),
        default=5_242_880,
        text="Bytes read at a time when a share coordinator loads its states.",
        source="KIP-932",
    )
    share_coordinator_append_linger_ms: int = config_key(
        "share.coordinator.append.linger.ms",
        milliseconds(-1, bits=32, special=((-1, "adaptive"),)),
        default=-1,
        text="How long the share coordinator gathers records before it appends them.",
        source="KIP-932",
        difference="No effect: records are appended as they come.",
    )
    share_coordinator_state_topic_prune_interval_ms: int = config_key(
        "share.coordinator.state.topic.prune.interval.ms",
        milliseconds(1, bits=32),
        default=300_000,
        text="How often records of `__share_group_state` that are no longer needed are pruned.",
        source="KIP-932",
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = config_key(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        milliseconds(1, bits=32),
        default=300_000,
        text="Time without a change after which a snapshot of a share-partition's state "
        "is written, so that older records can be pruned.",
        source="KIP-932",
    )
