"""Counters and snapshots of the group coordinator, read at scrape time."""

from typing import NamedTuple

from broker.coordinator.stats import LoadStats


class GroupStats(LoadStats):
    """Counters since the start; plain integers that the working code adds to."""

    __slots__ = (
        "completed_rebalances",
        "consumer_group_rebalances",
        "expired_members",
        "offset_commits",
        "offset_deletions",
        "offset_expirations",
        "share_group_rebalances",
        "started_rebalances",
    )

    def __init__(self) -> None:
        super().__init__()
        self.completed_rebalances = 0
        self.started_rebalances = 0
        self.consumer_group_rebalances = 0
        self.share_group_rebalances = 0
        self.expired_members = 0
        self.offset_commits = 0
        self.offset_deletions = 0
        self.offset_expirations = 0


class GroupSnapshot(NamedTuple):
    """A snapshot of one group."""

    group_id: str
    state: str
    protocol_type: str
    generation: int
    members: int
    committed_offsets: int


class CommittedOffset(NamedTuple):
    """A snapshot of one committed offset; lag is the partition's end minus `offset`."""

    group_id: str
    topic: str
    partition: int
    offset: int
