"""Share groups (KIP-932): membership."""

from config.definition import Settings, config_key, milliseconds
from config.kinds import Integer, WordList


class ShareGroupSettings(Settings):
    """Membership of share groups."""

    group_share_session_timeout_ms: int = config_key(
        "group.share.session.timeout.ms",
        milliseconds(1, bits=32),
        default=45_000,
        text="A member of a share group that is silent for this long is removed.",
        source="KIP-932",
    )
    group_share_min_session_timeout_ms: int = config_key(
        "group.share.min.session.timeout.ms",
        milliseconds(1, bits=32),
        default=45_000,
        text="Shortest `share.session.timeout.ms` that may be set on a group.",
        source="KIP-932",
    )
    group_share_max_session_timeout_ms: int = config_key(
        "group.share.max.session.timeout.ms",
        milliseconds(1, bits=32),
        default=60_000,
        text="Longest `share.session.timeout.ms` that may be set on a group.",
        source="KIP-932",
    )
    group_share_heartbeat_interval_ms: int = config_key(
        "group.share.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=5000,
        text="Heartbeat interval sent to members of share groups.",
        source="KIP-932",
    )
    group_share_min_heartbeat_interval_ms: int = config_key(
        "group.share.min.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=5000,
        text="Shortest `share.heartbeat.interval.ms` that may be set on a group.",
        source="KIP-932",
    )
    group_share_max_heartbeat_interval_ms: int = config_key(
        "group.share.max.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=15_000,
        text="Longest `share.heartbeat.interval.ms` that may be set on a group.",
        source="KIP-932",
    )
    group_share_max_size: int = config_key(
        "group.share.max.size",
        Integer("members", 1, 1000),
        default=200,
        text="Members of one share group; a further one sees GROUP_MAX_SIZE_REACHED.",
        source="KIP-932",
    )
    group_share_assignors: tuple[str, ...] = config_key(
        "group.share.assignors",
        WordList(("simple",), may_be_empty=False),
        default=("simple",),
        text="The assignor of share groups.",
        source="KIP-932",
        difference="Classes of one's own cannot be loaded.",
    )
    group_share_initialize_retry_interval_ms: int = config_key(
        "group.share.initialize.retry.interval.ms",
        milliseconds(1, bits=32),
        default=30_000,
        text="Delay after which initialization of a group's share state is retried; at "
        "least `offsets.commit.timeout.ms`.",
        source="KIP-932",
    )
