"""Consumer groups and their committed offsets."""

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import INT_MAX, Choice, WordList

_PROTOCOLS = ("consumer", "classic", "share", "streams")


class GroupSettings(Settings):
    """The group coordinator and `__consumer_offsets`."""

    group_min_session_timeout_ms: int = config_key(
        "group.min.session.timeout.ms",
        milliseconds(bits=32),
        default=6000,
        text="Shortest session timeout a member may ask for; a shorter one is answered with "
        "INVALID_SESSION_TIMEOUT.",
    )
    group_max_session_timeout_ms: int = config_key(
        "group.max.session.timeout.ms",
        milliseconds(bits=32),
        default=1_800_000,
        text="Longest session timeout a member may ask for.",
    )
    group_initial_rebalance_delay_ms: int = config_key(
        "group.initial.rebalance.delay.ms",
        milliseconds(bits=32),
        default=3000,
        text="How long an empty group waits for more members before its first rebalance; 0 is "
        "handy in development.",
        source="KIP-134",
        difference="At least half of it is waited, then until no member has joined for a fifth "
        "of it. Kafka waits for all of it, and again after each join.",
    )
    group_max_size: int = config_key(
        "group.max.size",
        count(1, "members"),
        default=INT_MAX,
        text="Members of one group; a further one sees GROUP_MAX_SIZE_REACHED.",
        source="KIP-389",
    )
    group_coordinator_threads: int = config_key(
        "group.coordinator.threads",
        count(1, "threads"),
        default=4,
        text="Threads of the group coordinator.",
        source="KIP-848",
        difference="No effect: the coordinator works on the event loop.",
    )
    group_coordinator_append_linger_ms: int = config_key(
        "group.coordinator.append.linger.ms",
        milliseconds(-1, bits=32, special=((-1, "adaptive"),)),
        default=-1,
        text="How long the coordinator gathers records before it appends them. Adaptive: those of "
        "requests that had arrived already.",
        source="KIP-848",
        difference="Only offset commits wait; what else is written comes at once, behind them.",
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = config_key(
        "group.coordinator.rebalance.protocols",
        WordList(_PROTOCOLS, may_be_empty=False),
        default=("classic", "consumer", "streams"),
        text="Protocols that groups may use; without `consumer` KIP-848 is not served. Share "
        "groups are switched on by the feature `share.version`.",
        source="KIP-848",
        difference="Streams groups are not served, whether they are named or not.",
    )
    group_consumer_session_timeout_ms: int = config_key(
        "group.consumer.session.timeout.ms",
        milliseconds(1, bits=32),
        default=45_000,
        text="A member of a consumer group (KIP-848) that is silent for this long is removed.",
        source="KIP-848",
    )
    group_consumer_min_session_timeout_ms: int = config_key(
        "group.consumer.min.session.timeout.ms",
        milliseconds(1, bits=32),
        default=45_000,
        text="Shortest `consumer.session.timeout.ms` that may be set on a group.",
        source="KIP-848",
    )
    group_consumer_max_session_timeout_ms: int = config_key(
        "group.consumer.max.session.timeout.ms",
        milliseconds(1, bits=32),
        default=60_000,
        text="Longest `consumer.session.timeout.ms` that may be set on a group.",
        source="KIP-848",
    )
    group_consumer_heartbeat_interval_ms: int = config_key(
        "group.consumer.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=5000,
        text="Heartbeat interval sent to members of consumer groups.",
        source="KIP-848",
    )
    group_consumer_min_heartbeat_interval_ms: int = config_key(
        "group.consumer.min.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=5000,
        text="Shortest `consumer.heartbeat.interval.ms` that may be set on a group.",
        source="KIP-848",
    )
    group_consumer_max_heartbeat_interval_ms: int = config_key(
        "group.consumer.max.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=15_000,
        text="Longest `consumer.heartbeat.interval.ms` that may be set on a group.",
        source="KIP-848",
    )
    group_consumer_max_size: int = config_key(
        "group.consumer.max.size",
        count(1, "members"),
        default=INT_MAX,
        text="Members of one consumer group; a further one sees GROUP_MAX_SIZE_REACHED.",
        source="KIP-848",
    )
    group_consumer_assignors: tuple[str, ...] = config_key(
        "group.consumer.assignors",
        WordList(("uniform", "range"), may_be_empty=False),
        default=("uniform", "range"),
        text="Assignors that members may ask for; the first one serves those who ask for none.",
        source="KIP-848",
        difference="Classes of one's own cannot be loaded.",
    )
    group_consumer_assignment_interval_ms: int = config_key(
        "group.consumer.assignment.interval.ms",
        milliseconds(0, bits=32),
        default=1000,
        text="Longest delay of a new target assignment, to let further members join and "
        "to limit its cost; 0 computes one at every change.",
        source="Varve",
        difference="Kafka has it from 4.3 on. A member that joins is answered with its target "
        "assignment rather than at its next heartbeat; mostly it waits 50 ms, in a "
        "new group 200 ms.",
    )
    group_consumer_migration_policy: str = config_key(
        "group.consumer.migration.policy",
        Choice(("bidirectional", "upgrade", "downgrade", "disabled"), ignore_case=True),
        default="bidirectional",
        text="Whether a group with members may change from the classic protocol to the new one "
        "(upgrade) and back (downgrade).",
        source="KIP-848",
    )
    group_consumer_regex_refresh_interval_ms: int = config_key(
        "group.consumer.regex.refresh.interval.ms",
        milliseconds(10_000, bits=32),
        default=600_000,
        text="How often patterns of consumer groups are matched again with all topics.",
        source="KIP-848",
    )
    offset_metadata_max_bytes: int = config_key(
        "offset.metadata.max.bytes",
        size(),
        default=4096,
        text="Longest text a client may commit beside an offset; a longer one is answered with "
        "OFFSET_METADATA_TOO_LARGE.",
    )
    offsets_commit_timeout_ms: int = config_key(
        "offsets.commit.timeout.ms",
        milliseconds(1, bits=32),
        default=5000,
        text="How long a commit waits for its append before the client sees REQUEST_TIMED_OUT.",
    )
    offsets_load_buffer_size: int = config_key(
        "offsets.load.buffer.size",
        size(1),
        default=5_242_880,
        text="Bytes read at a time when a coordinator loads its groups.",
        difference="No effect: reads are sized by what the log has.",
    )
    offsets_retention_minutes: int = config_key(
        "offsets.retention.minutes",
        count(1, "minutes"),
        default=10_080,
        text="How long the offsets of an empty group, or of a topic no member reads, are kept.",
        source="KIP-211",
    )
    offsets_retention_check_interval_ms: int = config_key(
        "offsets.retention.check.interval.ms",
        milliseconds(1),
        default=600_000,
        text="How often the group coordinator removes expired offsets.",
    )
    offsets_topic_num_partitions: int = config_key(
        "offsets.topic.num.partitions",
        count(1, "partitions"),
        default=50,
        text="Partitions of `__consumer_offsets`; must not change once the topic is there.",
    )
    offsets_topic_replication_factor: int = config_key(
        "offsets.topic.replication.factor",
        count(1, "replicas", bits=16),
        default=1,
        text="Replicas of `__consumer_offsets`.",
        difference="Kafka's default is 3, which a single node cannot meet.",
    )
    offsets_topic_segment_bytes: int = config_key(
        "offsets.topic.segment.bytes",
        size(1),
        default=104_857_600,
        text="Segment size of `__consumer_offsets`; small, for it is read whole when a "
        "coordinator loads.",
    )
    offsets_topic_compression_codec: int = config_key(
        "offsets.topic.compression.codec",
        count(unit="codec number"),
        default=0,
        text="Codec of the records in `__consumer_offsets`: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 "
        "zstd.",
    )
