"""What the coordinator knows of one partition of `__consumer_offsets`."""

from collections.abc import Iterator

from broker.coordinator.shard_log import ShardLog
from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.offsets.store import OffsetStore
from broker.groups.share.share_group import ShareGroup
from broker.groups.state.group import Group
from broker.groups.state.stats import GroupStats
from storage.environment.clock import Clock

GROUPS_MAX = 100_000
"""Groups in one shard; more are refused, so that a stranger who makes up names cannot fill memory.

With 50 partitions this is five million groups on a broker.
"""


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

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The group of this name if it is a classic one."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def classic_groups(self) -> Iterator[ClassicGroup]:
        """All classic groups; none may come or go meanwhile."""
        return (group for group in self.groups.values() if isinstance(group, ClassicGroup))

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group of this name if it is one of KIP-848."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def consumer_groups(self) -> Iterator[ConsumerGroup]:
        """All groups of KIP-848; none may come or go meanwhile."""
        return (group for group in self.groups.values() if isinstance(group, ConsumerGroup))

    def share_group(self, group_id: str) -> ShareGroup | None:
        """The group of this name if it is one of KIP-932."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def share_groups(self) -> Iterator[ShareGroup]:
        """All groups of KIP-932; none may come or go meanwhile."""
        return (group for group in self.groups.values() if isinstance(group, ShareGroup))

    def add_group(self, group: Group) -> None:
        """Take in a new group, which may take the place of an empty one of the other kind.

        Raises:
            TooManyGroupsError: No further group fits.
        """
        old = self.groups.get(group.group_id)
        if old is None and len(self.groups) >= GROUPS_MAX:
            raise TooManyGroupsError(group.group_id)
        if isinstance(old, ClassicGroup):
            for pending in old.pending_members.values():
                pending.cancel()
        if old is not None:
            old.die(self.clock.now_ms())
        self.groups[group.group_id] = group

    def create_group(self, group_id: str) -> ClassicGroup:
        """Make a new, empty group; nothing is written until it has a generation.

        Raises:
            TooManyGroupsError: No further group fits.
        """
        if len(self.groups) >= GROUPS_MAX:
            raise TooManyGroupsError(group_id)
        group = ClassicGroup(
            group_id,
            state=ClassicGroupState.EMPTY,
            current_state_timestamp_ms=self.clock.now_ms(),
        )
        self.groups[group_id] = group
        return group

    def add_loaded_group(self, group: Group) -> None:
        """Take in a group that the log knows; it counts, but is never refused."""
        self.groups[group.group_id] = group

    def remove_group(self, group: Group) -> None:
        """Forget a group that has been deleted from the log."""
        group.die(self.clock.now_ms())
        self.groups.pop(group.group_id, None)
