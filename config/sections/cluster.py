"""Being one broker of several: the lease that says that a broker lives."""

from config.definition import Settings, config_key, milliseconds


class ClusterSettings(Settings):
    """Membership of a cluster; no effect on a single node."""

    broker_session_timeout_ms: int = config_key(
        "broker.session.timeout.ms",
        milliseconds(2_000, bits=32),
        default=3_000,
        text="How long a broker counts as living without renewing its lease in the metadata store.",
        difference="Kafka's default is 9000. Rounded up to whole seconds. No effect on a single "
        "node.",
    )
    broker_heartbeat_interval_ms: int = config_key(
        "broker.heartbeat.interval.ms",
        milliseconds(50, bits=32),
        default=500,
        text="How often a broker renews its lease.",
        difference="Kafka's default is 2000. No effect on a single node.",
    )
    broker_loop_stall_max_ms: int = config_key(
        "broker.loop.stall.max.ms",
        milliseconds(500, bits=32),
        default=4_000,
        text="How long the event loop may stand still, say in a write to a slow disk, before the "
        "broker lets its lease end and others lead its partitions.",
        source="Varve",
        difference="No effect on a single node.",
    )
