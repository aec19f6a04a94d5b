"""Figures of the group coordinator, read at scrape time."""

from typing import NamedTuple


class GroupStats:
    """Counters since the start; plain integers that the working code adds to."""

    __slots__ = (
        "completed_rebalances",
        "consumer_group_rebalances",
        "expired_members",
        "load_failures",
        "loaded_partitions",
        "loaded_records",
        "loading_ms",
        "offset_commits",
        "offset_deletions",
        "offset_expirations",
        "share_group_rebalances",
        "skipped_records",
        "started_rebalances",
    )

    def __init__(self) -> None:
        self.completed_rebalances = 0
        self.started_rebalances = 0
        self.consumer_group_rebalances = 0
        self.share_group_rebalances = 0
        self.expired_members = 0
        self.offset_commits = 0
        self.offset_deletions = 0
        self.offset_expirations = 0
        self.loaded_partitions = 0
        self.loaded_records = 0
        self.loading_ms = 0.0
        self.load_failures = 0
        self.skipped_records = 0


class GroupSnapshot(NamedTuple):
    """One group as it stands."""

    group_id: str
    state: str
    protocol_type: str
    generation: int
    members: int
    committed_offsets: int


class CommittedOffset(NamedTuple):
    """One committed offset as it stands; lag is the partition's end minus `offset`."""

    group_id: str
    topic: str
    partition: int
    offset: int
