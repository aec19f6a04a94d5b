"""What a simulated cluster and its load look like, as a seed draws it."""

from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.simulation.clients.keys import SETTINGS as KEY_SETTINGS
from tests.simulation.clients.leavers import LOOK_MS
from tests.simulation.clients.losses import CONFIGS as LOSSES
from tests.simulation.remote.bucket import WAY_S

FLUSHES: Final = 0.2
"""So many runs sync each batch before it is acknowledged."""

TRIMMED: Final = 0.4
"""In so many of the runs records are deleted; with a bucket, of those in which some expire."""

LIVES: Final = 0.4
"""In so many of the runs a topic is deleted and made again."""

SHARERS: Final = 0.4
"""In so many of the runs in which nothing goes there is a share group."""

LEAVERS: Final = 0.5
"""In so many of the runs with transactions some are left open."""

KEYS: Final = 0.4
"""In so many of the runs without a bucket there is a compacted topic."""

LOSSY: Final = 0.4
"""In so many of the runs without a bucket there is a topic that may lose records."""

LOSSY_TIERED: Final = 0.3
"""In so many of those with one; it is copied there, too."""

TWO_DIRECTORIES: Final = 0.4
"""In so many of the runs brokers have two log directories."""


@dataclass(frozen=True)
class Shape:
    """What a cluster and its load look like.

    Attributes:
        has_quiet_times: Faults come in episodes, and clients do little between them.
        is_tiered: The topic is copied to a bucket, and leaves the disks soon.
        retention_ms: How long it keeps a record; -1: for ever.
        is_trimmed: A client deletes old records.
        bucket_s: How long a request to the bucket takes at most, and its answer.
        has_lives: Another topic is deleted and made again, all along.
        leavers: Transactional ids whose producers leave transactions open.
        sharers: Members of a share group.
        has_keys: A compacted topic is written and read, too.
        directories: Log directories of each broker.
        losses: Settings of a topic that may lose records, written and read, too; empty: none.
    """

    brokers: int = 3
    replicas: int = 3
    min_in_sync: int = 2
    partitions: int = 2
    pause_s: float = 0.5
    transactional: int = 1
    members: int = 2
    has_quiet_times: bool = False
    is_tiered: bool = False
    retention_ms: int = -1
    is_trimmed: bool = False
    bucket_s: float = WAY_S
    has_lives: bool = False
    sharers: int = 0
    leavers: int = 0
    has_keys: bool = False
    directories: int = 1
    losses: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)


def draw_shape(seed: int, *, quiet: bool = False, tiered: bool = False) -> Shape:
    """The shape of a seed: settings that bring faults of other kinds to the surface."""
    random = Random(f"shape {seed}")
    session_ms, heartbeat_ms = random.choice(((3_000, 500), (3_000, 800), (9_000, 2_000)))
    settings: dict[str, object] = {
        "broker_session_timeout_ms": session_ms,
        "broker_heartbeat_interval_ms": heartbeat_ms,
        "replica_lag_time_max_ms": random.choice((1_000, 4_000, 30_000)),
        "replica_fetch_wait_max_ms": random.choice((100, 500)),
    }
    if random.random() < FLUSHES:
        settings["log_flush_interval_messages"] = 1
    retention_ms, bucket_s = -1, WAY_S
    is_trimmed = not tiered and Random(f"trimmed {seed}").random() < TRIMMED
    if tiered:
        of_tier = Random(f"tier {seed}")
        retention_ms = of_tier.choice((-1, 15_000, 40_000))
        is_trimmed = retention_ms > 0 and of_tier.random() < TRIMMED
        settings |= draw_tier(of_tier)
        # What a follower has not heard is committed once it is out of sync.
        settings["replica_lag_time_max_ms"] = of_tier.choice((1_000, 4_000))
        # Slow ones have a copy under way at most times, also when a leader dies.
        bucket_s = of_tier.choice((WAY_S, WAY_S, 0.3, 1.0))
    brokers = random.choice((3, 3, 3, 4))
    partitions = random.randint(1, 3)
    pause_s = random.choice((1.0, 2.0, 4.0) if quiet else (0.3, 1.0, 3.0, 3.0))
    # What expires or is deleted is not looked for by those who count all they have written.
    transactional = random.randint(0, 2) if retention_ms < 0 else 0
    members = random.randint(0, 3) if retention_ms < 0 else 0
    if is_trimmed:
        transactional = 0
    leavers = 0
    of_leavers = Random(f"leavers {seed}")
    if transactional and of_leavers.random() < LEAVERS:
        leavers = of_leavers.randint(1, 2)
        settings["transaction_abort_timed_out_transaction_cleanup_interval_ms"] = LOOK_MS
    has_keys = not tiered and Random(f"keys {seed}").random() < KEYS
    if has_keys:
        settings |= KEY_SETTINGS
    of_sharers = Random(f"sharers {seed}")
    sharers = 0
    if retention_ms < 0 and not is_trimmed and of_sharers.random() < SHARERS:
        sharers = of_sharers.randint(1, 3)
    return Shape(
        brokers=brokers,
        partitions=partitions,
        pause_s=pause_s,
        transactional=transactional,
        members=members,
        has_quiet_times=quiet,
        is_tiered=tiered,
        retention_ms=retention_ms,
        is_trimmed=is_trimmed,
        bucket_s=bucket_s,
        has_lives=Random(f"lives {seed}").random() < LIVES,
        sharers=sharers,
        leavers=leavers,
        has_keys=has_keys,
        losses=draw_losses(seed, tiered=tiered),
        directories=2 if Random(f"directories {seed}").random() < TWO_DIRECTORIES else 1,
        settings=settings,
    )


def draw_losses(seed: int, *, tiered: bool) -> dict[str, object]:
    """Settings of a topic that may lose records; empty: there is none."""
    random = Random(f"losses {seed}")
    return random.choice(LOSSES) if random.random() < (LOSSY_TIERED if tiered else LOSSY) else {}


def draw_tier(random: Random) -> dict[str, object]:
    """Settings of remote storage: all is small and often, so that a run sees much of it."""
    return {
        "remote_log_storage_system_enable": True,
        "rsm_config_storage_root": "/bucket",
        "log_segment_bytes": random.choice((500, 2_000, 8_000)),
        "log_retention_check_interval_ms": 1_000,
        "remote_log_manager_task_interval_ms": random.choice((300, 1_000, 3_000)),
        "rlmm_config_remote_log_metadata_topic_num_partitions": random.choice((1, 2)),
        "tier_gc_interval_ms": 5_000,
        "tier_gc_grace_ms": random.choice((2_000, 30_000)),
        "tier_history_interval_ms": random.choice((0, 3_000)),
        "tier_metadata_snapshots": random.choice(("local", "bucket")),
        "tier_verify_bytes_per_second": 0,
    }
