"""Tasks of one partition with remote storage, and its state.

    on_leadership          metadata visible, nothing of the past still running
    on_follower      ┌───────────────────────────────────────────────┐
        │            │                                               v
        └──> STARTING ───────────> LEADING    copy task, expiry task
                ^  │ ────────────> FOLLOWING  follower task
                │  └─────────────> PURGING    remote storage was switched off: all of it goes
                │                      │
                └─ another leadership ─┤
                                       │ on_stop
                                       v
                                   STOPPING ──nothing runs any more──> STOPPED
                                       └──the topic was deleted──> DELETING ──done──> STOPPED
                                        <── another broker goes on ───┘

Nothing of a new role begins before the last job of the old one has ended. LEADING goes to PURGING,
and back, by STARTING.
"""

from enum import Enum
from typing import Final

from tiered.errors import InvalidTransitionError
from tiered.segment_metadata import TopicIdPartition
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.periodic import PeriodicTask


class PartitionState(Enum):
    """See the module."""

    STARTING = "starting"
    LEADING = "leading"
    FOLLOWING = "following"
    PURGING = "purging"
    STOPPING = "stopping"
    DELETING = "deleting"
    STOPPED = "stopped"


_ROLES: Final = (PartitionState.LEADING, PartitionState.FOLLOWING, PartitionState.PURGING)

_STEPS: Final = frozenset(
    {
        *((PartitionState.STARTING, role) for role in _ROLES),
        *((role, PartitionState.STARTING) for role in _ROLES),
        *((role, PartitionState.STOPPING) for role in _ROLES),
        (PartitionState.STARTING, PartitionState.STARTING),
        (PartitionState.STARTING, PartitionState.STOPPING),
        (PartitionState.STOPPING, PartitionState.STARTING),
        (PartitionState.STOPPING, PartitionState.DELETING),
        (PartitionState.STOPPING, PartitionState.STOPPED),
        (PartitionState.DELETING, PartitionState.STOPPED),
        (PartitionState.DELETING, PartitionState.STOPPING),
    }
)


class PartitionTasks:
    """See the module.

    Attributes:
        partition: Whose.
        state: See `PartitionState`.
        led: The present leadership; for a follower the same without leading; None when there is
            none (a deletion that a restart found).
        is_leader: Which role STARTING ends in.
        delete_remote: STOPPING ends in DELETING.
        copy, expiry, follower, other: The tasks there are in the present state; `other` purges or
            deletes.
        retired: Tasks of past roles whose last job may not have ended yet.
    """

    __slots__ = (
        "copy",
        "delete_remote",
        "expiry",
        "follower",
        "is_leader",
        "led",
        "other",
        "partition",
        "retired",
        "state",
    )

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.state = PartitionState.STARTING
        self.led: LedPartition | None = None
        self.is_leader = False
        self.delete_remote = False
        self.copy: PeriodicTask | None = None
        self.expiry: PeriodicTask | None = None
        self.follower: PeriodicTask | None = None
        self.other: PeriodicTask | None = None
        self.retired: list[PeriodicTask] = []

    def move(self, state: PartitionState) -> None:
        """Change the state.

        Raises:
            InvalidTransitionError: The drawing does not show it.
        """
        if (self.state, state) not in _STEPS:
            raise InvalidTransitionError(
                f"{self.partition} may not go from {self.state.value} to {state.value}"
            )
        self.state = state

    def tasks(self) -> list[PeriodicTask]:
        """Those there are."""
        return [
            task for task in (self.copy, self.expiry, self.follower, self.other) if task is not None
        ]

    def retire(self) -> None:
        """Stop all tasks: jobs under way are cancelled. The leadership, if any, is over."""
        if self.led is not None:
            self.led.is_active = False
        tasks = self.tasks()
        self.copy = self.expiry = self.follower = self.other = None
        self.retired += tasks
        for task in tasks:
            task.stop()

    @property
    def is_quiet(self) -> bool:
        """No job of a past role runs any more."""
        self.retired = [task for task in self.retired if task.is_busy]
        return not self.retired
