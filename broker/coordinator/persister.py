"""The persister: the share coordinator's interface for share-partitions and group coordinator.

A *share-partition* is one partition of a topic as one share group works on it. Its state outlives
the broker in `__share_group_state`:

    initialize ──> state with a start offset ──> write, write, ... ──> delete
                   (state epoch: one per initialisation)

`done` of every method is called exactly once, perhaps before the method returns. COORDINATOR_NOT_
AVAILABLE and NOT_COORDINATOR are retriable; whether anything was written is then not known.

Source: Kafka, Persister.java, SharePartitionKey.java; KIP-932.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from protocol.error_codes import ErrorCode
from protocol.internal.share_state import StateBatch
from storage.types.uuid_text import format_uuid

UNINITIALIZED_OFFSET = -1
"""Start offset that is not chosen yet: `share.auto.offset.reset` decides."""

NO_EPOCH = -1
"""A leader or state epoch that fences no caller."""

UNKNOWN_COUNT = -1
"""Delivery complete count of a state that was written before Kafka 4.2."""


class SharePartitionKey(NamedTuple):
    """A share-partition."""

    group_id: str
    topic_id: UUID
    partition: int

    def coordinator_key(self) -> str:
        """Key for FindCoordinator and for hashing: `group:topic id:partition`."""
        return f"{self.group_id}:{format_uuid(self.topic_id)}:{self.partition}"


class ShareState(NamedTuple):
    """Persistent state of a share-partition.

    Attributes:
        state_epoch: Of the initialisation.
        start_offset: Records below it are done; -1: not chosen yet.
        batches: Delivery states of those at and above it, sorted, not overlapping.
    """

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch]


class ShareSummary(NamedTuple):
    """State of a share-partition without its batches.

    Attributes:
        state_epoch: Of the initialisation; 0 if there was none.
        leader_epoch: Of the partition's leader that wrote last; -1 or 0 if none has.
        start_offset: As in `ShareState`.
        delivery_complete_count: Records at and above the start offset that are done; -1: unknown.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


Done = Callable[[ErrorCode], None]
"""Called with NONE when the change is committed."""

StateDone = Callable[[ErrorCode, ShareState | None], None]
"""The state comes with NONE only."""

SummaryDone = Callable[[ErrorCode, ShareSummary | None], None]
"""The summary comes with NONE only."""


class SharePersister(Protocol):
    """Store of share-partitions' state; implemented by `ShareCoordinator`."""

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done
    ) -> None:
        """Write an initial state, replacing any earlier one.

        FENCED_STATE_EPOCH: there is a state of a later epoch. UNKNOWN_TOPIC_OR_PARTITION.
        """
        ...

    def read(self, key: SharePartitionKey, leader_epoch: int, done: StateDone) -> None:
        """Return the state to the leader of the partition, and fence older leaders from now on.

        INVALID_REQUEST: not initialised. FENCED_LEADER_EPOCH: a later leader has read or written.
        """
        ...

    def read_summary(self, key: SharePartitionKey, done: SummaryDone) -> None:
        """Return the summary; its start offset is -1 where the state is not initialised."""
        ...

    def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Done,
    ) -> None:
        """Change the start offset (-1: leave it) and delivery states of some records.

        INVALID_REQUEST: not initialised. FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH: out of date.
        """
        ...

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        """Delete the state; succeeds if there is none."""
        ...
