"""The groups and offsets of one partition of `__consumer_offsets`."""

from collections.abc import Iterator
from typing import TypeVar

from broker.coordinator.shard_log import ShardLog
from broker.groups.state.group import Group
from broker.groups.state.offset_store import OffsetStore
from broker.groups.state.stats import GroupStats
from storage.environment.clock import Clock

GROUPS_MAX = 100_000
"""Most groups in one shard, so that a client that makes up names cannot fill memory.

With 50 partitions this is five million groups on a broker.
"""


Kind = TypeVar("Kind", bound=Group)


class TooManyGroupsError(Exception):
    """A shard holds `GROUPS_MAX` groups already. Client sees GROUP_MAX_SIZE_REACHED."""


class GroupShard:
    """Groups and offsets whose coordinator is the leader of one partition."""

    __slots__ = ("clock", "groups", "log", "offsets", "stats")

    def __init__(self, log: ShardLog, clock: Clock, stats: GroupStats) -> None:
        self.log = log
        self.clock = clock
        self.stats = stats
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()

    def group(self, group_id: str, kind: type[Kind]) -> Kind | None:
        """The group of this name if it is of this kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, kind) else None

    def groups_of(self, kind: type[Kind]) -> Iterator[Kind]:
        """All groups of one kind; none may come or go meanwhile."""
        return (group for group in self.groups.values() if isinstance(group, kind))

    def add_group(self, group: Group) -> None:
        """Add a new group, which may replace an empty one of the other kind.

        Raises:
            TooManyGroupsError: No further group fits.
        """
        old = self.groups.get(group.group_id)
        if old is None and len(self.groups) >= GROUPS_MAX:
            raise TooManyGroupsError(group.group_id)
        if old is not None:
            old.die(self.clock.now_ms())
        self.groups[group.group_id] = group

    def add_loaded_group(self, group: Group) -> None:
        """Add a group of the log; it counts towards the limit, but is never refused."""
        self.groups[group.group_id] = group

    def remove_group(self, group: Group) -> None:
        """Remove a group that has been deleted from the log."""
        group.die(self.clock.now_ms())
        self.groups.pop(group.group_id, None)
