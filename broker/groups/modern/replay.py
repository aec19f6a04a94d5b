"""Replay of modern groups from the newest records of their keys.

The order of the keys does not matter. A member that lacks a record, because it was damaged, is left
out: its next heartbeat is answered with UNKNOWN_MEMBER_ID, and it joins again.

Source: Kafka, GroupMetadataManager.java (replay).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from broker.groups.modern.assignment import sorted_assignment
from broker.groups.modern.modern_group import AnyModernGroup
from protocol.internal.target_assignment import (
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)

ReplayedGroup = TypeVar("ReplayedGroup", bound=AnyModernGroup)
Metadata = TypeVar("Metadata")
Current = TypeVar("Current")


class ModernGroupReplay(ABC, Generic[ReplayedGroup, Metadata, Current]):
    """Replayed groups of one kind; `groups` are complete when `finish` is exhausted."""

    def __init__(self) -> None:
        self.groups: dict[str, ReplayedGroup] = {}
        self._metadata: dict[tuple[str, str], Metadata] = {}
        self._current: dict[tuple[str, str], Current] = {}

    @abstractmethod
    def _new_group(self, group_id: str) -> ReplayedGroup:
        """A group with nothing in it."""

    @abstractmethod
    def _add_member(
        self, group: ReplayedGroup, member_id: str, metadata: Metadata, current: Current | None
    ) -> None:
        """Add a member of which all records are known."""

    def group(self, group_id: str) -> ReplayedGroup:
        """The group of this name; it is created if it is new."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = self._new_group(group_id)
        return group

    def add_epoch(self, group_id: str, group_epoch: int, metadata_hash: int) -> None:
        """Replay the group metadata."""
        group = self.group(group_id)
        group.group_epoch = group_epoch
        group.metadata_hash = metadata_hash

    def add_metadata(self, group_id: str, member_id: str, value: Metadata) -> None:
        """Replay a member's metadata."""
        self._metadata[group_id, member_id] = value
        self.group(group_id)

    def add_current(self, group_id: str, member_id: str, value: Current) -> None:
        """Replay a member's current assignment."""
        self._current[group_id, member_id] = value

    def add_target_epoch(self, group_id: str, value: TargetAssignmentMetadataValue) -> None:
        """Replay the target assignment metadata."""
        self.group(group_id).assignment_epoch = value.assignment_epoch

    def add_target(self, group_id: str, member_id: str, value: TargetAssignmentMemberValue) -> None:
        """Replay a member's target assignment."""
        self.group(group_id).target[member_id] = sorted_assignment(value.partitions)

    def finish(self) -> Iterator[None]:
        """Add the members to their groups, one at a time."""
        for (group_id, member_id), metadata in self._metadata.items():
            current = self._current.get((group_id, member_id))
            self._add_member(self.groups[group_id], member_id, metadata, current)
            yield
        self._metadata.clear()
        self._current.clear()
